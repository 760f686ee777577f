"""Messages: as a producer writes them, and as a consumer gets them."""

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
"""The attribute in which a `Producer` notes the deduplication id: receives do not return it."""


class MessageFields(TypedDict, total=False):
    """What may be given beside a body; each is as the attribute of `Message` of this name."""

    attributes: Mapping[str, str | bytes]
    tags: Sequence[str]
    group: str | None
    deduplication_id: str | None
    delay_seconds: int | None
    deliver_at: datetime | str | float | None
    visibility_timeout_seconds: int | None
    routing_key: str | None
    priority: int | None


@dataclass(frozen=True, kw_only=True)
class _Content:
    attributes: Mapping[str, str | bytes] = field(default_factory=dict)
    """At most 10; values of at most 1,024 bytes."""
    tags: Sequence[str] = ()
    """At most 10, of 1 to 16 characters."""
    group: str | None = None
    """Messages of a group keep their order, where the queue or subscription is ordered."""
    deduplication_id: str | None = None
    """Sent again within 5 minutes, it is stored once."""
    delay_seconds: int | None = None
    """The queue's where None; of a topic's message below a day, if nobody gets it in order."""
    deliver_at: datetime | str | float | None = None
    """Topics only, instead of `delay_seconds`: a number is in seconds since the epoch."""
    visibility_timeout_seconds: int | None = None
    """Queues only; the queue's where None."""
    routing_key: str | None = None
    """Topics with `filter: "routing_key"` only."""
    priority: int | None = None
    """Queues with `priorities` only; the higher number is received first, and None is 1."""


@dataclass(frozen=True)
class Message(_Content):
    """A message to send or to publish. The body is text or bytes and is received as it was sent.

    InvalidParameter names what cannot be sent: another type, or a text that is no Unicode.
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
        """The message as a request has it."""
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
        if self.deliver_at is not None:
            shown["deliver_at"] = to_moment(self.deliver_at)
        return shown

    @property
    def size_bytes(self) -> int:
        """Bytes that count towards a batch: body, attributes (names and values) and tags."""
        size = _size(self.body)
        for name, value in self.attributes.items():
            size += _size(name) + _size(value)
        return size + sum(map(_size, self.tags))


def messages_of(messages: Iterable[Message]) -> list[Message]:
    """The messages of a call. InvalidParameter if they are none."""
    found = several("messages", messages)
    for each in found:
        if not isinstance(each, Message):
            raise InvalidParameter(
                f"messages: must be of type Message, not {type(each).__name__}",
                parameter="messages",
            )
    return found


def all_json(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The messages as a request has them."""
    return [message.to_json() for message in messages_of(messages)]


_OPTIONAL = (
    "group",
    "deduplication_id",
    "delay_seconds",
    "visibility_timeout_seconds",
    "routing_key",
    "priority",
)


_CHECKS: tuple[tuple[str, Callable[[str, object], None]], ...] = (
    ("group", check_text),
    ("deduplication_id", check_text),
    ("routing_key", check_text),
    ("delay_seconds", check_number),
    ("visibility_timeout_seconds", check_number),
    ("priority", check_number),
)


@dataclass(frozen=True, slots=True)
class Received:
    """A received message: a view of the answer's JSON, read where it is asked for."""

    json: Mapping[str, Any]
    source: str = ""
    """What it was received from, in words: `queue orders`; empty if that is not known."""

    @property
    def id(self) -> str:
        """The message's id; the same at every delivery."""
        return str(self.json["id"])

    @property
    def body(self) -> str | bytes:
        """Text where text was sent, else bytes."""
        if "body" in self.json:
            return str(self.json["body"])
        return base64.b64decode(self.json["body_base64"])

    @property
    def text(self) -> str:
        """The body as text; UnicodeDecodeError where it is not UTF-8."""
        body = self.body
        return body if isinstance(body, str) else body.decode()

    @property
    def data(self) -> bytes:
        """The body byte for byte."""
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
        """Its priority; 1, the lowest, where it has none."""
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
        """The producer's deduplication id, where the message was sent with a `Producer`."""
        noted = self.json.get("attributes", {}).get(DEDUPLICATION_ATTRIBUTE)
        return noted if isinstance(noted, str) else None

    @property
    def receipt(self) -> str:
        """Deletes the message, or changes how long it is held; empty where it is not held."""
        return str(self.json.get("receipt", ""))

    @property
    def receive_count(self) -> int:
        """How often it was received, this time included; 1 where that is not counted."""
        return int(self.json.get("receive_count", 1))

    @property
    def redeliveries(self) -> int:
        """How often it was received before."""
        return self.receive_count - 1

    @property
    def sent_at(self) -> datetime:
        """When it was sent, by the service's clock."""
        return datetime.fromisoformat(self.json["sent_at"])

    @property
    def visible_at(self) -> datetime | None:
        """When its lease ends; None where it is not held."""
        text = self.json.get("visible_at")
        return None if text is None else datetime.fromisoformat(text)

    @property
    def expires_at(self) -> datetime | None:
        """When its life ends; None where the answer does not say."""
        text = self.json.get("expires_at")
        return None if text is None else datetime.fromisoformat(text)

    @property
    def dead_letter(self) -> Mapping[str, Any] | None:
        """In a dead-letter queue: `source_queue`, `receive_count`, `dead_at`, `reason`."""
        return self.json.get("dead_letter")


def _size(value: str | bytes) -> int:
    return len(value.encode()) if isinstance(value, str) else len(value)
