"""Giving a new receiver the messages sent before it was created: the backlog, then the log.

    the queue's parcels   the parcels before the log, as they were when the receiver was created
    its archive           parcels that consumers have ended since
    the log               record after record, in order: the progress is the frontier

The message alone decides which of the two has it: its log record says so, or there is none.
Nothing of the backlog is received before the log is begun with (`queues.reader_backlog`), and
nothing of the log behind the frontier (`queues.frontiers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cirrusmq.base import limits
from cirrusmq.base.errors import ReceiverNotFound
from cirrusmq.fanout.reader_parcels import put_side_by_side
from cirrusmq.fanout.record_shares import receivers_parcels
from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.selection import compile_filter
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.queue import Queue
from cirrusmq.model.source import Source, queue_source
from cirrusmq.operations.replay import last_key, record_by_record, wait_for_fan_out
from cirrusmq.publishing.log_reader import log_between
from cirrusmq.queues.frontiers import NOTHING
from cirrusmq.queues.operations import Run, Step
from cirrusmq.queues.reader_backlog import alive_at, copy_for, end_reading, finish_filling
from cirrusmq.queues.receiver_log import EARLIEST
from cirrusmq.queues.receivers import Receiver
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item
from cirrusmq.storage import directory
from cirrusmq.storage.bodies.contents import read_contents
from cirrusmq.storage.directory import receiver_key
from cirrusmq.storage.parcels import ARCHIVE, PARCELS, log_key, partition_key
from cirrusmq.storage.queries import LAST_KEY, Progress, remaining, scan_pages


def steps(core: Core, run: Run) -> Iterator[Step]:
    """Makes the receiver's parcels; parcels that fan_out has made stay as they are."""
    operation = run.operation
    try:
        receiver = _receiver(core, run)
        if operation.progress.after != LAST_KEY or operation.progress.pk != operation.queue_id:
            yield from _fill(core, run, receiver)
        finish_filling(core, run.queue(), receiver)
    except ReceiverNotFound:
        end_reading(core, run.queue(), operation.id)
        raise


def _fill(core: Core, run: Run, receiver: Receiver) -> Iterator[Step]:
    operation, queue = run.operation, run.queue()
    until_ms = operation.details["until_ms"]
    begun = operation.progress.pk == queue.id
    if operation.details.get("backlog") and not begun:
        yield from _give_backlog(core, run)
    end_reading(core, run.queue(), operation.id)
    wait_for_fan_out(core, until_ms)
    after = operation.progress.after if begun else _first_key(receiver)
    if not begun:
        yield Step(Progress(queue.id, after), 0)
    records = log_between(
        core, queue.id, queue.attributes.partitions, after, last_key(core, until_ms)
    )

    def deliver_records(some: Sequence[Item]) -> int:
        now_ms, present = core.now_ms(), _receiver(core, run)
        # Later ones are fan_out's alone: messages that the receiver has consumed stay consumed.
        earlier = [
            item
            for item in some
            if int(item["t"]["N"]) <= until_ms and now_ms < int(item["x"]["N"])
        ]
        parcels = [each for item in earlier for each in receivers_parcels(item, [present])]
        return put_side_by_side(core, parcels, run.queue().purged_ms)

    yield from record_by_record(queue.id, records, after, deliver_records)


def _first_key(receiver: Receiver) -> str:
    """Returns a key before the log's first record for the receiver.

    A record's key has the time of its attempt, which may be before its sending; the key of a
    message from another queue is older still.
    """
    if receiver.start == EARLIEST:
        return NOTHING
    return f"{receiver.start_ms - limits.KEY_SLACK_MS:013d}"


