"""Metering a batch of the message table's stream: one usage record, and the counters with it.

The record is keyed by the batch's first event and written over whatever an earlier delivery of
that batch left; the counters change by the difference, in the same transaction:

    batch e1..e9  ──> record e1 = {9 events}, counters + 9      (answer lost: the stream repeats)
    batch e1..e5  ──> record e1 = {5 events}, counters - 4
    batch e6..e9  ──> record e6 = {4 events}, counters + 4
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cirrusmq.core import Core
from cirrusmq.counters import counter_place
from cirrusmq.errors import Unavailable
from cirrusmq.queues import Resource
from cirrusmq.storage import directory
from cirrusmq.storage.parcels import ARCHIVE, read_parcel
from cirrusmq.storage.store import Item, TransactionRefused, key
from cirrusmq.usage import Change, Kind, events, kept, rewindable

RECORD_SECONDS = 40 * 86_400
MOST_RESOURCES = 90
"""A transaction has at most 100 writes: the record, and a counter for each resource."""
_SHARDS = 16
_TRIES = 5
_ARRIVALS: dict[str, Kind] = {"queue": "sent", "receiver": "delivered"}
_COUNTERS = ("messages", "bytes", "rewindable")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRecord:
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


def meter(core: Core, records: Sequence[StreamRecord]) -> int:
    """Count a batch; answers how many of its records, from the first on, were counted."""
    if not records:
        return 0
    covered = _within_transaction(records)
    usage: Counter[tuple[str, str, int]] = Counter()
    sizes: Counter[tuple[str, str, int]] = Counter()
    counters: dict[str, Counter[str]] = {}
    for record in covered:
        change = _change(record)
        source_id = record.pk.split("#")[1]
        held = counters.setdefault(source_id, Counter())
        if record.pk.startswith(f"{ARCHIVE}#"):
            held["rewindable"] += rewindable(change)
            continue
        messages, size = kept(change)
        held["messages"] += messages
        held["bytes"] += size
        for event in events(change, _ARRIVALS.get(_resource(core, source_id).kind, "delivered")):
            place = (event.source_id, event.kind, record.time_ms // 60_000)
            usage[place] += event.messages
            sizes[place] += event.bytes
    _write(core, covered[0].event_id, _usage_records(core, usage, sizes), counters)
    return len(covered)


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
    place = directory.resource_place(source_id)

    def load() -> Resource | None:
        found = directory.read(core, place, Resource)
        return found.value if found else None

    return core.slow_cache.get(place, load) or Resource("unknown", "queue", source_id)


def _usage_records(
    core: Core, usage: Counter[tuple[str, str, int]], sizes: Counter[tuple[str, str, int]]
) -> list[dict[str, Any]]:
    shown = []
    for source_id, kind, minute in sorted(usage):
        resource = _resource(core, source_id)
        place = (source_id, kind, minute)
        if usage[place] or sizes[place]:
            shown.append(usage_entry(resource, kind, minute, usage[place], sizes[place]))
    return shown


def usage_entry(
    resource: Resource, kind: str, minute: int, count: int, size: int
) -> dict[str, Any]:
    """One entry of a usage record, in wire shape."""
    prefix = "queue" if resource.kind in ("queue", "receiver") else resource.kind
    return {
        "M": {
            "account": {"S": resource.account},
            "resource": {"S": f"{prefix}:{resource.name}"},
            "kind": {"S": kind},
            "minute": {"N": str(minute)},
            "count": {"N": str(count)},
            "bytes": {"N": str(size)},
        }
    }


def usage_place(event_id: str) -> tuple[str, str]:
    """Key of a usage record."""
    return f"U#{zlib.crc32(event_id.encode()) % _SHARDS}", event_id


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
    put: dict[str, Any] = {"TableName": core.tables.usage, "Item": item}
    if old is None:
        put["ConditionExpression"] = "attribute_not_exists(pk)"
    else:
        put["ConditionExpression"] = "counters = :seen"
        put["ExpressionAttributeValues"] = {":seen": old["counters"]}
    return {"Put": put}


def _steps(
    core: Core, counters: dict[str, Counter[str]], old: Item | None
) -> Iterable[dict[str, Any]]:
    before = old["counters"]["M"] if old else {}
    for source_id in sorted({*counters, *before}):
        held = counters.get(source_id, Counter())
        counted = before.get(source_id, {}).get("M", {})
        steps = {name: held[name] - int(counted.get(name, {"N": "0"})["N"]) for name in _COUNTERS}
        if any(steps.values()):
            yield {
                "Update": {
                    "TableName": core.tables.usage,
                    "Key": key(*counter_place(source_id)),
                    "UpdateExpression": "ADD #m :m, #b :b, #r :r",
                    "ExpressionAttributeNames": dict(
                        zip(("#m", "#b", "#r"), _COUNTERS, strict=True)
                    ),
                    "ExpressionAttributeValues": {
                        f":{name[0]}": {"N": str(step)} for name, step in steps.items()
                    },
                }
            }


def _to_map(held: Counter[str]) -> dict[str, Any]:
    return {"M": {name: {"N": str(held[name])} for name in _COUNTERS}}
