"""A queue's log: since when it has every message, and turning it on for the first receiver."""

from __future__ import annotations

import msgspec

from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.timestamps import format_time, parse_time
from cirrusmq.model.queue import Queue
from cirrusmq.queues.queues import update_queue
from cirrusmq.runtime.core import Core
from cirrusmq.storage.directory import queue_key

LATEST, EARLIEST = "latest", "earliest"
BEGINNING_MS = limits.CALL_MS + limits.DOCUMENTS_MS + limits.CLOCK_SKEW_MS
"""Time until the writes of a call are done, by every clock, and no cache holds older values."""


def check_start(core: Core, queue: Queue, start: str) -> int | None:
    """Checks a receiver's start. Returns it in milliseconds, or None for `latest`.

    Raises InvalidParameter for a time before the queue's log. `earliest` is taken though it is the
    beginning of the oldest message's life: messages from before the log are copied.
    """
    if start == LATEST:
        return None
    if start == EARLIEST:
        return max(queue.purged_ms, oldest_ms(queue, core.now_ms()))
    start_ms = parse_time("start", start)
    possible_ms = earliest_ms(queue, core.now_ms())
    if start_ms < possible_ms:
        raise InvalidParameter(
            "start",
            "must be latest, earliest or a time; the earliest possible is "
            + format_time(possible_ms),
        )
    return start_ms


def earliest_ms(queue: Queue, now_ms: int) -> int:
    """Returns since when the queue's log has every message that is not expired or purged."""
    if queue.log_since_ms is None:
        return now_ms
    return max(queue.log_since_ms, queue.purged_ms, oldest_ms(queue, now_ms))


def oldest_ms(queue: Queue, now_ms: int) -> int:
    """Returns when the oldest message was sent that may not be expired."""
    return now_ms - queue.longest_retention_seconds(now_ms) * 1000


def with_log(core: Core, queue: Queue) -> Queue:
    """Returns the queue with its log turned on.

    The log begins when no sender works with the queue's old attributes any more, which is when
    the update returns, by every clock; that is written down then. Until then, and for good if the
    call stops before, it begins at a time by which the update has returned in any case.
    """
    if queue.log_since_ms is None:
        queue = update_queue(
            core,
            queue.account,
            queue.name,
            lambda before: _log_since(before, core.now_ms() + BEGINNING_MS),
        )
    elif queue.log_since_ms > core.now_ms():  # another call is at it
        core.cache.turn_over(queue_key(queue.account, queue.name))
    else:
        return queue
    since_ms = core.now_ms() + core.skew_ms + 1
    return update_queue(
        core, queue.account, queue.name, lambda before: _log_since(before, since_ms)
    )


def _log_since(queue: Queue, since_ms: int) -> Queue:
    earlier_ms = since_ms if queue.log_since_ms is None else queue.log_since_ms
    return msgspec.structs.replace(queue, log_since_ms=min(earlier_ms, since_ms))
