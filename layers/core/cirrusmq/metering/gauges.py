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
from cirrusmq.runtime.store import ConditionFailed, Item, key
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
    if "hour" in note and int(note["hour"]["N"]) >= hour:
        return True
    place = CounterPlace()
    if "begun" in note and int(note["begun"]["N"]) == hour:
        place = CounterPlace(int(note["shard"]["N"]), note["after"]["S"])
    reached = walk(core, place, deadline_ms, lambda counter: _write_gauge(core, counter, hour))
    if reached is None:
        _note(core, {"hour": hour})
    else:
        _note(core, {"begun": hour, "shard": reached.shard, "after": reached.after})
    return reached is None


def _note(core: Core, values: dict[str, int | str]) -> None:
    """Writes down how far this hour's gauges are, or that they are done."""
    core.store.write(
        "UpdateItem",
        {
            "TableName": core.tables.usage,
            "Key": key(*_DONE),
            "UpdateExpression": "SET " + ", ".join(f"#{name} = :{name}" for name in values),
            "ExpressionAttributeNames": {f"#{name}": name for name in values},
            "ExpressionAttributeValues": {
                f":{name}": {"S": value} if isinstance(value, str) else {"N": str(value)}
                for name, value in values.items()
            },
        },
    )


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
    try:
        core.store.put_if_absent(core.tables.usage, usage_record(core, name, name, entries))
    except ConditionFailed:
        return  # an earlier sweep of this hour wrote it


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
