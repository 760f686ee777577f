"""Hourly gauges: what each resource keeps, as usage records that billing multiplies by hours."""

from __future__ import annotations

import msgspec

from cirrusmq.core import Core
from cirrusmq.counters import Kept, read_kept
from cirrusmq.errors import QueueNotFound
from cirrusmq.metering import RECORD_SECONDS, usage_entry, usage_place
from cirrusmq.queues import Resource, get_queue
from cirrusmq.storage.directory import RESOURCES
from cirrusmq.storage.shards import shard_keys
from cirrusmq.storage.store import ConditionFailed, Item, key

HOUR_MS = 3_600_000
_DONE = ("gauges", "done")


def write_gauges(core: Core, deadline_ms: int) -> None:
    """Write this hour's gauges, unless they are there; the next sweep goes on after `deadline_ms`.

    Each has a key of its resource and hour and is put if absent, so that a sweep that stopped, or
    two at once, count nothing twice.
    """
    hour = core.now_ms() // HOUR_MS
    done = core.store.get(core.tables.usage, *_DONE)
    if done is not None and int(done["hour"]["N"]) >= hour:
        return
    for pk in shard_keys(RESOURCES):
        if core.now_ms() >= deadline_ms:
            return
        items = core.store.query_all(core.tables.directory, pk)
        list(core.together(lambda item: _write_gauge(core, item, hour), list(items)))
    core.store.write(
        "UpdateItem",
        {
            "TableName": core.tables.usage,
            "Key": key(*_DONE),
            "UpdateExpression": "SET #hour = :hour",
            "ExpressionAttributeNames": {"#hour": "hour"},
            "ExpressionAttributeValues": {":hour": {"N": str(hour)}},
        },
    )


def _write_gauge(core: Core, item: Item, hour: int) -> None:
    resource_id = item["sk"]["S"]
    resource = msgspec.json.decode(item["document"]["S"], type=Resource)
    if "expires_at" in item:  # deleted
        return
    kept = read_kept(core, resource_id)
    if kept.rewindable and not _rewinds(core, resource):
        kept = kept._replace(rewindable=0)
    entries = _entries(resource, kept, hour)
    if not entries:
        return
    pk, sk = usage_place(f"gauge#{resource_id}#{hour}")
    gauge = {
        **key(pk, sk),
        "records": {"L": entries},
        "expires_at": {"N": str(core.now_ms() // 1000 + RECORD_SECONDS)},
    }
    try:
        core.store.put_if_absent(core.tables.usage, gauge)
    except ConditionFailed:
        return  # an earlier sweep of this hour wrote it


def _rewinds(core: Core, resource: Resource) -> bool:
    """Whether deleted messages can be rewound now; the archive may hold some from before."""
    queue_name, _, _ = resource.name.partition("/")  # a receiver's name has its queue's before it
    try:
        return get_queue(core, resource.account, queue_name).attributes.rewind_seconds > 0
    except QueueNotFound:
        return False


def _entries(resource: Resource, kept: Kept, hour: int) -> list[Item]:
    minute = hour * 60
    entries = []
    if kept.messages or kept.bytes:
        numbers = {"count": kept.messages, "bytes": kept.bytes}
        entries.append(usage_entry(resource, "kept", minute, numbers))
    if kept.rewindable:
        numbers = {"count": kept.rewindable, "bytes": 0}
        entries.append(usage_entry(resource, "rewindable", minute, numbers))
    return entries
