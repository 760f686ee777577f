"""Handing half messages out to their producers, who say what became of their own transactions.

    a producer  prepare ── its own transaction ──x
    another                                         receive: check 1 ── commit or rollback
                                                                  └──x
    another                                                            receive: check 2 ──

A check is held by its own nonce and changes nothing of the decision, so that the producer itself
may still decide in the meantime. After the last check's lease and wait the half message is over:
the sweep rolls it back and reports it in the log.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, NamedTuple

import msgspec
from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.errors import Unavailable
from cirrusmq.base.names import PRODUCERS_NAME, check_name
from cirrusmq.base.shapes import integer
from cirrusmq.model.message import Message
from cirrusmq.model.receipt import NONCE_BYTES
from cirrusmq.model.topic import Topic
from cirrusmq.publishing.half_messages.decide import time_out
from cirrusmq.publishing.half_messages.half import Half, checked, producers_of
from cirrusmq.publishing.half_messages.items import (
    HalfMark,
    Producers,
    check_update,
    delete_mark,
    find_halves,
    is_own_check,
    mark_of,
    put_mark,
    read_marks,
    read_producers,
)
from cirrusmq.publishing.publish import DEFAULT_GROUP
from cirrusmq.publishing.selecting import with_bodies
from cirrusmq.queues.resources import find_resource
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.isolation import log_and_continue
from cirrusmq.runtime.store import ConditionFailed
from cirrusmq.storage.bodies.objects import BucketUnavailable

_AT_ONCE = 16
_PAGES = 4
"""Pages of a partition's marks that one call reads."""
_FIELDS_BYTES = 2_048
"""Bytes of an answer for each message: names of its fields, its group and its routing key."""
_LEFT_OVER_MS = 2 * limits.CALL_MS
"""A mark that its half message does not name was put by a call that is long over."""
_logger = logging.getLogger(__name__)


class HalfReceiveRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a receive of half messages."""

    max: Annotated[int, integer((1, 16))] = 1
    visibility_timeout_seconds: Annotated[int, integer(limits.VISIBILITY_SECONDS, " seconds")] = (
        limits.VISIBILITY_SECONDS_DEFAULT
    )
    group: str = DEFAULT_GROUP


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A half message that its caller is to decide."""

    half: Half
    messages: list[Message]
    held_until_ms: int


class Ended(NamedTuple):
    """A look at half messages whose time may be over."""

    done: bool
    halves: int
    """How many were rolled back since nobody had decided."""


def receive_halves(
    core: Core, topic: Topic, account: str, request: HalfReceiveRequest
) -> list[Check]:
    """Up to `max` undecided half messages of a group's producers that are due for a check."""
    group = producers_of(account, check_name("group", request.group, PRODUCERS_NAME))
    partitions = list(range(topic.attributes.partitions))
    core.random.shuffle(partitions)
    checks: list[Check] = []
    size = 0
    for partition in partitions:
        for half in _due(core, topic, partition, group):
            size += _answer_bytes(half)
            if checks and size > limits.ANSWER_BYTES:
                return checks
            check = _check(core, half, request.visibility_timeout_seconds)
            if check is not None:
                checks.append(check)
            if len(checks) == request.max:
                return checks
    return checks


def end_overdue(core: Core, deadline_ms: int) -> Ended:
    """Rolls back the half messages of all topics that nobody decided in time, until a deadline."""
    found = list(read_producers(core))
    core.random.shuffle(found)
    done, count = True, 0
    for producers in found:
        with log_and_continue(f"half messages of topic {producers.topic_id} could not be ended"):
            ended = end_halves(core, producers, deadline_ms)
            done, count = done and ended.done, count + ended.halves
    return Ended(done, count)


def end_halves(core: Core, producers: Producers, deadline_ms: int) -> Ended:
    """Rolls back the half messages of these producers whose time is over, until a deadline.

    Each is reported in the log, also one that a late commit rolled back; again after a crash.
    """
    count = 0
    for marks in _overdue(core, producers):
        if core.now_ms() >= deadline_ms:
            return Ended(False, count)
        halves = find_halves(core, marks)
        for mark in marks:
            count += _end(core, producers, mark, halves.get(mark.id))
    return Ended(True, count)


