"""Rewinding: deleted messages become active again, in order of sending.

A deleted message notes when it was deleted (in the place of when it was first received), and a
rewind takes only messages deleted before it began. So a message that is consumed while the rewind
runs, or consumed again after it, does not appear twice, and a step may run again.

In an ordered queue the first rewound message of a group waits until the group is free, and the
others behind it (see `lifecycle.rewound_groups`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from cirrusmq.base.errors import InvalidParameter, NotRewindable
from cirrusmq.base.timestamps import format_time, parse_moment
from cirrusmq.lifecycle.moves import REWOUND
from cirrusmq.lifecycle.rewound_groups import group_of, let_in
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.queue import Queue
from cirrusmq.model.source import Source, rewindable, rewindable_until
from cirrusmq.model.transitions import Changes, changed, reopened
from cirrusmq.queues import operations
from cirrusmq.queues.operations import Operation, Run, Step
from cirrusmq.queues.receivers import all_sources, source_with_id
from cirrusmq.receiving.heads.items import group_head, void_mark
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed, TransactionRefused, key, put_if_absent
from cirrusmq.storage.changes import as_read, change
from cirrusmq.storage.parcels import (
    ARCHIVE,
    PARCELS,
    archive_sort_key,
    parcel_item,
    parcel_key,
    partition_key,
    sort_key,
)
from cirrusmq.storage.queries import Progress, portions, remaining, scan_pages

_LET_IN = 20
"""Groups that are released between two saves of the progress."""


class RewindRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a rewind."""

    to: Annotated[
        str | int | float,
        Meta(description="an RFC 3339 time, or seconds since the beginning of 1970 in UTC"),
    ]


def rewind(core: Core, queue: Queue, request: RewindRequest, by: str) -> Operation:
    """Makes every deleted message sent at `to` or later active again.

    by: the id of the access key that asks for it. Raises NotRewindable if the queue does not keep
    deleted messages for that long.
    """
    to_ms = parse_moment("to", request.to)
    now_ms = core.now_ms()
    if to_ms > now_ms:
        raise InvalidParameter("to", f"must not be in the future; it is now {format_time(now_ms)}")
    if not queue.attributes.rewind_seconds:
        raise NotRewindable("rewind_seconds is 0: the queue keeps no deleted messages")
    earliest_ms = now_ms - queue.attributes.rewind_seconds * 1000
    if to_ms < earliest_ms:
        raise NotRewindable(f"the earliest time to rewind to is {format_time(earliest_ms)}")
    until_ms = core.floor_ms()
    core.wait_past(until_ms)  # messages deleted from now on stay deleted
    return operations.start(core, queue, "rewind", {"to_ms": to_ms, "until_ms": until_ms}, by)


def steps(core: Core, run: Run) -> Iterator[Step]:
    """Rewinds deleted messages of parcels still there, then the archive in order of sending."""
    to_ms, until_ms = run.operation.details["to_ms"], run.operation.details["until_ms"]
    partitions = [
        partition_key(kind, source.id, partition)
        for source in all_sources(core, run.queue())
        for kind in (PARCELS, ARCHIVE)
        for partition in range(source.partitions)
    ]
    # "Q" sorts before "R": live parcels are first, so that none is looked at twice.
    waiting: dict[str, Parcel] = {}
    for pk, behind in remaining(partitions, run.operation.progress):
        archived = pk.startswith(f"{ARCHIVE}#")
        start = f"{to_ms:013d}" if archived else ""
        bring_back = _restore if archived else _reopen
        key_of = archive_sort_key if archived else sort_key
        for parcels, reached in portions(scan_pages(core, pk, start, behind=behind), key_of):
            done = 0
            for parcel in parcels:
                source = source_with_id(core, run.queue(), parcel.source_id)
                if source is None:
                    continue  # a receiver that is deleted by now
                indexes = _to_rewind(core, source, parcel, to_ms, until_ms)
                group = f"{pk.partition('#')[2]}#{group_of(parcel)}"
                waits = source.ordered and not (archived and group in waiting)
                now_ms = core.now_ms()
                changes = {index: reopened(parcel, index, now_ms, waits=waits) for index in indexes}
                if indexes and bring_back(core, source, parcel, changes):
                    done += len(indexes)
                    if waits:
                        within = group if archived else f"{group}#{parcel.sort_key}"
                        waiting[within] = changed(parcel, changes)
            yield Step(Progress(pk, reached), done)
    # If a group is not free, or this stops here, its receivers end the wait.
    for number, first in enumerate(waiting.values()):
        let_in(core, first, core.now_ms())
        if number % _LET_IN == 0:
            yield Step(run.operation.progress, 0)


def _to_rewind(core: Core, source: Source, parcel: Parcel, to_ms: int, until_ms: int) -> list[int]:
    now_ms = core.now_ms()
    if parcel.sent_ms < to_ms or parcel.sent_ms <= source.purged_ms:
        return []
    if rewindable_until(source, parcel) <= now_ms:
        return []
    return [
        index
        for index in range(parcel.count)
        if rewindable(source, parcel, index) and parcel.first_received_ms[index] <= until_ms
    ]


def _restore(core: Core, source: Source, parcel: Parcel, changes: Changes) -> bool:
    """Moves an archived parcel back under its key, with these changes. Returns False if refused.

    If that key is taken, the same send is in the queue already, by a repeated attempt: then the
    archived copy stays.
    """
    pk = partition_key(ARCHIVE, parcel.source_id, parcel.partition)
    removal = {
        "TableName": core.tables.messages,
        "Key": key(pk, archive_sort_key(parcel)),
        "ConditionExpression": "attribute_exists(pk)",
    }
    active = replace(changed(parcel, changes), moved_from=REWOUND)
    put = put_if_absent(core.tables.messages, parcel_item(active))
    try:
        core.store.transact([{"Delete": removal}, {"Put": put}, *_voided(core, source, parcel)])
    except TransactionRefused:
        return False
    return True


def _reopen(core: Core, source: Source, parcel: Parcel, changes: Changes) -> bool:
    """Makes deleted messages of a parcel active under their key. Returns False if refused."""
    # Deleted again since, a message has another time of its deletion.
    still = as_read(parcel, changes, "visible_ms", "first_received_ms")
    request = change(core.tables.messages, parcel_key(parcel), changes, still)
    voided = _voided(core, source, parcel)
    try:
        if voided:
            core.store.transact([{"Update": request}, *voided])
        else:
            core.store.write("UpdateItem", request)
    except (ConditionFailed, TransactionRefused):
        return False
    return True


def _voided(core: Core, source: Source, parcel: Parcel) -> list[dict[str, Any]]:
    """Returns the write that makes scans see the messages that come back to an ordered group."""
    if not source.ordered:
        return []
    pk = partition_key(PARCELS, parcel.source_id, parcel.partition)
    head = group_head(pk, group_of(parcel))
    return [{"Update": void_mark(core.tables.messages, head, core.now_ms())}]
