"""A queue's backlog, for a receiver that begins with the earliest message.

Messages from before the queue's log are in its own parcels alone, which its consumers receive and
delete while an operation copies them. So in that time each write that ends such a message notes the
time, and a parcel that would go is kept in the archive. The messages at a given time are then known
for good:

    the answer of the PUT: T      m1 m2 m3 are there          later messages are in the log
    a consumer                    deletes m1 ── gives m2 back: it moves ──────────────>
    operation                     copies m3 ── m2, from its place at T ── m1, from the archive

A copy has a key that follows from its parcel's key at T, and is put if absent. No copy can be
received before the operation is done with the backlog, so a step may run again.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from cirrusmq.model.parcel import DELETED, GONE, MOVED, Parcel
from cirrusmq.model.queue import Queue
from cirrusmq.model.transitions import under_key
from cirrusmq.queues.queues import find_queue, update_queue, update_writes
from cirrusmq.queues.receivers import Receiver
from cirrusmq.runtime.core import Core
from cirrusmq.storage import directory, directory_writes
from cirrusmq.storage.directory import receiver_key
from cirrusmq.storage.optimistic_locking import DirectoryChange, change

_ENDED = (DELETED, GONE, MOVED)


def read_by(core: Core, queue: Queue, operation_id: str) -> list[dict[str, Any]]:
    """Returns a transaction's writes that keep the backlog until the operation is done with it."""
    found = find_queue(core, queue.account, queue.name)
    readers = [*found.value.backlog_readers, operation_id]
    return update_writes(core, found, replace(found.value, backlog_readers=readers))


def end_reading(core: Core, queue: Queue, operation_id: str) -> None:
    """Ends the operation's use of the backlog: it is done with it, or has failed."""
    if operation_id in queue.backlog_readers:
        update_queue(core, queue.account, queue.name, lambda now: _without(now, operation_id))


def _without(queue: Queue, operation_id: str) -> Queue:
    readers = [each for each in queue.backlog_readers if each != operation_id]
    return replace(queue, backlog_readers=readers)


def finish_filling(core: Core, queue: Queue, receiver: Receiver) -> None:
    """Makes everything receivable: the receiver's operation has put the last message."""

    def plan() -> DirectoryChange[None]:
        key = receiver_key(queue.id, receiver.name)
        found = directory.read(core, key, Receiver)
        if found is None or found.value.id != receiver.id or not found.value.filling:
            return DirectoryChange(result=None)
        after = replace(found.value, filling=False)
        return DirectoryChange(
            result=None,
            writes=[directory_writes.put_over(core, key, after, found)],
            keys=[receiver_key(queue.id, "")],
        )

    change(core, plan)


def alive_at(parcel: Parcel, moment_ms: int, now_ms: int) -> list[int]:
    """Returns the indexes of messages that were in the parcel at a moment and are not over.

    A message that has left the parcel has the time of that, if it was not before the moment. A
    parcel that was re-keyed since had none of its messages then.
    """
    if parcel.moved_ms >= moment_ms or now_ms >= parcel.expires_ms:
        return []
    return [
        index
        for index, state in enumerate(parcel.visible_ms)
        if parcel.live(index) or (state in _ENDED and parcel.first_received_ms[index] >= moment_ms)
    ]


def copy_for(
    receiver_id: str, parcel: Parcel, indexes: list[int], now_ms: int, *, ordered: bool
) -> Parcel:
    """Returns the receiver's parcel of the messages at `indexes`, which it has not received.

    The parcel keeps the key that its send made, so that a delay goes on. A re-keyed one has a later
    key than its messages are due for this receiver: the copy's begins with the time of their
    sending.
    """
    as_sent = ordered or "." not in parcel.parcel_id
    sort_key = parcel.sort_key
    if not as_sent:
        key = f"{parcel.sent_ms:013d}#{parcel.key_ms:013d}#{parcel.parcel_id}"
        sort_key = parcel.key_prefix + key
    count = len(indexes)
    picked = under_key(parcel, indexes, parcel.sent_ms, parcel.sent_ms, None)
    return replace(
        picked,
        source_id=receiver_id,
        sort_key=sort_key,
        parcel_id=parcel.parcel_id,
        visible_ms=tuple(_due_ms(parcel, index, now_ms, as_sent=as_sent) for index in indexes),
        receives=(0,) * count,
        untried={},
        first_received_ms=(0,) * count,
        moved_ms=0,
        fanned_out=True,
        invokes=False,
        errors={},
    )


def _due_ms(parcel: Parcel, index: int, now_ms: int, *, as_sent: bool) -> int:
    """Returns when a message is due for a receiver that has not received it: its delay goes on."""
    if not parcel.live(index) and not as_sent:  # put off, perhaps
        return parcel.key_ms
    if parcel.delayed(index, now_ms) and not parcel.awaits_group(index):
        return parcel.visible_ms[index]
    return parcel.sent_ms
