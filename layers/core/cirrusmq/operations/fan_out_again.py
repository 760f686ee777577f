"""Handing the logs out again: messages of a time that fan_out has given up.

    the stream   |····· fan_out gave this up ·····|····· handed out ·····> now
    the logs       since ────────────────────> until     read by key, resource after resource

Each record makes the same parcels as at first, put if absent, so a reader that has one keeps it as
it is. A parcel that its consumer has deleted is gone: a reader whose records are in that time gets
them again. So a run takes only the time that is needed, and at most a day: for that long, parcels
that moved away keep their keys taken.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidParameter, NotFound, Unavailable
from cirrusmq.base.timestamps import format_time, parse_time
from cirrusmq.fanout.reader_parcels import LogEntry
from cirrusmq.fanout.stream_batch import deliver_records
from cirrusmq.model.queue import Queue
from cirrusmq.model.topic import Topic
from cirrusmq.publishing.records import holds_messages
from cirrusmq.queues import operations
from cirrusmq.queues.operations import Operation, Run, Step
from cirrusmq.queues.receivers import cached_receivers
from cirrusmq.queues.resources import Resource
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key, shard_keys
from cirrusmq.storage import directory
from cirrusmq.storage.directory import RESOURCES, queue_key, topic_key
from cirrusmq.storage.parcels import LOG, page_request, partition_key
from cirrusmq.storage.queries import LAST_KEY, Progress, remaining

REACH_MS = 23 * 3_600_000 + 30 * 60_000
"""How long ago `since` may be: the rest of a day is for the work."""
RECORDS = 100
"""Records of one step: as many as a batch of the stream has."""
STEP_MS = 40_000
"""A step ends before another runner may take over."""
_RESOURCES = 100
_SAFE_MS = limits.FAN_OUT_TOMBSTONE_MS - limits.KEY_SLACK_MS - STEP_MS
_logger = logging.getLogger(__name__)


def ask(core: Core, since: object, until: object = None) -> Operation:
    """Starts handing out again the log from `since` to `until`, both times as text.

    until: None means now. Raises InvalidParameter for a time out of range."""
    now_ms = core.now_ms()
    since_ms = _time("fan_out_since", since)
    until_ms = now_ms if until is None else min(_time("until", until), now_ms)
    earliest_ms = now_ms - REACH_MS
    if since_ms < earliest_ms:
        raise InvalidParameter(
            "fan_out_since",
            "must be at most 23.5 hours ago; the earliest possible is " + format_time(earliest_ms),
        )
    if since_ms > until_ms:
        raise InvalidParameter("fan_out_since", "must be before `until` and before now")
    return start(core, since_ms, until_ms)


def start(core: Core, since_ms: int, until_ms: int) -> Operation:
    """Starts handing out again the log between two times."""
    details = {"since_ms": since_ms, "until_ms": until_ms}
    return operations.start(core, None, "fan_out", details)


def show(operation: Operation) -> dict[str, Any]:
    """Returns the operation in the form for the operator who asked for it."""
    return {
        "operation": operation.id,
        "state": operation.state,
        "since": format_time(operation.details["since_ms"]),
        "until": format_time(operation.details["until_ms"]),
        "records": operation.done,
        "too_old": operation.notes.get("too_old", 0),
    }


def find(core: Core, operation_id: object) -> dict[str, Any]:
    """Returns what `show` does, for an operation's id. Raises NotFound for another operation."""
    if not isinstance(operation_id, str):
        raise InvalidParameter("fan_out_state", "must be the id of an operation")
    found = operations.get(core, operations.DEPLOYMENT, operation_id)
    if found.kind != "fan_out":
        raise NotFound
    return show(found)


