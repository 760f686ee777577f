"""Firing: the sweep puts each schedule's message, each time once, a little before its time.

One transaction takes the mark, puts the next one, and puts the message with the time as its delay:

    sweep A    reads the mark ── transaction ──> the message, and the next mark
    sweep B    reads the mark ── transaction ──> refused: the mark is taken
    stopped    before it: the mark is there for the next sweep; after it: all is done

A time that was over for `LATE_MS` when the sweep came is missed; `missed` of the schedule decides
about these. Marks of a definition only go forward, so a clock that was set back fires nothing
a second time.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.errors import CirrusMQError, Throttled, Unavailable
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.isolation import log_and_continue
from cirrusmq.runtime.store import TransactionRefused
from cirrusmq.schedules.items import (
    ScheduleMark,
    lower_flag,
    mark_shards,
    put_mark,
    raise_flag,
    read_marks,
    take_mark,
)
from cirrusmq.schedules.messages import Fired, make_message
from cirrusmq.schedules.rules import latest, next_after
from cirrusmq.schedules.schedule import Definition, Failure, Schedule
from cirrusmq.storage import directory, directory_writes
from cirrusmq.storage.directory import Document, schedule_key

_STEPS = 200
"""Times of one mark that a sweep fires; the next sweep goes on."""
_SETTLED_MS = 3_600_000
"""A flag without marks stays for an hour: reads of marks may be a moment old."""
_logger = logging.getLogger(__name__)


class MarkLook(NamedTuple):
    """A sweep's look at the marks: until when they are due, and how long it works."""

    core: Core
    horizon_ms: int
    """Marks due until then are fired. Later than the schedules' reads by at most 120 s, by
    which changes take longer to be in force."""
    deadline_ms: int
    late_ms: list[int]
    """How much later than its time each message is that was put behind it."""


class _Step(NamedTuple):
    """The step of one mark: its message and its next time."""

    fired: Fired | None
    """The message; None if the time is left out or could not be fired."""
    next_ms: int | None
    """The time of the next mark; None if there is none."""
    failure: Failure | None = None
    due_ms: int = 0
    """The message's time."""


def fire_due(core: Core, deadline_ms: int, flag_ms: int | None) -> tuple[bool, int]:
    """Fires schedules that are due within 120 s, until a deadline.

    Returns True if it finished, and by how many milliseconds the latest message is late.

    flag_ms: when the last schedule was made, as the sweep's item has it; None if it says that there
    are none, or is not known. Then marks that are found raise it again.
    """
    look = MarkLook(core, core.now_ms() + limits.SCHEDULE_AHEAD_MS, deadline_ms, [])
    shards = mark_shards()
    # Another one is first each minute, if a sweep does not come to the last ones.
    first = core.now_ms() // 60_000 % len(shards)
    results = [_fire_shard(look, shard) for shard in shards[first:] + shards[:first]]
    any_marks = any(found for found, _ in results)
    if any_marks and flag_ms is None:
        core.store.write("UpdateItem", raise_flag(core, core.now_ms())["Update"])
    elif not any_marks and flag_ms is not None and flag_ms < core.now_ms() - _SETTLED_MS:
        lower_flag(core, flag_ms)
    return all(done for _, done in results), max(look.late_ms, default=0)


def _fire_shard(look: MarkLook, shard: str) -> tuple[bool, bool]:
    """Fires a shard's marks. Returns (there are any, all that are due were fired)."""
    found, done = False, True
    for page in read_marks(look.core, shard):
        found = found or bool(page)
        due = [mark for mark in page if mark.due_ms <= look.horizon_ms]
        for whole in look.core.in_parallel(partial(_fire_isolated, look), due):
            done = done and whole
        if len(due) < len(page):
            break
        if look.core.now_ms() >= look.deadline_ms:
            return found, False
    return found, done


def _fire_isolated(look: MarkLook, mark: ScheduleMark) -> bool:
    done = False
    with log_and_continue(f"schedule {mark.name} of {mark.account} could not be fired"):
        done = _fire(look, mark)
    return done


