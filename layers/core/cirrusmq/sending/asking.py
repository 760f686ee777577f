"""Requests: a message of a send that asks for a reply, and its refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.errors import CirrusMQError, InvalidParameter
from cirrusmq.base.shapes import integer
from cirrusmq.model.queue import Queue
from cirrusmq.model.reply_note import ReplyNote, note_attribute
from cirrusmq.sending.deduplication import Stored


class AskedReply(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The wish of a message for a reply."""

    seconds: Annotated[int, integer(limits.REPLY_SECONDS)]
    """From the send to the deadline, at which the life of the message ends."""


def check_asking(
    queue: Queue, asked: AskedReply, count: int, delay_seconds: int, *, replaces: bool
) -> None:
    """Raises InvalidParameter if the queue or the rest of the request allows no reply.

    count: the messages of the request. delay_seconds: how long the message is delayed.
    """
    name = "messages[0].reply"
    if count > 1:
        raise InvalidParameter("messages", "a send with reply has exactly 1 message")
    if replaces:
        raise InvalidParameter(name, "and replace exclude each other: give one of them")
    if queue.log_since_ms is not None:
        raise InvalidParameter(name, "is not allowed in a queue that has or had receivers")
    limit = queue.attributes.message_retention_seconds
    if not delay_seconds < asked.seconds <= limit:
        raise InvalidParameter(
            f"{name}.seconds",
            f"must be more than the delay of the message, {delay_seconds} seconds, and at most"
            f" the retention, {limit} seconds",
        )


def note_of(asked: AskedReply, queue_id: str, account: str, now_ms: int) -> Mapping[str, Any]:
    """Returns the attribute of a request's parcel. account: its sender."""
    due_ms = now_ms + asked.seconds * 1000
    return note_attribute(ReplyNote(asker=account, queue_id=queue_id, due_ms=due_ms))


def with_deadline(sent: Stored | CirrusMQError, asked: AskedReply) -> Stored | CirrusMQError:
    """Returns the result of a send with the deadline of its request."""
    if isinstance(sent, CirrusMQError):
        return sent
    return replace(sent, reply_by_ms=sent.sent_ms + asked.seconds * 1000)
