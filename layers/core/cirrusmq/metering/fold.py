"""A batch of the message table's stream as usage and steps of counters: pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import add

import msgspec

from cirrusmq.metering.usage import (
    Change,
    Event,
    Usage,
    UsageKey,
    events,
    kept,
    published,
    push_events,
    rewindable,
)
from cirrusmq.publishing.records import is_topic_record, read_record
from cirrusmq.queues.resources import Resource
from cirrusmq.runtime.store import Item
from cirrusmq.storage.counters import Kept
from cirrusmq.storage.parcels import ARCHIVE, LOG, read_parcel

MOST_RESOURCES = 90
"""A transaction has at most 100 writes: the record, and a counter for each resource."""


class StreamRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One change of an item, as the stream tells it."""

    event_id: str
    time_ms: int
    before: Item | None
    after: Item | None
    by_ttl: bool

    @property
    def pk(self) -> str:
        """Partition key of the item."""
        item = self.after or self.before
        assert item is not None
        return str(item["pk"]["S"])


class Folded(msgspec.Struct, frozen=True, kw_only=True):
    """The sum of a batch, or of as much of it as fits into a transaction."""

    records: int
    """From the first on."""
    usage: dict[UsageKey, Usage]
    steps: dict[str, Kept]
    """How much more each resource keeps than before, by its id."""


def fold(records: Sequence[StreamRecord], resource_of: Callable[[str], Resource]) -> Folded:
    """Add up a batch; `resource_of` finds a resource by its id."""
    covered = _within_transaction(records)
    usage: dict[UsageKey, Usage] = {}
    steps: dict[str, Kept] = {}
    for record in covered:
        kind, resource_id, _ = record.pk.split("#")
        if kind == LOG:
            found = _published(record, resource_id)
        else:
            change = _change(record)
            step = _step(change, archived=kind == ARCHIVE)
            steps[resource_id] = Kept(*map(add, steps.get(resource_id, Kept()), step))
            found = iter(()) if kind == ARCHIVE else _billed(change, resource_of(resource_id))
        for event in found:
            place = UsageKey(event.source_id, event.kind, record.time_ms // 60_000)
            usage[place] = usage.get(place, Usage()).plus(event)
    return Folded(records=len(covered), usage=usage, steps=steps)


def _within_transaction(records: Sequence[StreamRecord]) -> Sequence[StreamRecord]:
    resources: set[str] = set()
    for number, record in enumerate(records):
        resources.add(record.pk.split("#")[1])
        if len(resources) > MOST_RESOURCES:
            return records[:number]
    return records


def _published(record: StreamRecord, topic_id: str) -> Iterator[Event]:
    if record.before is None and record.after is not None and is_topic_record(record.after):
        messages = read_record(record.after).messages
        yield published(topic_id, len(messages), sum(message.size_bytes for message in messages))


def _change(record: StreamRecord) -> Change:
    return Change(
        before=read_parcel(record.before) if record.before else None,
        after=read_parcel(record.after) if record.after else None,
        by_ttl=record.by_ttl,
    )


def _step(change: Change, *, archived: bool) -> Kept:
    messages, size = (0, 0) if archived else kept(change)
    return Kept(messages, size, rewindable(change))


def _billed(change: Change, resource: Resource) -> Iterator[Event]:
    if resource.pushed:
        return push_events(change)
    return events(change, "sent" if resource.kind == "queue" else "delivered")