def _fire(look: MarkLook, mark: ScheduleMark) -> bool:
    """Fires a mark, and the marks after it until the horizon. Returns True if it finished."""
    core = look.core
    key = schedule_key(mark.account, mark.name)
    for _ in range(_STEPS):
        if core.now_ms() >= look.deadline_ms:
            return False
        found = directory.read(core, key, Schedule)
        step = _step(look, found, mark)
        if not _write(core, found, mark, step):
            return True  # another sweep has taken it
        if step.fired is not None and core.now_ms() > step.due_ms:
            look.late_ms.append(core.now_ms() - step.due_ms)
        if step.next_ms is None or step.next_ms > look.horizon_ms:
            return True
        mark = replace(mark, due_ms=step.next_ms)
    return False


def _step(look: MarkLook, found: Document[Schedule] | None, mark: ScheduleMark) -> _Step:
    """Returns the step for a mark."""
    core = look.core
    schedule = found.value if found else None
    definition = schedule.definition_of(mark.id) if schedule else None
    if definition is None or mark.name != (schedule and schedule.name):
        return _Step(None, None)  # deleted
    if not _in_force(definition, mark.due_ms):
        return _Step(None, None)  # changed: the new definition has its own mark
    now_ms = core.now_ms()
    over_ms = min(now_ms - limits.SCHEDULE_LATE_MS, look.horizon_ms)
    due_ms, fires = _chosen(definition, mark.due_ms, over_ms)
    next_ms = next_after(definition.rule, due_ms)
    if next_ms is not None and not _in_force(definition, next_ms):
        next_ms = None
    if not fires:
        return _Step(None, next_ms)
    if now_ms - due_ms > limits.SCHEDULE_LATE_MS:
        told = mark.name, mark.account, (now_ms - due_ms) // 1000
        _logger.warning("schedule %s of account %s fires %s s late", *told)
    try:
        fired = make_message(core, mark.account, definition, due_ms)
        return _Step(fired, next_ms, due_ms=due_ms)
    except (Unavailable, Throttled):
        raise  # it passes: the mark stays
    except CirrusMQError as error:
        failure = Failure(due_ms=due_ms, code=error.code, detail=error.detail)
        return _Step(None, next_ms, failure)


def _chosen(definition: Definition, due_ms: int, over_ms: int) -> tuple[int, bool]:
    """Returns the time that a mark stands for now, and if it fires: of missed ones as asked for.

    over_ms: times until then were missed.

        due ......... due ......... due ......... now
        none: no      no            no
        one:  no      no            fires, the others are left out
        all:  fires: the next mark is the next missed one
    """
    if definition.until_ms is not None:
        over_ms = min(over_ms, definition.until_ms - 1)
    if due_ms > over_ms:
        return due_ms, True
    count = limits.MISSED_TIMES if definition.missed == "all" else 1
    # The mark's own time counts, also if the zone's rules have changed since it was put.
    missed = latest(definition.rule, due_ms + 1, over_ms, count)
    missed = [due_ms, *missed][-count:]
    return (missed[0] if definition.missed == "all" else missed[-1]), definition.missed != "none"


def _in_force(definition: Definition, time_ms: int) -> bool:
    until_ms = definition.until_ms
    return definition.since_ms <= time_ms and (until_ms is None or time_ms < until_ms)


def _write(core: Core, found: Document[Schedule] | None, mark: ScheduleMark, step: _Step) -> bool:
    """Writes a step, all or nothing. Returns False if the mark is taken.

    The message has a new id, so that nothing but the mark can be in its way; a schedule that was
    changed by then refuses the note of a failure, and the next sweep sees the mark again.
    """
    writes: list[dict[str, Any]] = [take_mark(core, mark)]
    if step.next_ms is not None:
        writes.append(put_mark(core, replace(mark, due_ms=step.next_ms)))
    if found is not None and _changes_failure(found.value, step):
        schedule = replace(found.value, failure=step.failure)
        key = schedule_key(mark.account, mark.name)
        writes.append(directory_writes.put_over(core, key, schedule, found))
    put_ms = core.now_ms()
    if step.fired is not None:
        writes += step.fired.puts(core)
    try:
        core.store.transact(writes)
    except TransactionRefused as refused:
        if 0 in refused.failed:
            return False
        raise Unavailable from refused
    if step.fired is not None:
        step.fired.announce(core, put_ms)
    return True


def _changes_failure(schedule: Schedule, step: _Step) -> bool:
    return step.failure is not None or (step.fired is not None and schedule.failure is not None)