def _overdue(core: Core, producers: Producers) -> Iterator[list[HalfMark]]:
    """Marks of what may be over, of one partition and a few at a time."""
    now_ms = core.now_ms() - core.skew_ms
    # One that nobody asked for has its first mark.
    for end, last_ms in ((True, now_ms), (False, now_ms - limits.HALF_LIFE_MS)):
        for partition in range(producers.partitions):
            place = producers.topic_id, partition
            for marks in read_marks(core, *place, producers.group, 0, last_ms + 1, end=end):
                yield from _portions(marks)


def _due(core: Core, topic: Topic, partition: int, group: str) -> Iterator[Half]:
    """Yields the half messages of a partition that are due, and removes marks that are finished."""
    now_ms = core.now_ms()
    from_ms = now_ms - limits.HALF_LIFE_MS
    pages = read_marks(core, topic.id, partition, group, from_ms, now_ms + 1)
    for marks in islice(pages, _PAGES):
        for some in _portions(marks):
            halves = find_halves(core, some)
            for mark in some:
                half = halves.get(mark.id)
                if half is not None and (half.timed_out or half.until_ms <= now_ms):
                    _leave_to_sweep(core, half, mark)
                elif half is not None and half.state == "prepared" and mark_of(half) == mark:
                    yield half
                else:
                    _clean(core, mark, half, now_ms)


def _portions(marks: list[HalfMark]) -> Iterator[list[HalfMark]]:
    for first in range(0, len(marks), _AT_ONCE):
        yield marks[first : first + _AT_ONCE]


def _check(core: Core, half: Half, visibility_seconds: int) -> Check | None:
    """Hands a half message out, unless it is decided, taken by another call, or unreadable.

    Its messages are read first: a check that nobody can answer is none.
    """
    messages = _messages(core, half)
    if messages is None:
        return None
    now_ms = core.now_ms()
    after = checked(half, now_ms, visibility_seconds)
    nonce = core.random_bytes(NONCE_BYTES)
    put_mark(core, mark_of(after))
    try:
        core.store.write("UpdateItem", check_update(core, half, after, nonce))
    except ConditionFailed as failed:
        if not is_own_check(failed.item, nonce):
            return None
    with contextlib.suppress(Unavailable):
        delete_mark(core, mark_of(half))
    held_until_ms = min(now_ms + visibility_seconds * 1000, after.until_ms)
    return Check(half=after, messages=messages, held_until_ms=held_until_ms)


def _messages(core: Core, half: Half) -> list[Message] | None:
    try:
        found = with_bodies(core, half.id, half.object_days, half.messages)
    except BucketUnavailable:
        return None
    messages = [found.get(index) for index in half.messages]
    read = [each for each in messages if isinstance(each, Message)]
    return read if len(read) == len(messages) else None


def _answer_bytes(half: Half) -> int:
    return sum(
        each.size_bytes * each.answer_percent // 100 + _FIELDS_BYTES
        for each in half.messages.values()
    )


def _leave_to_sweep(core: Core, half: Half, mark: HalfMark) -> None:
    """Puts a half message that is over under the ended ones, for the sweep."""
    ended = replace(mark_of(half), due_ms=half.until_ms, end=True)
    put_mark(core, ended)
    if mark != ended:
        delete_mark(core, mark)


def _clean(core: Core, mark: HalfMark, half: Half | None, now_ms: int) -> None:
    """Removes a mark whose half message is decided, or that was left over."""
    decided = half is not None and half.state != "prepared"
    if decided or mark.due_ms + _LEFT_OVER_MS < now_ms:
        delete_mark(core, mark)


def _end(core: Core, producers: Producers, mark: HalfMark, half: Half | None) -> bool:
    """Looks at a mark that may be over. Returns True if its half message was undecided."""
    now_ms = core.now_ms()
    over = half is not None and _is_over(half, now_ms - core.skew_ms)
    if half is not None and half.state == "prepared" and over and not time_out(core, half):
        return False  # decided at this moment: the next sweep removes the mark
    if half is not None and over and (half.state == "prepared" or half.timed_out):
        topic = find_resource(core, producers.topic_id)
        _logger.warning(
            "half message %s of topic %s of account %s was rolled back: its producers (%s) "
            "did not decide in time",
            *(half.handle, topic and topic.name, topic and topic.account, producers.group),
        )
        delete_mark(core, mark)
        return True
    _clean(core, mark, half, now_ms)
    return False


def _is_over(half: Half, now_ms: int) -> bool:
    return half.until_ms <= now_ms
