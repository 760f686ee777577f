"""Metering a batch of the message table's stream: one usage record, and the counters with it.

The record is keyed by the batch's first event and written over whatever an earlier delivery of
that batch left; the counters change by the difference, in the same transaction:

    batch e1..e9  ──> record e1 = {9 events}, counters + 9      (answer lost: the stream repeats)
    batch e1..e5  ──> record e1 = {5 events}, counters - 4
    batch e6..e9  ──> record e6 = {4 events}, counters + 4
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from cirrusmq.base.errors import Unavailable
from cirrusmq.metering.usage import Change, Event, events, kept, published, push_events, rewindable
from cirrusmq.publishing.records import is_topic_record, read_record
from cirrusmq.queues.resources import Resource
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, TransactionRefused, key
from cirrusmq.storage import directory
from cirrusmq.storage.counters import Kept, change_counter
from cirrusmq.storage.directory_keys import resource_place
from cirrusmq.storage.parcels import ARCHIVE, LOG, read_parcel
from cirrusmq.storage.shards import shard_key

RECORD_SECONDS = 40 * 86_400
MOST_RESOURCES = 90
"""A transaction has at most 100 writes: the record, and a counter for each resource."""
_TRIES = 5
_BILLED = ("count", "bytes", "attempts")
Billed: TypeAlias = Counter[tuple[tuple[str, str, int], str]]
"""((resource id, kind, minute), name of a number) -> the number."""


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


class Metered(NamedTuple):
    """What was counted of a batch."""

    records: int
    """From the first on."""
    dead_letters: int


def meter(core: Core, records: Sequence[StreamRecord]) -> Metered:
    """Count a batch, or as much of it as fits into a transaction."""
    if not records:
        return Metered(0, 0)
    covered = _within_transaction(records)
    billed: Billed = Counter()
    counters: dict[str, Counter[str]] = {}
    for record in covered:
        minute = record.time_ms // 60_000
        for event in _events(core, record, counters):
            for name, number in zip(_BILLED, event[2:], strict=True):
                billed[(event.source_id, event.kind, minute), name] += number
    _write(core, covered[0].event_id, _usage_records(core, billed), counters)
    dead_letters = sum(
        number
        for ((_, kind, _), name), number in billed.items()
        if (kind, name) == ("dead_lettered", "count")
    )
    return Metered(len(covered), dead_letters)


def _events(core: Core, record: StreamRecord, counters: dict[str, Counter[str]]) -> Iterator[Event]:
    """What a record is billed as; the counters of its resource change with it."""
    kind, resource_id, _ = record.pk.split("#")
    if kind == LOG:
        if record.before is None and record.after is not None and is_topic_record(record.after):
            messages = read_record(record.after).messages
            size = sum(message.size_bytes for message in messages)
            yield published(resource_id, len(messages), size)
        return
    change = _change(record)
    held = counters.setdefault(resource_id, Counter())
    if kind == ARCHIVE:
        held["rewindable"] += rewindable(change)
        return
    messages_kept, bytes_kept = kept(change)
    held["messages"] += messages_kept
    held["bytes"] += bytes_kept
    resource = _resource(core, resource_id)
    if resource.pushed:
        yield from push_events(change)
    else:
        yield from events(change, "sent" if resource.kind == "queue" else "delivered")


def _within_transaction(records: Sequence[StreamRecord]) -> Sequence[StreamRecord]:
    resources: set[str] = set()
    for number, record in enumerate(records):
        resources.add(record.pk.split("#")[1])
        if len(resources) > MOST_RESOURCES:
            return records[:number]
    return records


def _change(record: StreamRecord) -> Change:
    return Change(
        before=read_parcel(record.before) if record.before else None,
        after=read_parcel(record.after) if record.after else None,
        by_ttl=record.by_ttl,
    )


def _resource(core: Core, source_id: str) -> Resource:
    place = resource_place(source_id)

    def load() -> Resource | None:
        found = directory.read(core, place, Resource)
        return found.value if found else None

    return core.slow_cache.get(place, load) or Resource("unknown", "queue", source_id)


def _usage_records(core: Core, billed: Billed) -> list[dict[str, Any]]:
    shown = []
    for place in sorted({place for place, _ in billed}):
        source_id, kind, minute = place
        numbers = {name: billed[place, name] for name in _BILLED}
        if any(numbers.values()):
            shown.append(usage_entry(_resource(core, source_id), kind, minute, numbers))
    return shown


def usage_entry(
    resource: Resource, kind: str, minute: int, numbers: Mapping[str, int]
) -> dict[str, Any]:
    """One entry of a usage record, in wire shape; `numbers`: count, bytes and attempts."""
    prefix = "queue" if resource.kind in ("queue", "receiver") else resource.kind
    entry = {
        "account": {"S": resource.account},
        "resource": {"S": f"{prefix}:{resource.name}"},
        "kind": {"S": kind},
        "minute": {"N": str(minute)},
        "count": {"N": str(numbers["count"])},
        "bytes": {"N": str(numbers["bytes"])},
    }
    if numbers.get("attempts"):
        entry["attempts"] = {"N": str(numbers["attempts"])}
    return {"M": entry}


def usage_place(event_id: str) -> tuple[str, str]:
    """Key of a usage record."""
    return shard_key("U", event_id), event_id


def _write(
    core: Core,
    event_id: str,
    usage_records: Iterable[dict[str, Any]],
    counters: dict[str, Counter[str]],
) -> None:
    pk, sk = usage_place(event_id)
    expires_at = core.now_ms() // 1000 + RECORD_SECONDS
    item: Item = {
        **key(pk, sk),
        "records": {"L": list(usage_records)},
        "counters": {"M": {source_id: _to_map(held) for source_id, held in counters.items()}},
        "expires_at": {"N": str(expires_at)},
    }
    for _ in range(_TRIES):
        old = core.store.get(core.tables.usage, pk, sk)
        try:
            core.store.transact([_put_record(core, item, old), *_steps(core, counters, old)])
        except TransactionRefused:
            continue  # another delivery of this batch was faster
        return
    raise Unavailable


def _put_record(core: Core, item: Item, old: Item | None) -> dict[str, Any]:
    """The record over the one that was read.

    A: batch e1..e5, reads version 1 ──────────(on its way)──────────> refused: version 2
    B:            batch e1..e9, the same as version 1 ──> version 2
    """
    seen = int(old["version"]["N"]) if old else 0
    put: dict[str, Any] = {
        "TableName": core.tables.usage,
        "Item": item | {"version": {"N": str(seen + 1)}},
    }
    if old is None:
        put["ConditionExpression"] = "attribute_not_exists(pk)"
    else:
        put["ConditionExpression"] = "version = :seen"
        put["ExpressionAttributeValues"] = {":seen": {"N": str(seen)}}
    return {"Put": put}


def _steps(
    core: Core, counters: dict[str, Counter[str]], old: Item | None
) -> Iterable[dict[str, Any]]:
    before = old["counters"]["M"] if old else {}
    for source_id in sorted({*counters, *before}):
        held = counters.get(source_id, Counter())
        counted = before.get(source_id, {}).get("M", {})
        steps = {
            name: held[name] - int(counted.get(name, {"N": "0"})["N"]) for name in Kept._fields
        }
        if any(steps.values()):
            yield change_counter(core, source_id, steps, core.now_ms() // 60_000)


def _to_map(held: Counter[str]) -> dict[str, Any]:
    return {"M": {name: {"N": str(held[name])} for name in Kept._fields}}
