"""Purging a queue: no message sent before the call is ever returned again.

The floor in the queue's document does it, at once; the steps then remove the parcels below it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cirrusmq.model.parcel import DELETED, Parcel
from cirrusmq.model.queue import Queue
from cirrusmq.queues import operations
from cirrusmq.queues.operations import Operation, Run, Step
from cirrusmq.queues.queues import update_queue
from cirrusmq.queues.receivers import all_sources
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key
from cirrusmq.storage.parcels import (
    ARCHIVE,
    PARCELS,
    archive_sort_key,
    partition_key,
    sort_key,
)
from cirrusmq.storage.queries import LAST_KEY, Progress, remaining, scan_pages


def purge(core: Core, queue: Queue, by: str) -> Operation:
    """Purges the queue, its receivers and its archive; in force when this returns.

    by: the id of the access key that asks for it.
    """
    floor_ms = core.floor_ms()
    purged = update_queue(
        core,
        queue.account,
        queue.name,
        lambda before: msgspec.structs.replace(before, purged_ms=max(before.purged_ms, floor_ms)),
    )
    core.wait_past(purged.purged_ms)  # a message sent from now on is above the floor
    return operations.start(core, purged, "purge", {"until_ms": purged.purged_ms}, by)


def steps(core: Core, run: Run) -> Iterator[Step]:
    """Removes parcels and archived parcels sent until the operation's floor."""
    floor_ms = run.operation.details["until_ms"]
    partitions = [
        partition_key(kind, source.id, partition)
        for source in all_sources(core, run.queue())
        for kind in (PARCELS, ARCHIVE)
        for partition in range(source.partitions)
    ]
    for pk, behind in remaining(partitions, run.operation.progress):
        archived = pk.startswith(f"{ARCHIVE}#")
        key_of = archive_sort_key if archived else sort_key
        for page in scan_pages(core, pk, behind=behind):
            below = [parcel for parcel in page.parcels if parcel.sent_ms <= floor_ms]
            keys = [key(pk, key_of(parcel)) for parcel in below]
            list(core.in_parallel(lambda each: _remove(core, each, floor_ms), keys))
            done = sum(_messages(parcel, archived) for parcel in below)
            yield Step(Progress(pk, page.more_after or LAST_KEY), done)


def _remove(core: Core, place: Item, floor_ms: int) -> None:
    """Removes a parcel, if the one under its key was sent until the floor.

    steps: read t = 1 ──────────────────────────────────────> delete if t <= 2: refused
    a send that is repeated: t = 3, under the same key ──> stored
    """
    request = {
        "TableName": core.tables.messages,
        "Key": place,
        "ConditionExpression": "t <= :floor",
        "ExpressionAttributeValues": {":floor": {"N": str(floor_ms)}},
    }
    core.store.try_write("DeleteItem", request)


def _messages(parcel: Parcel, archived: bool) -> int:
    if archived:
        return parcel.visible_ms.count(DELETED)
    return sum(map(parcel.live, range(parcel.count)))
