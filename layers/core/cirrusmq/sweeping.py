"""The minute's sweep: what nobody else will come by to do."""

from __future__ import annotations

from cirrusmq import operations, parking, pushing, schedules
from cirrusmq.core import Core
from cirrusmq.dead_letters import give_up
from cirrusmq.errors import CirrusMQError, OperationNotFound
from cirrusmq.gauges import write_gauges
from cirrusmq.giving_up import reason_to_give_up
from cirrusmq.limits import LONGEST_WAIT_MS
from cirrusmq.pushes import Push, expiring, has_waiting, push_of
from cirrusmq.queues import Resource, get_queue
from cirrusmq.receivers import all_sources
from cirrusmq.scan import scan_partition
from cirrusmq.schedules import Schedule
from cirrusmq.source import Source
from cirrusmq.storage import directory


def sweep(core: Core, most_ms: int) -> int:
    """Start again what stopped: operations, retries; give messages up that grew too old.

    Works for at most about `most_ms`; the next minute's sweep starts elsewhere. What may take
    long gets half of the time that is left, so that what comes behind it always has some. Answers
    how many retry schedules nobody was at.
    """
    deadline_ms = core.now_ms() + most_ms
    for pointer in operations.running(core):
        try:
            operation = operations.get(core, pointer.account, pointer.id)
        except OperationNotFound:
            continue
        if core.now_ms() >= operation.held_until_ms:
            operations.resume(core, pointer)
    parking.resume(core)
    stuck = _push_on(core)
    _give_up_aged(core, _half(core, deadline_ms))
    write_gauges(core, _half(core, deadline_ms))
    return stuck


def _half(core: Core, deadline_ms: int) -> int:
    now_ms = core.now_ms()
    return now_ms + (deadline_ms - now_ms) // 2


def _push_on(core: Core) -> int:
    """Start retry schedules again that nobody is at, and deliveries whose event was lost.

    Answers how many of the former there were.
    """
    stuck = 0
    for schedule in schedules.read_all(core):
        push = push_of(core, schedule)
        if push is None:
            continue
        if schedule.stuck(core.now_ms()):
            stuck += 1
            error = schedule.last_error or ""
            pushing.begin_retrying(push, schedule, schedule.next_due_ms, error)
        elif _has_work(push, schedule):
            pushing.notify(core, push.subscription)
    return stuck


def _has_work(push: Push, schedule: Schedule) -> bool:
    if schedule.state == "delivering":
        return has_waiting(push, schedule)
    return any(True for _ in expiring(push, schedule))


def _give_up_aged(core: Core, deadline_ms: int) -> None:
    aged = list(directory.read_list(core, directory.AGED, "", Resource))
    core.random.shuffle(aged)
    for resource in aged:
        if core.now_ms() >= deadline_ms:
            return
        _give_up_by_age(core, resource, deadline_ms)


def _give_up_by_age(core: Core, resource: Resource, deadline_ms: int) -> None:
    try:
        queue = get_queue(core, resource.account, resource.name)
    except CirrusMQError:
        return  # deleted meanwhile
    # What was re-keyed to a retry's due time before max_age_seconds was set may lie ahead of now.
    until_ms = queue.modified_ms + LONGEST_WAIT_MS
    for source in all_sources(core, queue):
        partitions = list(range(source.partitions))
        core.random.shuffle(partitions)
        for partition in partitions:
            if core.now_ms() >= deadline_ms:
                return
            _give_up_in_partition(core, source, partition, until_ms, deadline_ms)


def _give_up_in_partition(
    core: Core, source: Source, partition: int, until_ms: int, deadline_ms: int
) -> None:
    now_ms = core.now_ms()
    for parcel in scan_partition(core, source, partition, now_ms, until_ms):
        if core.now_ms() >= deadline_ms:
            return
        if parcel.sent_ms <= source.purged_ms:
            continue
        reasons = [
            reason_to_give_up(source, parcel, place, now_ms) for place in range(parcel.count)
        ]
        if "max_age" in reasons:
            give_up(core, source, parcel, now_ms)
