"""Messages as a producer writes them, and as a consumer gets them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypedDict

from cirrusmq_client.checks import (
    check_mapping,
    check_number,
    check_text,
    check_value,
    several,
    texts,
)
from cirrusmq_client.errors import InvalidParameter
from cirrusmq_client.times import to_moment

DEDUPLICATION_ATTRIBUTE = "cirrusmq_deduplication_id"
"""Attribute in which a `Producer` notes the deduplication id, since receives do not return it."""


class MessageFields(TypedDict, total=False):
    """Fields of a message beside its body, equal to the attributes of `Message`."""

    attributes: Mapping[str, str | bytes]
    tags: Sequence[str]
    group: str | None
    deduplication_id: str | None
    delay_seconds: int | None
    deliver_at: datetime | str | float | None
    visibility_timeout_seconds: int | None
    routing_key: str | None
    priority: int | None
    replace: str | None
    replace_within_seconds: int | None
    reply_seconds: int | None


@dataclass(frozen=True, kw_only=True)
class _Content:
    attributes: Mapping[str, str | bytes] = field(default_factory=dict)
    """At most 10; values of at most 1,024 bytes."""
    tags: Sequence[str] = ()
    """At most 10, of 1 to 16 characters."""
    group: str | None = None
    """Group inside which the order is kept, in an ordered queue or subscription."""
    deduplication_id: str | None = None
    """Messages with an equal id are stored once within 5 minutes."""
    delay_seconds: int | None = None
    """None takes the queue's delay. For a topic, less than a day, without ordered subscriptions."""
    deliver_at: datetime | str | float | None = None
    """For topics only, instead of `delay_seconds`; a number is in seconds since the epoch."""
    visibility_timeout_seconds: int | None = None
    """For queues only; None takes the queue's."""
    routing_key: str | None = None
    """Only for topics with `filter: "routing_key"`."""
    priority: int | None = None
    """Only for queues with `priorities`; a higher number is received first, None is 1."""
    replace: str | None = None
    """Only for queues: it takes the place of the message that waits under the same key."""
    replace_within_seconds: int | None = None
    """How long after the first message under the key it is due at the latest; None: no bound."""
    reply_seconds: int | None = None
    """Only for queues: it asks for a reply within this time, 1 to 43,200, and ends with it."""


@dataclass(frozen=True)
class Message(_Content):
    """A message to send or to publish. The body is text or bytes, and is received unchanged.

    Raises InvalidParameter, with the field, for a wrong type or a text that is not valid Unicode.
    """

    body: str | bytes

    def __post_init__(self) -> None:
        check_value("body", self.body)
        if self.attributes:
            check_mapping("attributes", self.attributes)
            for name, value in self.attributes.items():
                check_value(f"attributes.{name}", value)
        if self.tags:
            object.__setattr__(self, "tags", tuple(texts("tags", self.tags)))
        for name, check in _CHECKS:
            value = getattr(self, name)
            if value is not None:
                check(name, value)
        when = self.deliver_at
        if when is not None and not isinstance(when, datetime):
            (check_text if isinstance(when, str) else check_number)("deliver_at", when)

    def to_json(self) -> dict[str, Any]:
        """Returns the message in the form of a request."""
        shown: dict[str, Any] = (
            {"body": self.body}
            if isinstance(self.body, str)
            else {"body_base64": base64.b64encode(self.body).decode()}
        )
        if self.attributes:
            shown["attributes"] = {
                name: value
                if isinstance(value, str)
                else {"base64": base64.b64encode(value).decode()}
                for name, value in self.attributes.items()
            }
        if self.tags:
            shown["tags"] = list(self.tags)
        for name in _OPTIONAL:
            value = getattr(self, name)
            if value is not None:
                shown[name] = value
        if self.reply_seconds is not None:
            shown["reply"] = {"seconds": self.reply_seconds}
        if self.deliver_at is not None:
            shown["deliver_at"] = to_moment(self.deliver_at)
        return shown

    @property
    def is_alone(self) -> bool:
        """True if its send has no other message: it replaces one, or asks for a reply."""
        return self.replace is not None or self.reply_seconds is not None

    @property
    def size_bytes(self) -> int:
        """Bytes of the message in a batch: body, attributes (names and values) and tags."""
        size = _size(self.body)
        for name, value in self.attributes.items():
            size += _size(name) + _size(value)
        return size + sum(map(_size, self.tags))


