"""The minute's sweep: work for resources that no caller uses at the time.

It has parts, which share its time and run in a new order each time. A part that fails, or does not
finish, takes no time from the others; the next sweep continues it. A part notes the time when it
finishes, and an alarm rings if one has not for ten minutes.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from cirrusmq.base.errors import OperationNotFound
from cirrusmq.fanout.parked import resume
from cirrusmq.maintenance import unprocessed
from cirrusmq.maintenance.visits import visit_all
from cirrusmq.metering.gauges import write_gauges
from cirrusmq.publishing.half_messages.checks import end_overdue
from cirrusmq.push import delivery
from cirrusmq.queues import operations
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.isolation import log_and_continue
from cirrusmq.runtime.store import key
from cirrusmq.schedules.items import FLAG, ROUNDS
from cirrusmq.storage.counters import read_all_counters
from cirrusmq.storage.deployment_formats import note_formats
from cirrusmq.subscriptions.delivery import items as delivery_items


class SweepResult(msgspec.Struct, kw_only=True):
    """The figures of a sweep, for its metrics."""

    stuck: int = 0
    """Delivery states whose retries had no worker."""
    open_breakers: int = 0
    """URLs whose breaker was open when their last session ended, and functions with an open one."""
    late_ms: int = 0
    """By how much the latest message of a schedule was put behind its time."""
    oldest_age_ms: int = 0
    """Age of the oldest message that could be received and is not."""
    undecided: int = 0
    """Half messages that were rolled back, since their producers did not decide in time."""
    behind_ms: int = 0
    """Time since the part that is furthest behind finished last."""


class _Scheduled:
    """If there are schedules, by the item that the last sweep of this environment wrote.

    A new environment does not know, and looks.
    """

    def __init__(self) -> None:
        self.known = self.looked = False
        self.flag_ms: int | None = None


Part = Callable[[Core, int, SweepResult], bool]
"""Works until a deadline. Returns True if it finished."""


def sweep(core: Core, max_ms: int) -> SweepResult:
    """Restarts stopped work, dead-letters messages above their age limit, and writes figures.

    Works for at most about `max_ms`.
    """
    swept = SweepResult()
    deadline_ms = core.now_ms() + max_ms
    parts = list(_PARTS.items())
    core.random.shuffle(parts)
    parts.append(("halves", _end_halves))  # a single query if there are none
    parts.insert(0, ("schedules", _fire_schedules))  # first: they have times
    finished = {}
    for left, (name, part) in zip(range(len(parts), 0, -1), parts, strict=True):
        now_ms = core.now_ms()
        finished[name] = False
        with log_and_continue(f"the sweep's {name} failed"):
            finished[name] = part(core, now_ms + (deadline_ms - now_ms) // left, swept)
    swept.behind_ms = _note_rounds(core, finished)
    known = core.memory(_Scheduled)
    if known.flag_ms is not None and not known.looked:
        # The first schedule was made since the last sweep: it may be due before the next one.
        with log_and_continue("the sweep's first schedules failed"):
            _fire_schedules(core, deadline_ms, swept)
    return swept


def _note_rounds(core: Core, finished: dict[str, bool]) -> int:
    """Notes which parts finished now. Returns the time since the part furthest behind did."""
    now_ms = core.now_ms()
    changes = [
        f"#{name} = :now" if done else f"#{name} = if_not_exists(#{name}, :now)"
        for name, done in finished.items()
    ]
    rounds = core.store.write(
        "UpdateItem",
        {
            "TableName": core.tables.usage,
            "Key": key(*ROUNDS),
            "UpdateExpression": "SET " + ", ".join(changes),
            "ExpressionAttributeNames": {f"#{name}": name for name in finished},
            "ExpressionAttributeValues": {":now": {"N": str(now_ms)}},
            "ReturnValues": "ALL_NEW",
        },
    )
    assert rounds is not None
    flag = rounds.get(FLAG)
    core.memory(_Scheduled).flag_ms = int(flag["N"]) if flag else None
    return now_ms - min(int(rounds[name]["N"]) for name in finished)


def _resume_operations(core: Core, deadline_ms: int, swept: SweepResult) -> bool:
    """Restarts operations whose runner stopped."""
    pointers = list(operations.running(core))
    core.random.shuffle(pointers)
    for pointer in pointers:
        if core.now_ms() >= deadline_ms:
            return False
        with log_and_continue(f"operation {pointer.id} could not be resumed"):
            _resume(core, pointer)
    return True


def _resume(core: Core, pointer: operations.Pointer) -> None:
    try:
        operation = operations.get(core, pointer.account, pointer.id)
    except OperationNotFound:
        return
    if core.now_ms() >= operation.held_until_ms:
        operations.resume(core, pointer)


def _end_halves(core: Core, deadline_ms: int, swept: SweepResult) -> bool:
    """Rolls back half messages that nobody decided in time."""
    ended = end_overdue(core, deadline_ms)
    swept.undecided += ended.halves
    return ended.done


def _push_on(core: Core, deadline_ms: int, swept: SweepResult) -> bool:
    """Restarts retries that have no worker, and deliveries whose event was lost.

    For lost events only subscriptions that keep messages are read.
    """
    found = list(delivery_items.read_all(core))
    core.random.shuffle(found)
    keeping = _keeping(core) if found else set()
    for each in found:
        if core.now_ms() >= deadline_ms:
            return False
        with log_and_continue(f"subscription {each.subscription_id} could not be pushed on"):
            swept.open_breakers += each.circuit.is_open and not each.paused
            keeps = each.subscription_id in keeping
            swept.stuck += delivery.resume_if_stuck(core, each, keeps=keeps)
    return True


def _keeping(core: Core) -> set[str]:
    """Returns the ids of all resources that keep messages."""
    return {each.resource_id for each in read_all_counters(core) if each.kept.messages}


def _visit(core: Core, deadline_ms: int, swept: SweepResult) -> bool:
    visits = visit_all(core, deadline_ms)
    swept.open_breakers += visits.open_breakers
    if visits.oldest_ms is not None:
        swept.oldest_age_ms = max(0, core.now_ms() - visits.oldest_ms)
    return visits.done


def _fire_schedules(core: Core, deadline_ms: int, swept: SweepResult) -> bool:
    """Fires schedules, if there are any."""
    known = core.memory(_Scheduled)
    known.looked = known.flag_ms is not None or not known.known
    if not known.looked:
        return True
    known.known = True
    # Few deployments have schedules: the others load nothing of time zones.
    from cirrusmq.schedules.firing import fire_due

    done, late_ms = fire_due(core, deadline_ms, known.flag_ms)
    swept.late_ms = max(swept.late_ms, late_ms)
    return done


def _note_formats(core: Core, deadline_ms: int, swept: SweepResult) -> bool:
    """Writes down the release's formats for clients that call the tables themselves."""
    if core.settings.offers_in_process:
        note_formats(core)
    return True


_PARTS: dict[str, Part] = {
    "operations": _resume_operations,
    "parked": lambda core, deadline_ms, _: resume(core, deadline_ms),
    "unprocessed": lambda core, deadline_ms, _: unprocessed.take(core, deadline_ms),
    "pushes": _push_on,
    "visits": _visit,
    "gauges": lambda core, deadline_ms, _: write_gauges(core, deadline_ms),
    "formats": _note_formats,
}