def _give_backlog(core: Core, run: Run) -> Iterator[Step]:
    """Copies the messages that were in the queue at `until_ms` and are in no log.

        the PUT     keep the backlog! ── caches turned over: T ── answers
        a consumer    read the queue before ──────── gives m2 back, without saying when
        here                                         waits until no such call is left

    A read unit for 4 KiB of the queue's parcels, and a write unit for each copied.
    """
    moment_ms, progress = run.operation.details["until_ms"], run.operation.progress
    done_ms = moment_ms + (limits.CALL_MS if core.cache.lag_ms else 0)
    if core.now_ms() < done_ms:
        core.wait_until(done_ms)
        yield Step(progress, 0)  # it took as long as a step may
    queue = run.queue()
    partitions = [
        partition_key(kind, queue.id, number)
        for kind in (PARCELS, ARCHIVE)
        for number in range(queue.attributes.partitions)
    ]
    # "Q" sorts before "R": a parcel that leaves the one during the read is found in the other.
    for pk, behind in remaining(partitions, progress):
        for page in scan_pages(core, pk, behind=behind):
            receiver, queue = _receiver(core, run), run.queue()
            copies = _copies(core, queue, receiver, page.parcels, moment_ms)
            done = put_side_by_side(core, copies, queue.purged_ms)
            yield Step(Progress(pk, page.more_after or LAST_KEY), done)


def _copies(
    core: Core, queue: Queue, receiver: Receiver, parcels: Sequence[Parcel], moment_ms: int
) -> list[Parcel]:
    now_ms = core.now_ms()
    source = queue_source(queue, now_ms)
    there = [
        (parcel, indexes)
        for parcel in _outside_log(core, queue, parcels)
        if source.keeps(parcel) and (indexes := alive_at(parcel, moment_ms, now_ms))
    ]
    wanted = _selected(core, source, receiver, there)
    return [
        copy_for(receiver.id, parcel, indexes, now_ms, ordered=source.ordered)
        for parcel, indexes in wanted
        if indexes
    ]


def _outside_log(core: Core, queue: Queue, parcels: Sequence[Parcel]) -> list[Parcel]:
    """Returns the parcels whose messages are in no complete log.

    If a message was sent when the log was turned on, its record's header shows it. A dead letter
    that was given back since belongs to the default receiver alone.
    """
    since_ms = queue.log_since_ms
    assert since_ms is not None
    before = [
        parcel
        for parcel in parcels
        if parcel.sent_ms < queue.backlog_before_ms
        and not (parcel.came_alone and parcel.sent_ms >= since_ms)
    ]
    unsure = {
        _record_key(queue, parcel)
        for parcel in before
        if parcel.sent_ms >= since_ms - limits.LOG_UNSURE_MS and parcel.content is None
    }
    records = core.store.get_many(core.tables.messages, sorted(unsure), consistent=True)
    logged = {key for key, record in records.items() if "h" in record}
    return [parcel for parcel in before if _record_key(queue, parcel) not in logged]


def _record_key(queue: Queue, parcel: Parcel) -> tuple[str, str]:
    return log_key(parcel.log or f"{queue.id}#{parcel.partition}", parcel.record_id)


def _selected(
    core: Core, source: Source, receiver: Receiver, there: list[tuple[Parcel, list[int]]]
) -> list[tuple[Parcel, list[int]]]:
    """Returns the messages that the receiver's filter selects; reads them only if it has one."""
    if receiver.filter is None:
        return there
    selection = compile_filter(receiver.filter, "queue")
    contents = read_contents(core, source, there)
    return [
        (
            parcel,
            [
                index
                for index, each in found.items()
                if selection.matches(Filterable(each.tags, "", each.attributes))
            ],
        )
        for (parcel, _), found in zip(there, contents, strict=True)
    ]


def _receiver(core: Core, run: Run) -> Receiver:
    """Returns the present receiver. Raises ReceiverNotFound if the operation's one is deleted."""
    details = run.operation.details
    key = receiver_key(run.operation.queue_id, details["receiver"])
    found = directory.read(core, key, Receiver)
    if found is None or found.value.id != details["receiver_id"]:
        raise ReceiverNotFound
    return found.value
