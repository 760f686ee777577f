"""Hourly gauges: each resource's kept messages, as usage records that billing multiplies by hours.

Only resources that keep messages have a counter, and are read.
"""

from __future__ import annotations

from cirrusmq.base.errors import QueueNotFound
from cirrusmq.metering.meter import usage_entry, usage_record
from cirrusmq.metering.usage import Usage
from cirrusmq.queues.queues import get_queue
from cirrusmq.queues.resources import Resource, find_existing
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, number_in, put_if_absent, set_request
from cirrusmq.storage.counters import Counter, CounterPlace, Kept, walk

HOUR_MS = 3_600_000
_DONE = ("gauges", "done")


def write_gauges(core: Core, deadline_ms: int) -> bool:
    """Writes this hour's gauges, unless they exist, until `deadline_ms`. Returns True if all are.

    The next sweep continues there, so that every sweep gets nearer to the end. Each gauge has a
    key of its resource and hour and is put if absent, so that a sweep that stopped, or two at
    once, count nothing twice.
    """
    hour = core.now_ms() // HOUR_MS
    note = core.store.get(core.tables.usage, *_DONE) or {}
    if number_in(note, "hour") >= hour:
        return True
    place = CounterPlace()
    if number_in(note, "begun") == hour:
        place = CounterPlace(number_in(note, "shard"), note["after"]["S"])
    reached = walk(core, place, deadline_ms, lambda counter: _write_gauge(core, counter, hour))
    written: Item = {"hour": {"N": str(hour)}}
    if reached is not None:
        shard = {"N": str(reached.shard)}
        written = {"begun": {"N": str(hour)}, "shard": shard, "after": {"S": reached.after}}
    core.store.write("UpdateItem", set_request(core.tables.usage, _DONE, written))
    return reached is None


def _write_gauge(core: Core, counter: Counter, hour: int) -> None:
    resource_id, kept = counter.resource_id, counter.kept
    resource = find_existing(core, resource_id)
    if resource is None:
        return
    if kept.rewindable and not _rewinds(core, resource):
        kept = kept._replace(rewindable=0)
    entries = _entries(resource_id, resource, kept, hour)
    if not entries:
        return
    name = f"gauge#{resource_id}#{hour}"
    record = usage_record(core, name, name, entries)
    # Refused if an earlier sweep of this hour wrote it.
    core.store.try_write("PutItem", put_if_absent(core.tables.usage, record))


def _rewinds(core: Core, resource: Resource) -> bool:
    """Returns True if deleted messages can be rewound now; some may be there from before."""
    if resource.kind not in ("queue", "receiver"):
        return False
    queue_name, _, _ = resource.name.partition("/")  # a receiver's name has its queue's before it
    try:
        return get_queue(core, resource.account, queue_name).attributes.rewind_seconds > 0
    except QueueNotFound:
        return False


def _entries(resource_id: str, resource: Resource, kept: Kept, hour: int) -> list[Item]:
    gauges = []
    if kept.messages or kept.bytes:
        gauges.append(("kept", Usage(kept.messages, kept.bytes)))
    if kept.rewindable:
        gauges.append(("rewindable", Usage(kept.rewindable)))
    return [usage_entry(resource_id, resource, kind, hour * 60, usage) for kind, usage in gauges]
