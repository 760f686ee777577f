"""Metering a batch of the message table's stream: one usage record, and the counters with it.

A record is keyed by the batch's first event, and its usage never changes. If the stream repeats the
batch with another length, the difference is a separate record. The counters change with it, in the
same transaction:

    batch e1..e9  ──> record e1   = {9 events}, counters + 9    (answer lost: the stream repeats)
    batch e1..e5  ──> record e1#2 = {-4 events}, counters - 4
    batch e6..e9  ──> record e6   = {4 events}, counters + 4

So the usage of a table is the sum of its records, whenever each of them is read. The first record
keeps `version`, the number of its newest difference, and `counters`, the sums of all deliveries.

A resource that keeps as much as before has only rates to add. They are added after the record, by a
write of half the price each: if a meter stops between the two they are missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from operator import add
from typing import Any, NamedTuple, TypeAlias

from cirrusmq.base.errors import Unavailable
from cirrusmq.metering.fold import Folded, StreamRecord, fold
from cirrusmq.metering.usage import Kind, Usage
from cirrusmq.queues.resources import Resource, billed_resource
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.isolation import log_and_continue
from cirrusmq.runtime.store import (
    ConditionFailed,
    Item,
    TransactionRefused,
    key,
    put_if_absent,
    set_request,
    shard_key,
)
from cirrusmq.storage.counters import Kept, change_counter, is_exact

_logger = logging.getLogger(__name__)
RECORD_SECONDS = 40 * 86_400
_TRIES = 5
_ZERO = {"N": "0"}

_Step: TypeAlias = Mapping[str, int]
"""The numbers to add to a counter, by its attributes, without zeros."""
_Write: TypeAlias = dict[str, Any]
"""One write of a transaction."""
Resources: TypeAlias = Callable[[str], Resource]
"""Returns a resource by its id."""


class Metered(NamedTuple):
    """The part of a batch that was counted."""

    records: int
    """Number of records counted, from the first on."""
    happened: Mapping[tuple[Resource, Kind], Usage]
    """Usage of messages, by resource and kind."""
    waits_ms: Mapping[bool, Sequence[int]] = {}
    """Waits of messages for their first receive (False) and for their first post (True)."""
    unlawful: int = 0
    """Writes of parcels that no step of a message allows."""


def meter(core: Core, records: Sequence[StreamRecord]) -> Metered:
    """Counts a batch, or the part of it that fits into a transaction."""
    if not records:
        return Metered(0, {})
    resource_of: Resources = cache(partial(billed_resource, core))
    folded = fold(records, resource_of)
    entries = [
        usage_entry(place.source_id, resource_of(place.source_id), place.kind, place.minute, usage)
        for place, usage in sorted(folded.usage.items())
        if any(usage)
    ]
    _write(core, records[0].event_id, entries, _counted(folded))
    happened: dict[tuple[Resource, Kind], Usage] = {}
    for place, usage in folded.usage.items():
        what = resource_of(place.source_id), place.kind
        happened[what] = Usage(*map(add, happened.get(what, Usage()), usage))
    # No error in the log: a release that rolls out, and knows a further step, is not rolled back.
    for fault in folded.faults:
        _logger.warning("unlawful write of parcel %s", fault)
    return Metered(folded.records, happened, folded.waits_ms, len(folded.faults))


def usage_entry(
    resource_id: str, resource: Resource, kind: str, minute: int, usage: Usage
) -> dict[str, Any]:
    """Returns one entry of a usage record, in wire shape."""
    prefix = "queue" if resource.kind in ("queue", "receiver") else resource.kind
    entry = {
        "account": {"S": resource.account},
        "resource": {"S": f"{prefix}:{resource.name}"},
        "id": {"S": resource_id},
        "kind": {"S": kind},
        "minute": {"N": str(minute)},
    }
    return {"M": entry | _amounts(usage)}


def usage_record(core: Core, event_id: str, name: str, entries: Sequence[Item]) -> Item:
    """Returns a usage record as it is written now. name: the event's id, or a difference's name."""
    now_ms = core.now_ms()
    return {
        **key(shard_key("U", event_id), name),
        "records": {"L": list(entries)},
        "w": {"N": str(now_ms)},
        "expires_at": {"N": str(now_ms // 1000 + RECORD_SECONDS)},
    }


def _amounts(usage: Usage) -> dict[str, Any]:
    """Returns the counts of an entry, in wire shape."""
    amounts = {"count": {"N": str(usage.messages)}, "bytes": {"N": str(usage.bytes)}}
    return amounts | ({"attempts": {"N": str(usage.attempts)}} if usage.attempts else {})


def _write(core: Core, event_id: str, entries: Sequence[Item], steps: Mapping[str, _Step]) -> None:
    for _ in range(_TRIES):
        old = core.store.get(core.tables.usage, *_item_key(event_id))
        changes = dict(_changes(steps, old))
        exact = [each for each, step in changes.items() if any(map(is_exact, step))]
        record = (
            [_first(core, event_id, entries, steps)]
            if old is None
            else _difference(core, event_id, old, entries, steps)
        )
        try:
            _put(core, record, [_counter(core, changes, each) for each in exact])
        except (ConditionFailed, TransactionRefused):
            continue  # another delivery of this batch was faster
        for each in changes.keys() - exact:
            with log_and_continue(f"rates of {each} could not be counted"):
                core.store.write("UpdateItem", _counter(core, changes, each))
        return
    raise Unavailable


def _item_key(event_id: str) -> tuple[str, str]:
    return shard_key("U", event_id), event_id


def _put(core: Core, record: Sequence[_Write], counters: Sequence[Item]) -> None:
    """Writes the record and the counters, or neither."""
    writes = [*record, *({"Update": each} for each in counters)]
    if len(writes) == 1:
        ((verb, request),) = writes[0].items()
        core.store.write(f"{verb}Item", request)
    else:
        core.store.transact(writes)


def _first(
    core: Core, event_id: str, entries: Sequence[Item], steps: Mapping[str, _Step]
) -> _Write:
    """Returns the record of the first delivery."""
    item = usage_record(core, event_id, event_id, entries)
    item |= {"counters": _counters(steps), "version": {"N": "1"}}
    return {"Put": put_if_absent(core.tables.usage, item)}


def _difference(
    core: Core, event_id: str, old: Item, entries: Sequence[Item], steps: Mapping[str, _Step]
) -> list[_Write]:
    """Returns the writes of a repeated delivery. A next version is written in any case:

    A: batch e1..e9, reads version 1 ──────────(on its way)──────────> refused: version 2
    B:            batch e1..e5, reads version 1 ──> nothing is more, version 2
    C:                           batch e6..e9 ──> e6
    """
    seen = int(old["version"]["N"])
    # An earlier release wrote over the record instead: its versions have no differences.
    names = [f"{event_id}#{number}" for number in range(2, seen + 1)]
    differences = [
        core.store.get(core.tables.usage, _item_key(event_id)[0], name) for name in names
    ]
    before = [old, *(each for each in differences if each is not None)]
    more = _missing(before, entries)
    counters = _counters(steps)
    new = {"version": {"N": str(seen + 1)}, "counters": counters}
    update = set_request(core.tables.usage, _item_key(event_id), new)
    update["ConditionExpression"] = "#version = :seen"
    update["ExpressionAttributeValues"][":seen"] = {"N": str(seen)}
    if not more:
        return [{"Update": update}]
    item = usage_record(core, event_id, f"{event_id}#{seen + 1}", more)
    return [{"Update": update}, {"Put": put_if_absent(core.tables.usage, item)}]


def _missing(records: Iterable[Item], entries: Sequence[Item]) -> list[Item]:
    """Returns the entries by which `entries` are more than those records together, signed."""
    sums: dict[tuple[str, ...], Usage] = {}
    named: dict[tuple[str, ...], Item] = {}
    stored = [(-1, entry) for record in records for entry in record["records"]["L"]]
    for sign, each in [*stored, *((1, entry) for entry in entries)]:
        entry = each["M"]
        # By the name: entries of earlier releases have no id.
        names = (entry[name]["S"] for name in ("account", "resource", "kind"))
        what = (*names, entry["minute"]["N"])
        step = Usage(*(sign * number for number in _usage_of(entry)))
        sums[what] = Usage(*map(add, sums.get(what, Usage()), step))
        named[what] = {name: value for name, value in entry.items() if name != "attempts"}
    return [
        {"M": named[what] | _amounts(usage)} for what, usage in sorted(sums.items()) if any(usage)
    ]


def _usage_of(entry: Item) -> Usage:
    count, size, attempts = (entry.get(name, _ZERO) for name in ("count", "bytes", "attempts"))
    return Usage(int(count["N"]), int(size["N"]), int(attempts["N"]))


def _counted(folded: Folded) -> dict[str, _Step]:
    """Returns the numbers that the batch adds to each counter."""
    steps: dict[str, _Step] = {}
    for source_id in {**folded.steps, **folded.rates}:
        step = folded.steps.get(source_id, Kept())._asdict() | folded.rates.get(source_id, {})
        steps[source_id] = {name: number for name, number in step.items() if number}
    return {source_id: step for source_id, step in steps.items() if step}


def _changes(steps: Mapping[str, _Step], old: Item | None) -> Iterator[tuple[str, _Step]]:
    """Yields the steps that no earlier delivery of the batch has counted, by resource."""
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


def _counters(steps: Mapping[str, _Step]) -> dict[str, Any]:
    return {
        "M": {
            source_id: {"M": {name: {"N": str(number)} for name, number in step.items()}}
            for source_id, step in steps.items()
        }
    }


def _from_map(counted: dict[str, Any]) -> _Step:
    return {name: int(number["N"]) for name, number in counted["M"].items()}
