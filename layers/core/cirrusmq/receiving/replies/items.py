"""The item of a request's end in the Messages table: its reply, or that its asker gave up.

pk `Y#<message id>`, sk `<account that asks>#<id of the queue that it asks>`; `x`: kept until, `t`:
when it was written. A reply has `b`, the packed message, and `k`, the nonce of its receipt. The
first item under a key stays, so a request has one end:

    replier   reply: no item?  yes ──> it is there, and the message gone
    asker                                           gives up: no item?  no ──> it has the reply

    asker     gives up: no item?  yes ──> timed_out
    replier                                           reply: no item?  no ──> ReplyTooLate

Only the account that asks has its name in the key: what others write elsewhere is not read.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cirrusmq.base import limits
from cirrusmq.model.message import Message, pack, unpack
from cirrusmq.model.reply_note import ReplyNote
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key
from cirrusmq.storage.parcels import ttl_seconds

REPLIES = "Y"


class RequestEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a request."""

    reply: Message | None
    """None: its asker gave up before there was one."""
    written_ms: int
    kept_until_ms: int
    nonce: bytes = b""
    """The nonce of the receipt with a reply."""


def kept_until_ms(due_ms: int) -> int:
    """Returns until when the end of a request with this deadline is kept."""
    return due_ms + limits.REPLY_KEPT_MS


def end_item(
    message_id: str, note: ReplyNote, now_ms: int, reply: Message | None = None, nonce: bytes = b""
) -> Item:
    """Returns the item of a reply, or without one that the asker gave up."""
    until_ms = kept_until_ms(note.due_ms)
    item: Item = {
        **key(_pk(message_id), _sk(note)),
        "t": {"N": str(now_ms)},
        "x": {"N": str(until_ms)},
        "expires_at": {"N": str(ttl_seconds(until_ms))},
    }
    return item if reply is None else item | {"b": {"B": pack([reply])}, "k": {"B": nonce}}


def read_end(item: Item) -> RequestEnd:
    """Returns the end of a request that is in an item."""
    return RequestEnd(
        reply=unpack(item["b"]["B"])[0] if "b" in item else None,
        written_ms=int(item["t"]["N"]),
        kept_until_ms=int(item["x"]["N"]),
        nonce=item["k"]["B"] if "k" in item else b"",
    )


def look_for_end(core: Core, message_id: str, note: ReplyNote) -> RequestEnd | None:
    """Returns the end of a request as its asker sees it, or None. Half a read unit without one."""
    table = core.tables.messages
    item = core.store.get(table, _pk(message_id), _sk(note), consistent=False)
    return None if item is None else read_end(item)


def replies_of(core: Core, message_id: str) -> Iterator[RequestEnd]:
    """Yields the replies to a message, under all accounts. A read unit for each 4 KB."""
    for item in core.store.query_all(core.tables.messages, _pk(message_id)):
        end = read_end(item)
        if end.reply is not None:
            yield end


def queue_and_size(item: Item) -> tuple[str, int] | None:
    """Returns the id of a reply's queue, and its bytes; None for an asker that gave up."""
    reply = read_end(item).reply
    return None if reply is None else (item["sk"]["S"].rpartition("#")[2], reply.size_bytes)


def _pk(message_id: str) -> str:
    return f"{REPLIES}#{message_id}"


def _sk(note: ReplyNote) -> str:
    return f"{note.asker}#{note.queue_id}"
