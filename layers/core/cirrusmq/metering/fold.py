"""A batch of the message table's stream as usage and as steps of counters: pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import add

import msgspec

from cirrusmq.base import limits
from cirrusmq.metering.usage import (
    Event,
    Kind,
    ParcelChange,
    Usage,
    UsageKey,
    events,
    first_waits,
    kept,
    push_events,
    rewindable,
)
from cirrusmq.model.steps import unlawful
from cirrusmq.publishing.records import is_topic_record, read_record
from cirrusmq.queues.resources import Resource
from cirrusmq.receiving.replies.items import REPLIES, queue_and_size
from cirrusmq.runtime.store import Item
from cirrusmq.storage.counters import Kept, level_name_of, rate_name
from cirrusmq.storage.parcels import ARCHIVE, LOG, read_parcel

_SECOND_MS = 1_000
"""The stream's times are whole seconds."""
MAX_RESOURCES = 90
"""A transaction has at most 100 writes: the record, and a counter for each resource, also for the
resources that messages came from."""


class StreamRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One change of an item, as the stream reports it."""

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
    """The sum of a batch, or of the part of it that fits into a transaction."""

    records: int
    """Number of records in the sum, from the first on."""
    usage: dict[UsageKey, Usage]
    steps: dict[str, Kept]
    """By resource id, how much more it keeps than before."""
    rates: dict[str, Counter[str]]
    """By resource id and attribute, the numbers to add to the intervals of the last hour, and to
    the messages kept of each priority."""
    waits_ms: dict[bool, list[int]]
    """Waits of messages for their first receive (False) and for their first post (True)."""
    faults: list[str]
    """Writes of parcels that no step allows: key, and why."""


class _Record(msgspec.Struct, frozen=True):
    """The usage and the steps of one record of the stream."""

    resource_id: str
    step: Kept | None
    """None for a topic's log and for replies, of which nothing is kept."""
    events: list[Event]
    """At most one of each source and kind."""
    waits_ms: tuple[int, ...] = ()
    pushed: bool = False
    level: str | None = None
    """The counter's attribute for the parcel's priority, in a source with priorities."""
    fault: str | None = None

    @property
    def counters(self) -> set[str]:
        """The resources whose counters change: a message's move is an event of two."""
        return {self.resource_id, *(event.source_id for event in self.events)}


def fold(records: Sequence[StreamRecord], resource_of: Callable[[str], Resource]) -> Folded:
    """Adds up a batch; `resource_of` returns a resource by its id."""
    usage: dict[UsageKey, Usage] = {}
    steps: dict[str, Kept] = {}
    rates: defaultdict[str, Counter[str]] = defaultdict(Counter)
    waits_ms: dict[bool, list[int]] = {False: [], True: []}
    counters: set[str] = set()
    faults: list[str] = []
    covered = 0
    for record in records:
        read = _read(record, resource_of)
        counters |= read.counters
        if len(counters) > MAX_RESOURCES:
            break
        covered += 1
        waits_ms[read.pushed] += read.waits_ms
        faults += [read.fault] if read.fault else []
        if read.step is not None:
            steps[read.resource_id] = Kept(
                *map(add, steps.get(read.resource_id, Kept()), read.step)
            )
            rates[read.resource_id][rate_name("kept", record.time_ms)] += read.step.messages
            if read.level is not None:
                rates[read.resource_id][read.level] += read.step.messages
        for event in read.events:
            place = UsageKey(event.source_id, event.kind, record.time_ms // 60_000)
            usage[place] = usage.get(place, Usage()).plus(event)
            rates[event.source_id][rate_name(event.kind, record.time_ms)] += event.messages
            rates[event.source_id][rate_name("attempts", record.time_ms)] += event.attempts
    return Folded(
        records=covered, usage=usage, steps=steps, rates=rates, waits_ms=waits_ms, faults=faults
    )


def _read(record: StreamRecord, resource_of: Callable[[str], Resource]) -> _Record:
    kind, resource_id, *_ = record.pk.split("#")
    if kind == REPLIES:
        return _replied(record, resource_id)
    if kind == LOG:
        return _Record(resource_id, None, _together(_published(record, resource_id)))
    change = _change(record)
    step = _step(change, archived=kind == ARCHIVE)
    if kind == ARCHIVE:
        return _Record(resource_id, step, [])
    resource = resource_of(resource_id)
    billed = _together(_billed(change, resource))
    parcel = change.after or change.before
    return _Record(
        *(resource_id, step, billed, tuple(first_waits(change)), resource.pushed),
        level=None if parcel is None else level_name_of(parcel.sort_key),
        fault=_fault(record, change),
    )


def _together(found: Iterable[Event]) -> list[Event]:
    """Returns events of one source and kind as one: a record has an event for each message."""
    sums: dict[tuple[str, Kind], Usage] = {}
    for event in found:
        what = event.source_id, event.kind
        sums[what] = sums.get(what, Usage()).plus(event)
    return [Event(*what, *usage) for what, usage in sums.items()]


def _published(record: StreamRecord, topic_id: str) -> Iterator[Event]:
    if record.before is None and record.after is not None and is_topic_record(record.after):
        messages = read_record(record.after).messages
        size = sum(message.size_bytes for message in messages)
        yield Event(topic_id, "published", len(messages), size)


def _replied(record: StreamRecord, message_id: str) -> _Record:
    """Returns a reply as a message that is sent to its queue; to give up is none."""
    found = None if record.before or not record.after else queue_and_size(record.after)
    if found is None:
        return _Record(message_id, None, [])
    queue_id, size = found
    return _Record(queue_id, None, [Event(queue_id, "sent", 1, size)])


def _change(record: StreamRecord) -> ParcelChange:
    return ParcelChange(
        before=read_parcel(record.before) if record.before else None,
        after=read_parcel(record.after) if record.after else None,
        by_ttl=record.by_ttl,
    )


def _fault(record: StreamRecord, change: ParcelChange) -> str | None:
    """Returns why no step allows a parcel's write, without bodies, or None if one does."""
    latest_ms = record.time_ms + _SECOND_MS + limits.CLOCK_SKEW_MS
    why = unlawful(change.before, change.after, latest_ms)
    parcel = change.after or change.before
    return f"{record.pk} {parcel.sort_key}: {why}" if why and parcel else None


def _step(change: ParcelChange, *, archived: bool) -> Kept:
    messages, size = (0, 0) if archived else kept(change)
    return Kept(messages, size, rewindable(change))


def _billed(change: ParcelChange, resource: Resource) -> Iterator[Event]:
    if resource.pushed:
        return push_events(change)
    return events(change, "sent" if resource.kind == "queue" else "delivered")
