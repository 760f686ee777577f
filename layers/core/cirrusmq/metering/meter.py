"""Metering a batch of the message table's stream: one usage record, and the counters with it.

The record is keyed by the batch's first event and written over the record of an earlier delivery
of that batch; the counters change by the difference, in the same transaction:

    batch e1..e9  ──> record e1 = {9 events}, counters + 9      (answer lost: the stream repeats)
    batch e1..e5  ──> record e1 = {5 events}, counters - 4
    batch e6..e9  ──> record e6 = {4 events}, counters + 4

A resource that keeps as much as before has rates alone to add. They are added behind the record, by
a write of half the price each: of a meter that is stopped between the two they are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from operator import add
from typing import Any, NamedTuple, TypeAlias

from cirrusmq.base.errors import Unavailable
from cirrusmq.metering.fold import Folded, StreamRecord, fold
from cirrusmq.metering.usage import Kind, Usage
from cirrusmq.queues.resources import Resource, find_resource
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.isolation import apart_from_others
from cirrusmq.runtime.store import ConditionFailed, Item, TransactionRefused, key
from cirrusmq.storage.counters import Kept, change_counter
from cirrusmq.storage.shards import shard_key

RECORD_SECONDS = 40 * 86_400
_TRIES = 5

_Step: TypeAlias = Mapping[str, int]
"""What is added to a counter, by its attributes; those that do not change are left out."""
Resources: TypeAlias = Callable[[str], Resource]
"""Finds a resource by its id."""


class Metered(NamedTuple):
    """The part of a batch that was counted."""

    records: int
    """From the first on."""
    happened: Mapping[tuple[Resource, Kind], Usage]
    """What happened to messages, by resource and kind."""
    waits_ms: Mapping[bool, Sequence[int]] = {}
    """Of messages for their first receive (False) and for their first post (True)."""


def meter(core: Core, records: Sequence[StreamRecord]) -> Metered:
    """Count a batch, or as much of it as fits into a transaction."""
    if not records:
        return Metered(0, {})
    resource_of: Resources = cache(partial(_resource, core))
    folded = fold(records, resource_of)
    _write(core, records[0].event_id, folded, resource_of)
    happened: dict[tuple[Resource, Kind], Usage] = {}
    for place, usage in folded.usage.items():
        what = resource_of(place.source_id), place.kind
        happened[what] = Usage(*map(add, happened.get(what, Usage()), usage))
    return Metered(folded.records, happened, folded.waits_ms)


def _resource(core: Core, source_id: str) -> Resource:
    return find_resource(core, source_id) or Resource("unknown", "queue", source_id)


def usage_entry(resource: Resource, kind: str, minute: int, usage: Usage) -> dict[str, Any]:
    """One entry of a usage record, in wire shape."""
    prefix = "queue" if resource.kind in ("queue", "receiver") else resource.kind
    entry = {
        "account": {"S": resource.account},
        "resource": {"S": f"{prefix}:{resource.name}"},
        "kind": {"S": kind},
        "minute": {"N": str(minute)},
        "count": {"N": str(usage.messages)},
        "bytes": {"N": str(usage.bytes)},
    }
    if usage.attempts:
        entry["attempts"] = {"N": str(usage.attempts)}
    return {"M": entry}


def usage_place(event_id: str) -> tuple[str, str]:
    """Key of a usage record."""
    return shard_key("U", event_id), event_id


def _write(core: Core, event_id: str, folded: Folded, resource_of: Resources) -> None:
    pk, sk = usage_place(event_id)
    steps = _counted(folded)
    item: Item = {
        **key(pk, sk),
        "records": {
            "L": [
                usage_entry(resource_of(place.source_id), place.kind, place.minute, usage)
                for place, usage in sorted(folded.usage.items())
                if any(usage)
            ]
        },
        "counters": {"M": {source_id: _to_map(step) for source_id, step in steps.items()}},
        "expires_at": {"N": str(core.now_ms() // 1000 + RECORD_SECONDS)},
    }
    for _ in range(_TRIES):
        old = core.store.get(core.tables.usage, pk, sk)
        changes = dict(_changes(steps, old))
        exact = [each for each, step in changes.items() if not step.keys().isdisjoint(Kept._fields)]
        try:
            _put(core, _record(core, item, old), [_counter(core, changes, each) for each in exact])
        except (ConditionFailed, TransactionRefused):
            continue  # another delivery of this batch was faster
        for each in changes.keys() - exact:
            with apart_from_others(f"rates of {each} could not be counted"):
                core.store.write("UpdateItem", _counter(core, changes, each))
        return
    raise Unavailable


def _put(core: Core, record: dict[str, Any], counters: Sequence[dict[str, Any]]) -> None:
    """The record and the counters, or neither."""
    if counters:
        core.store.transact([{"Put": record}, *({"Update": each} for each in counters)])
    else:
        core.store.write("PutItem", record)


def _record(core: Core, item: Item, old: Item | None) -> dict[str, Any]:
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
    return put


def _counted(folded: Folded) -> dict[str, _Step]:
    """What the batch adds to each counter."""
    steps: dict[str, _Step] = {}
    for source_id in {**folded.steps, **folded.rates}:
        step = folded.steps.get(source_id, Kept())._asdict() | folded.rates.get(source_id, {})
        steps[source_id] = {name: number for name, number in step.items() if number}
    return {source_id: step for source_id, step in steps.items() if step}


def _changes(steps: Mapping[str, _Step], old: Item | None) -> Iterator[tuple[str, _Step]]:
    """What is not counted yet by an earlier delivery of the batch, by resource."""
    before = old["counters"]["M"] if old else {}
    for source_id in sorted({*steps, *before}):
        counted = _from_map(before[source_id]) if source_id in before else {}
        wanted = steps.get(source_id, {})
        changes = {name: wanted.get(name, 0) - counted.get(name, 0) for name in {*wanted, *counted}}
        step = {name: number for name, number in sorted(changes.items()) if number}
        if step:
            yield source_id, step


def _counter(core: Core, changes: Mapping[str, _Step], source_id: str) -> dict[str, Any]:
    return change_counter(core, source_id, changes[source_id], core.now_ms() // 60_000)


def _to_map(step: _Step) -> dict[str, Any]:
    return {"M": {name: {"N": str(number)} for name, number in step.items()}}


def _from_map(counted: dict[str, Any]) -> _Step:
    return {name: int(number["N"]) for name, number in counted["M"].items()}
