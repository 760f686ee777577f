"""Waiting for the reply to a request, and giving up.

    asker    looks ... looks ... deadline ── 2 s, for the clocks ── gives up if there is no reply

It looks as a receive does: half a read unit a look, and at most 150 looks in 20 s. Giving up is a
write, so that asker and replier get the same outcome: see `items.py`.
"""

from __future__ import annotations

from cirrusmq.access.keys import Caller
from cirrusmq.base import limits, ulid
from cirrusmq.base.errors import InvalidParameter, ReplyNotFound
from cirrusmq.model.parcel import send_and_position
from cirrusmq.model.queue import Queue
from cirrusmq.model.reply_note import ReplyNote
from cirrusmq.receiving.poll_limit import waiting
from cirrusmq.receiving.polling import POLL_SECONDS
from cirrusmq.receiving.replies.items import (
    RequestEnd,
    end_item,
    kept_until_ms,
    look_for_end,
    read_end,
)
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed

_LOOKS = 150
"""Looks in `POLL_SECONDS`."""


def await_reply(
    core: Core, queue: Queue, caller: Caller, message_id: str, due_ms: int, wait_seconds: float
) -> RequestEnd | None:
    """Returns the end of a request of the caller's account, or None if there is none in time.

    due_ms: the request's deadline, by the answer to its send. Raises ReplyNotFound if ends of such
    requests are not kept any more.
    """
    _check(message_id, due_ms)
    note = ReplyNote(asker=caller.account, queue_id=queue.id, due_ms=due_ms)
    until_ms = core.now_ms() + int(wait_seconds * 1000)
    end = _look(core, message_id, note)
    if end is not None or core.now_ms() >= until_ms:
        return end
    with waiting(core, caller.account, until_ms) as may_wait:
        return _wait(core, message_id, note, until_ms) if may_wait else None


def _check(message_id: str, due_ms: int) -> None:
    known = send_and_position(message_id)
    if known is None:
        raise InvalidParameter("id", "must be the id of a message")
    latest_ms = ulid.time_of(known[0]) + limits.REPLY_SECONDS[1] * 1000 + limits.KEY_SLACK_MS
    if due_ms > latest_ms:
        raise InvalidParameter("reply_by", "must be the time that the answer to the send has")


def _wait(core: Core, message_id: str, note: ReplyNote, until_ms: int) -> RequestEnd | None:
    pause_ms = POLL_SECONDS * 1000 / _LOOKS / core.settings.faster_looks
    while (left_ms := until_ms - core.now_ms()) > 0:
        core.clock.sleep(min(pause_ms, left_ms) / 1000)
        end = _look(core, message_id, note)
        if end is not None:
            return end
    return None


def _look(core: Core, message_id: str, note: ReplyNote) -> RequestEnd | None:
    """Looks once. Gives up if the deadline is over by every clock, which is one write unit."""
    now_ms = core.now_ms()
    if now_ms >= kept_until_ms(note.due_ms):
        raise ReplyNotFound
    end = look_for_end(core, message_id, note)
    if end is None and now_ms >= note.due_ms + core.skew_ms:
        item = end_item(message_id, note, now_ms)
        try:
            core.store.put_if_absent(core.tables.messages, item)
        except ConditionFailed as failed:
            assert failed.item is not None
            item = failed.item
        end = read_end(item)
    if end is not None and now_ms >= end.kept_until_ms:
        raise ReplyNotFound  # TTL is late
    return end
