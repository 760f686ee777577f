"""A message's content in answers, as it was sent."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Self

from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base.timestamps import format_time
from cirrusmq.model.message import Message
from cirrusmq.model.priority import LOWEST, priority_of
from cirrusmq.model.sender import Onlooker
from cirrusmq_lambda.answers.body import Body, Id, Time


class Bytes(Body):
    """Bytes that are not given as text."""

    base64: str


class Content(Body, kw_only=True):
    """A message as it was sent: `body` as `body`, `body_base64` as `body_base64`."""

    id: Id
    body: str | UnsetType = UNSET
    body_base64: str | UnsetType = UNSET
    attributes: dict[str, str | Bytes]
    tags: list[str]
    group: str | UnsetType = UNSET
    priority: Annotated[int, Meta(description="absent: 1, the lowest")] | UnsetType = UNSET
    sent_at: Time
    sender: Annotated[str, Meta(description="the account that sent it")]
    sender_key: (
        Annotated[
            str,
            Meta(
                description="the id of its access key, where the queue or topic has "
                "`sender: key`: shown to that account alone"
            ),
        ]
        | UnsetType
    ) = UNSET

    @classmethod
    def of(cls, message: Message, id: str, sent_ms: int, seen_by: Onlooker, **more: Any) -> Self:
        """Returns the answer for a message. `more`: further fields of a subclass."""
        sender = seen_by.sender_of(message)
        priority = priority_of(message) if message.attributes else LOWEST
        return cls(
            id=id,
            **fields_of(message),
            sent_at=format_time(sent_ms),
            priority=UNSET if priority == LOWEST else priority,
            sender=sender.account,
            sender_key=sender.key_id or UNSET,
            **more,
        )


def fields_of(message: Message) -> dict[str, Any]:
    """Returns a message's fields: `body` or `body_base64`, attributes, tags and group."""
    body = message.body
    return {
        "body": body if isinstance(body, str) else UNSET,
        "body_base64": UNSET if isinstance(body, str) else to_base64(body),
        "attributes": {
            name: value if isinstance(value, str) else Bytes(base64=to_base64(value))
            for name, value in message.attributes_as_sent.items()
        },
        "tags": list(message.tags),
        "group": UNSET if message.group is None else message.group,
    }


def to_base64(value: bytes) -> str:
    """Returns bytes as base64 text."""
    return base64.b64encode(value).decode()
