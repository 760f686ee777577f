"""The queue of events that failed for good: stretches of the stream that fan_out gave up.

    Lambda   gives a batch up ──> queue: its shard, and when its first and last record came
    sweep                           └──> an operation for that time ──> the message is removed
    replay                                  └──> reads the logs of that time, hands them out

The operation is stored before the message is removed: if the sweep stops in between, the next one
finds the message, and the operation that covers its time. Every other failure stays for a person:
counts that the meter gave up, invocations, stretches that are too old.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.shapes import decode_json
from cirrusmq.base.timestamps import parse_time
from cirrusmq.operations import fan_out_again
from cirrusmq.queues import operations
from cirrusmq.runtime.core import Core

RECEIVES = 3
"""Reads of up to 10 messages, each minute."""
_GRID_MS = 60_000
"""Stretches of one outage are many, and next to each other: together they are one operation."""
_FUNCTION = "-fan_out"
_logger = logging.getLogger(__name__)

Window: TypeAlias = tuple[int, int]
"""From one time in milliseconds to another, both included."""


class _Context(msgspec.Struct, frozen=True, rename="camel"):
    function_arn: str = ""


class _Stretch(msgspec.Struct, frozen=True, rename="camel"):
    approximate_arrival_of_first_record: str
    approximate_arrival_of_last_record: str


class _Failure(msgspec.Struct, frozen=True):
    """The part of Lambda's record of a failure that is needed here."""

    context: _Context = msgspec.field(name="requestContext", default=_Context())
    stretch: _Stretch | None = msgspec.field(name="DDBStreamBatchInfo", default=None)


def take(core: Core, deadline_ms: int) -> bool:
    """Hands out again what fan_out gave up. Returns True if it has looked through the queue.

    A bounded number of messages each time, and no time twice, however many messages name it.
    """
    for _ in range(RECEIVES):
        if core.now_ms() >= deadline_ms:
            return False
        received = core.unprocessed.receive()
        earliest_ms = core.now_ms() - fan_out_again.REACH_MS
        windows: dict[str, Window] = {}
        for each in received:
            window = window_of(each.text)
            if window is not None and window[0] >= earliest_ms:
                windows[each.handle] = window
            elif each.is_new:
                _logger.error("failed for good, and left in the queue: %s", each.text)
        if windows:
            _start(core, windows.values())
        for handle in windows:
            core.unprocessed.remove(handle)
        if not received:
            break
    return True


def window_of(text: str) -> Window | None:
    """Returns when the records that fan_out gave up were sent; None for any other failure.

    A record comes to the stream while the call that wrote it runs, whose clock may differ.
    """
    try:
        failure = decode_json(text, _Failure)
        # arn:aws:lambda:<region>:<account>:function:<name>, and perhaps a version
        name = [*failure.context.function_arn.split(":"), *[""] * 7][6]
        if failure.stretch is None or not name.endswith(_FUNCTION):
            return None
        first_ms = parse_time("first", failure.stretch.approximate_arrival_of_first_record)
        last_ms = parse_time("last", failure.stretch.approximate_arrival_of_last_record)
    except (msgspec.DecodeError, InvalidParameter):
        return None
    from_ms = first_ms - limits.CALL_MS - limits.CLOCK_SKEW_MS
    until_ms = last_ms + 1_000 + limits.CLOCK_SKEW_MS
    return from_ms // _GRID_MS * _GRID_MS, -(-until_ms // _GRID_MS) * _GRID_MS


def uncovered(wanted: Iterable[Window], covered: Iterable[Window]) -> list[Window]:
    """Returns the parts of the wanted windows that are in no covered one; touching parts joined."""
    left: list[Window] = []
    for start, end in sorted(wanted):
        if left and start <= left[-1][1]:
            left[-1] = left[-1][0], max(end, left[-1][1])
        else:
            left.append((start, end))
    for start, end in covered:
        if start >= end:
            continue
        left = [part for each in left for part in _without(each, start, end)]
    return left


def _without(window: Window, start: int, end: int) -> Sequence[Window]:
    parts = (window[0], min(window[1], start)), (max(window[0], end), window[1])
    return [part for part in parts if part[0] < part[1]]


def _start(core: Core, wanted: Iterable[Window]) -> None:
    """Starts operations for these windows, except for parts in operations of the last days.

    Such an operation has handed out, or put aside, all that was in the logs when it began; messages
    that were being sent then may have come to the logs behind it:

        operation   begins ── reads a log to its end
        a send             stamps its time ─────────── is written
    """
    settled_ms = limits.CALL_MS + limits.CLOCK_SKEW_MS
    covered = [
        (each.details["since_ms"], min(each.details["until_ms"], each.started_ms - settled_ms))
        for each in operations.of_deployment(core)
        if each.kind == "fan_out" and each.state != "failed"
    ]
    for since_ms, until_ms in uncovered(wanted, covered):
        fan_out_again.start(core, since_ms, until_ms)
