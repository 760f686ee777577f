"""Purging a queue: nothing sent before the call is ever returned again.

The floor in the queue's document does it, at once; the steps then remove what lies below it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cirrusmq import operations
from cirrusmq.core import Core
from cirrusmq.operations import Operation, Progress, Run, Step
from cirrusmq.parcel import DELETED, Parcel
from cirrusmq.queue import Queue
from cirrusmq.queues import update_queue
from cirrusmq.receivers import all_sources
from cirrusmq.scan import remaining, scan_pages
from cirrusmq.storage.parcels import ARCHIVE, PARCELS, archive_sort_key, partition_key

_DELETES_PER_CALL = 25


def purge(core: Core, queue: Queue) -> Operation:
    """Purge the queue, its receivers and what could be rewound; in force when this returns."""
    purged = update_queue(
        core,
        queue.account,
        queue.name,
        lambda before: msgspec.structs.replace(before, purged_ms=core.now_ms()),
    )
    core.wait_until(purged.purged_ms + 1)  # a message sent from now on lies above the floor
    return operations.start(core, purged, "purge", {"until_ms": purged.purged_ms})


def steps(core: Core, run: Run) -> Iterator[Step]:
    """Remove parcels and archived parcels sent until the operation's floor."""
    floor_ms = run.operation.details["until_ms"]
    partitions = [
        partition_key(kind, source.id, partition)
        for source in all_sources(core, run.queue())
        for kind in (PARCELS, ARCHIVE)
        for partition in range(source.partitions)
    ]
    for pk, behind in remaining(partitions, run.operation.progress):
        for page in scan_pages(core, pk, behind=behind):
            below = [parcel for parcel in page.parcels if parcel.sent_ms <= floor_ms]
            archived = pk.startswith(f"{ARCHIVE}#")
            keys = [(pk, _key(parcel, archived)) for parcel in below]
            for first in range(0, len(keys), _DELETES_PER_CALL):
                core.store.delete_many(
                    core.tables.messages, keys[first : first + _DELETES_PER_CALL]
                )
            done = sum(_messages(parcel, archived) for parcel in below)
            yield Step(Progress(pk, page.more_after or "~"), done)


def _key(parcel: Parcel, archived: bool) -> str:
    return archive_sort_key(parcel) if archived else parcel.sort_key


def _messages(parcel: Parcel, archived: bool) -> int:
    if archived:
        return parcel.visible_ms.count(DELETED)
    return sum(map(parcel.live, range(parcel.count)))