def steps(core: Core, run: Run) -> Iterator[Step]:
    """Hands out page after page of the logs; a resource that is deleted by now has no readers."""
    notes = dict(run.operation.notes)
    for pk, behind in remaining(shard_keys(RESOURCES), run.operation.progress):
        begun, _, place = behind.partition("|")
        resources = directory.read_from(core, pk, begun or "!", Resource)
        for number, (resource_id, resource) in enumerate(resources):
            place = place if resource_id == begun else ""
            for reached, done, too_old in _pages(core, run.operation, resource_id, resource, place):
                notes["too_old"] = notes.get("too_old", 0) + too_old
                yield Step(Progress(pk, reached), done, None, dict(notes))
            if number % _RESOURCES == _RESOURCES - 1:
                yield Step(Progress(pk, resource_id + LAST_KEY), 0, None, dict(notes))
        yield Step(Progress(pk, LAST_KEY), 0, None, dict(notes))


def _pages(
    core: Core, operation: Operation, resource_id: str, resource: Resource, place: str
) -> Iterator[tuple[str, int, int]]:
    """Hands out a resource's log from a place on. Yields places reached, records, too old ones.

    A place is `<partition>|<sort key to go on behind>`.
    """
    number, _, after = place.partition("|")
    for partition in range(int(number or 0), _log_partitions(core, resource_id, resource)):
        more = True
        while more:
            entries, too_old, last = _entries(core, operation, resource_id, partition, after)
            _hand_out(core, entries)
            more, after = last is not None, last or ""
            at = f"{partition}|{after}" if more else f"{partition + 1}|"
            if more or entries or too_old:
                yield f"{resource_id}|{at}", len(entries), too_old


def _entries(
    core: Core, operation: Operation, log_id: str, partition: int, after: str
) -> tuple[list[LogEntry], int, str | None]:
    """Returns a page of a log: its records in the time, the number too old, where it goes on."""
    since_ms, until_ms = operation.details["since_ms"], operation.details["until_ms"]
    pk = partition_key(LOG, log_id, partition)
    # A record's key has the time of its attempt, which may be before its sending.
    first = f"{since_ms - limits.KEY_SLACK_MS:013d}"
    until = f"{until_ms + limits.ATTEMPT_AHEAD_MS:013d}{LAST_KEY}"
    request = page_request(core.tables.messages, pk, first, until, RECORDS, consistent=True)
    if after:
        request["ExclusiveStartKey"] = key(pk, after)
    items, last, _ = core.store.query(request)
    now_ms = core.now_ms()
    inside = [item for item in items if since_ms <= int(item["t"]["N"]) <= until_ms]
    fresh = [item for item in inside if int(item["t"]["N"]) > now_ms - _SAFE_MS]
    entries = [LogEntry(item=item) for item in fresh if _lives(item, now_ms)]
    return entries, len(inside) - len(fresh), last["sk"]["S"] if last else None


def _lives(item: Item, now_ms: int) -> bool:
    """Returns True if a record has messages that are not expired; pointers to late ones do not."""
    return holds_messages(item) and now_ms < int(item["x"]["N"])


def _hand_out(core: Core, entries: Sequence[LogEntry]) -> None:
    """Hands records out as fan_out does. Raises Unavailable if the store does not take them all."""
    if not entries:
        return
    outcome = deliver_records(core, entries, STEP_MS)
    for error in outcome.errors:
        _logger.warning("put aside, not notified or stopped", exc_info=error)
    if outcome.records < len(entries):
        raise Unavailable


def _log_partitions(core: Core, resource_id: str, resource: Resource) -> int:
    """Returns the partitions of the log of a topic, or of a queue with receivers; 0 if none."""
    if resource.kind == "topic":
        topic = directory.read(core, topic_key(resource.account, resource.name), Topic)
        return topic.value.attributes.partitions if topic and topic.value.id == resource_id else 0
    if resource.kind == "queue" and cached_receivers(core, resource_id):
        queue = directory.read(core, queue_key(resource.account, resource.name), Queue)
        return queue.value.attributes.partitions if queue and queue.value.id == resource_id else 0
    return 0


def _time(parameter: str, value: object) -> int:
    if not isinstance(value, str):
        raise InvalidParameter(parameter, "must be an RFC 3339 time, as text")
    return parse_time(parameter, value)