def messages_of(messages: Iterable[Message]) -> list[Message]:
    """Returns the messages of a call. Raises InvalidParameter if a value is no `Message`."""
    found = several("messages", messages)
    for each in found:
        if not isinstance(each, Message):
            raise InvalidParameter(
                f"messages: must be of type Message, not {type(each).__name__}",
                parameter="messages",
            )
    return found


def all_json(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Returns the messages in the form of a request."""
    return [message.to_json() for message in messages_of(messages)]


_OPTIONAL = (
    "group",
    "deduplication_id",
    "delay_seconds",
    "visibility_timeout_seconds",
    "routing_key",
    "priority",
    "replace",
    "replace_within_seconds",
)


_CHECKS: tuple[tuple[str, Callable[[str, object], None]], ...] = (
    ("group", check_text),
    ("deduplication_id", check_text),
    ("routing_key", check_text),
    ("delay_seconds", check_number),
    ("visibility_timeout_seconds", check_number),
    ("priority", check_number),
    ("replace", check_text),
    ("replace_within_seconds", check_number),
    ("reply_seconds", check_number),
)


@dataclass(frozen=True, slots=True)
class Received:
    """A received message: a view of the answer's JSON, read on access."""

    json: Mapping[str, Any]
    source: str = ""
    """The source, as in `queue orders`; empty if it is not known."""

    @property
    def id(self) -> str:
        """The message's id, equal at every delivery."""
        return str(self.json["id"])

    @property
    def body(self) -> str | bytes:
        """Text if text was sent, else bytes."""
        if "body" in self.json:
            return str(self.json["body"])
        return base64.b64decode(self.json["body_base64"])

    @property
    def text(self) -> str:
        """The body as text. Raises UnicodeDecodeError if it is not UTF-8."""
        body = self.body
        return body if isinstance(body, str) else body.decode()

    @property
    def data(self) -> bytes:
        """The body as bytes."""
        body = self.body
        return body.encode() if isinstance(body, str) else body

    @property
    def attributes(self) -> dict[str, str | bytes]:
        """The sender's attributes."""
        return {
            name: value if isinstance(value, str) else base64.b64decode(value["base64"])
            for name, value in self.json.get("attributes", {}).items()
        }

    @property
    def tags(self) -> tuple[str, ...]:
        """The sender's tags."""
        return tuple(self.json.get("tags", ()))

    @property
    def group(self) -> str | None:
        """The group inside which order is kept."""
        return self.json.get("group")

    @property
    def priority(self) -> int:
        """Its priority; 1, the lowest, unless it was given one."""
        return int(self.json.get("priority", 1))

    @property
    def sender(self) -> str | None:
        """The account that sent it; None in a post to a URL whose topic's account published it."""
        return self.json.get("sender")

    @property
    def sender_key(self) -> str | None:
        """The id of the sender's access key, if the queue or topic keeps it and it is yours."""
        return self.json.get("sender_key")

    @property
    def deduplication_id(self) -> str | None:
        """The deduplication id if a `Producer` sent the message with one, else None."""
        noted = self.json.get("attributes", {}).get(DEDUPLICATION_ATTRIBUTE)
        return noted if isinstance(noted, str) else None

    @property
    def receipt(self) -> str:
        """The receipt, with which the message is settled; empty if it is not leased."""
        return str(self.json.get("receipt", ""))

    @property
    def receive_count(self) -> int:
        """Number of receives, including this one; 1 if they are not counted."""
        return int(self.json.get("receive_count", 1))

    @property
    def redeliveries(self) -> int:
        """Number of earlier receives."""
        return self.receive_count - 1

    @property
    def sent_at(self) -> datetime:
        """Time of the send, by the service's clock."""
        return datetime.fromisoformat(self.json["sent_at"])

    @property
    def visible_at(self) -> datetime | None:
        """End of its lease, or None if it is not leased."""
        text = self.json.get("visible_at")
        return None if text is None else datetime.fromisoformat(text)

    @property
    def expires_at(self) -> datetime | None:
        """End of its retention, or None if it is not known."""
        text = self.json.get("expires_at")
        return None if text is None else datetime.fromisoformat(text)

    @property
    def reply_by(self) -> datetime | None:
        """The time until which its sender waits for a reply, or None if it asks for none."""
        text = self.json.get("reply_by")
        return None if text is None else datetime.fromisoformat(text)

    @property
    def dead_letter(self) -> Mapping[str, Any] | None:
        """A dead letter's note: `source_queue`, `receive_count`, `dead_at`, `reason`; else None."""
        return self.json.get("dead_letter")


def _size(value: str | bytes) -> int:
    return len(value.encode()) if isinstance(value, str) else len(value)
