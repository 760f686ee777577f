"""The item of a publish in its topic's log, for fan-out, the trace and readers of the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from cirrusmq.base import limits
from cirrusmq.model.message import Message, pack
from cirrusmq.model.queue import Queue
from cirrusmq.model.topic import Topic
from cirrusmq.publishing.recipients import Draft, deliveries, sequences
from cirrusmq.publishing.records import make_header, mark_delayed
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item
from cirrusmq.storage.bodies.write import Placed
from cirrusmq.storage.parcels import log_item, object_log_item, ttl_seconds


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
    """Returns the record of the messages that a subscription gets, by their places in the call.

    `queues`: the queues that get them, by the ids of their subscriptions. `whole`: these are all
    messages of the call. `place` stores all of them, readable for the given milliseconds. Takes
    the messages' places in the order of their groups.
    """
    ordered = list(drafts.values())
    to = deliveries(ordered, queues)
    dues_ms = [draft.due_ms(now_ms) for draft in ordered]
    header = make_header(
        topic=topic.name,
        account=topic.account,
        deliveries=to,
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
