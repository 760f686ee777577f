"""The item of a publish in its topic's log, for fan-out, the trace and readers of the log; its id.

A topic's log is read in order of its keys, which have the time of the publish's id. So that no
reader passes a key that is written later, an `attempt` gives its time to the id only while it is
fresh. A later repetition looks for the first one's record; if there is none, it puts a marker
under that key, with the id under which the publish is stored instead:

    first try    put(K) on its way ............................. arrives late: K is taken, use M
    repetition              K is old and free: put(K, "see M") ── put(M)

The first put decides, for every try, and so at each further key of a chain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from cirrusmq.base import limits, ulid
from cirrusmq.base.errors import Unavailable
from cirrusmq.model.message import Message, pack
from cirrusmq.model.queue import Queue
from cirrusmq.model.topic import Topic
from cirrusmq.publishing.recipients import Draft, deliveries, sequences
from cirrusmq.publishing.records import TopicHeader, grouped, mark_delayed, topic_log_key
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed, Item, key
from cirrusmq.sending.request_messages import new_send_id
from cirrusmq.storage.bodies.write import Placed
from cirrusmq.storage.parcels import log_item, object_log_item, ttl_seconds

_TRIES = 8


def make_log_record(
    core: Core,
    topic: Topic,
    drafts: Mapping[int, Draft],
    queues: Mapping[str, Queue],
    *,
    send_id: str,
    now_ms: int,
    whole: bool,
    place: Callable[[int], Placed],
) -> Item:
    """Returns the record of the messages that a subscription gets, by their indexes in the call.

    `queues`: the queues that get them, by the ids of their subscriptions. `whole`: these are all
    messages of the call. `place` stores all of them, readable for the given milliseconds. Takes
    the messages' places in the order of their groups.
    """
    ordered = list(drafts.values())
    to = deliveries(ordered, queues)
    dues_ms = [draft.due_ms(now_ms) for draft in ordered]
    header = TopicHeader(
        topic=topic.name,
        account=topic.account,
        alike=grouped(to),
        sequences=sequences(core, topic, ordered),
        routing_keys=[draft.routing_key for draft in ordered],
        dues_ms=dues_ms if any(dues_ms) else None,
    )
    # The topic's log and the trace read it for the topic's life, however short a queue's is.
    longest_ms = max(limits.TOPIC_LIFE_SECONDS * 1000, *(delivery.life_ms for delivery in to))
    log, times = f"{topic.id}#{topic.log_partition(send_id)}", (now_ms, now_ms + longest_ms)
    contents = {number: draft.message for number, draft in drafts.items()}
    placed = place(longest_ms)
    if placed.days:
        record = object_log_item(log, send_id, contents, placed.days, *times, None)
    else:
        with_bodies = [each for each in contents.values() if isinstance(each, Message)]
        content = (placed.packed if whole else None) or pack(with_bodies)
        record = log_item(log, send_id, tuple(contents), content, *times, None)
    # A received message moves to a dead-letter queue also when it has expired, with its body.
    ends_ms = now_ms + longest_ms + limits.EXPIRED_KEPT_MS
    record |= {"expires_at": {"N": str(ttl_seconds(ends_ms))}}
    record |= {"g": {"B": msgspec.msgpack.encode(header)}}
    return record | mark_delayed() if any(dues_ms) else record


def new_id(core: Core, topic: Topic, begun_ms: int, *, in_order: bool) -> str:
    """The id of a publish, which decides its partition of the log.

    A shard of the stream keeps the order of its records, and `fan_out` hands them on in that order:
    messages for ordered consumers are in the first partition.
    """
    while True:
        send_id = new_send_id(core, begun_ms)
        if not in_order or is_in_order(topic, send_id):
            return send_id


def is_in_order(topic: Topic, send_id: str) -> bool:
    """Returns True if a publish of this id is in the partition of ordered consumers."""
    return topic.log_partition(send_id) == 0


def settle_id(core: Core, topic: Topic, send_id: str, *, in_order: bool) -> str:
    """Returns the id under which a publish is, or will be, stored, from the id it began with."""
    for _ in range(_TRIES):
        now_ms = core.now_ms()
        if now_ms - ulid.time_of(send_id) <= limits.ATTEMPT_FRESH_MS * core.clock.scale:
            return send_id
        there = core.store.get(core.tables.messages, *topic_log_key(topic, send_id))
        if there is None:
            later_id = new_id(core, topic, now_ms, in_order=in_order)
            try:
                core.store.put_if_absent(
                    core.tables.messages, _marker(topic, send_id, later_id, now_ms)
                )
            except ConditionFailed as failed:
                there = failed.item
            else:
                return later_id
        if there is not None:
            later_id_there = moved_to(there)
            if later_id_there is None:
                return send_id
            send_id = later_id_there
    raise Unavailable


def moved_to(item: Item) -> str | None:
    """The id that a log's item names if it is a marker; else None."""
    return str(item["m"]["S"]) if "m" in item else None


def _marker(topic: Topic, send_id: str, later_id: str, now_ms: int) -> Item:
    return {
        **key(*topic_log_key(topic, send_id)),
        "m": {"S": later_id},
        "t": {"N": str(now_ms)},
        "expires_at": {"N": str((now_ms + limits.DEDUPLICATION_MS) // 1000)},
    }
