"""Hourly gauges: what each resource keeps, as usage records that billing multiplies by hours."""

from __future__ import annotations

from cirrusmq.core import Core
from cirrusmq.counters import Kept, read_kept
from cirrusmq.decoding import decode_json
from cirrusmq.errors import QueueNotFound
from cirrusmq.metering import RECORD_SECONDS, usage_entry, usage_place
from cirrusmq.queues import Resource, get_queue
from cirrusmq.storage.directory import RESOURCES
from cirrusmq.storage.shards import shard_keys
from cirrusmq.storage.store import ConditionFailed, Item, key

HOUR_MS = 3_600_000
_DONE = ("gauges", "done")
_TOGETHER = 32


def write_gauges(core: Core, deadline_ms: int) -> None:
    """Write this hour's gauges, unless they are there, until `deadline_ms`.

    The next sweep goes on from there, so that every sweep comes nearer to the end. Each gauge has
    a key of its resource and hour and is put if absent, so that a sweep that stopped, or two at
    once, count nothing twice.
    """
    hour = core.now_ms() // HOUR_MS
    note = core.store.get(core.tables.usage, *_DONE) or {}
    if "hour" in note and int(note["hour"]["N"]) >= hour:
        return
    shard, after = 0, ""
    if "begun" in note and int(note["begun"]["N"]) == hour:
        shard, after = int(note["shard"]["N"]), note["after"]["S"]
    shards = shard_keys(RESOURCES)
    while shard < len(shards):
        items = core.store.query_all(core.tables.directory, shards[shard])
        left = [item for item in items if item["sk"]["S"] > after]
        for first in range(0, len(left), _TOGETHER):
            some = left[first : first + _TOGETHER]
            list(core.together(lambda item: _write_gauge(core, item, hour), some))
            if core.now_ms() >= deadline_ms:
                reached = {"begun": hour, "shard": shard, "after": some[-1]["sk"]["S"]}
                _note(core, reached)
                return
        shard, after = shard + 1, ""
    _note(core, {"hour": hour})


def _note(core: Core, values: dict[str, int | str]) -> None:
    """Write down how far this hour's gauges are, or that they are done."""
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


def _write_gauge(core: Core, item: Item, hour: int) -> None:
    resource_id = item["sk"]["S"]
    resource = decode_json(item["document"]["S"], Resource)
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
