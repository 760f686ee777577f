"""Replying to a request: its reply is put and its message deleted, in one transaction.

consumer   receives ── works ── transact(reply if there is none, message deleted if it is held)

stops before it       the message comes again when its lease ends
its answer is lost    the same call finds the reply, by the nonce of its receipt
two consumers         the older receipt is stale; a message that came twice has one reply
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from cirrusmq.base import limits
from cirrusmq.base.errors import (
    Conflict,
    InvalidParameter,
    MessageTooLarge,
    ReceiptExpired,
    ReplyTooLate,
    Unavailable,
)
from cirrusmq.model.message import (
    Base64,
    Message,
    MessageInput,
    check_answer_size,
    read_attributes,
    read_body,
)
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.receipt import decode
from cirrusmq.model.reply_note import reply_note
from cirrusmq.model.source import kept_until
from cirrusmq.receiving.replies.items import RequestEnd, end_item, read_end, replies_of
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import TransactionRefused, put_if_absent
from cirrusmq.settlement.delete import archiving
from cirrusmq.settlement.settle import Held, ReceiptText, SourceOf, expired, holds_still
from cirrusmq.settlement.visibility import holds
from cirrusmq.storage.changes import removal
from cirrusmq.storage.parcels import read_parcel

_TRIES = 4


class ReplyInput(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A reply's content."""

    body: str | UnsetType = UNSET
    body_base64: str | UnsetType = UNSET
    attributes: dict[str, str | Base64] = {}


class ReplyRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a reply."""

    receipt: ReceiptText
    reply: ReplyInput


def answer(core: Core, message_id: str, request: ReplyRequest, source_of: SourceOf) -> int:
    """Stores the reply to a message that the caller holds and deletes it, both or neither.

    Returns when that was, also for the same reply again. 4 write units, and 2 more for each KB of
    the reply above the first; 2 more if the queue can be rewound. Raises ReplyTooLate if the
    deadline is over or the asker gave up, Conflict if there is another reply, ReceiptExpired.
    """
    reply = _content(request.reply)
    receipt = decode(request.receipt)
    source = None if receipt is None else source_of(receipt.source_id)
    if receipt is None or source is None:
        raise ReceiptExpired
    held = Held(text=request.receipt, receipt=receipt, source=source)
    for _ in range(_TRIES):
        item = core.store.get(core.tables.messages, held.pk, receipt.sort_key)
        parcel, now_ms = None if item is None else read_parcel(item), core.now_ms()
        if parcel is None or not holds(held, parcel, now_ms):
            return _told_before(core, message_id, held, reply, now_ms)
        replied_ms = _put(core, message_id, held, parcel, reply, now_ms)
        if replied_ms is not None:
            return replied_ms
    raise Unavailable


def _content(given: ReplyInput) -> Message:
    where = "reply"
    body = read_body(MessageInput(body=given.body, body_base64=given.body_base64), where)
    reply = Message(body=body, attributes=read_attributes(given.attributes, where))
    if reply.size_bytes > limits.REPLY_BYTES:
        raise MessageTooLarge(
            f"reply: has {reply.size_bytes} bytes of body and attributes;"
            f" 1 to {limits.REPLY_BYTES} are taken"
        )
    check_answer_size(reply, where)
    return reply


def _put(
    core: Core, message_id: str, held: Held, parcel: Parcel, reply: Message, now_ms: int
) -> int | None:
    """Puts the reply. Returns when that was, or None if the message's state changed just now."""
    note = reply_note(parcel.others)
    if parcel.message_id(held.receipt.place) != message_id:
        raise InvalidParameter("receipt", "is of another message than the one in the path")
    if note is None:
        raise InvalidParameter("id", "the message asks for no reply: it was sent without one")
    if now_ms >= note.due_ms:
        raise ReplyTooLate
    item = end_item(message_id, note, now_ms, reply, held.receipt.nonce)
    put = put_if_absent(core.tables.messages, item)
    try:
        core.store.transact([{"Put": put}, *_removal(core, held, parcel, now_ms)])
    except TransactionRefused as refused:
        found = refused.failed.get(0)
        return None if found is None else _told(read_end(found), held, reply)
    return now_ms


def _removal(core: Core, held: Held, parcel: Parcel, now_ms: int) -> list[dict[str, Any]]:
    """Returns the writes that delete a request, which is alone in its parcel."""
    still = holds_still(held, now_ms)
    until_ms = kept_until(held.source, parcel)
    if until_ms > now_ms:
        return archiving(core, parcel, still, until_ms, now_ms)
    return [{"Delete": removal(core.tables.messages, held.key, still)}]


def _told_before(core: Core, message_id: str, held: Held, reply: Message, now_ms: int) -> int:
    """Returns when an earlier try of this call stored the reply; else raises why there is none."""
    end = next(replies_of(core, message_id), None)
    if end is not None:
        return _told(end, held, reply)
    raise ReplyTooLate if expired(held, now_ms) else ReceiptExpired


def _told(end: RequestEnd, held: Held, reply: Message) -> int:
    if end.reply is None:
        raise ReplyTooLate
    if end.nonce != held.receipt.nonce or end.reply != reply:
        raise Conflict("the request has another reply already: delete the message")
    return end.written_ms
