"""The id of a publish: its time, its place in the topic's log, and how repetitions find it.

A topic's log is read in order of its keys, which have the time of the publish's id. So that no
reader passes a key that is written later, an `attempt` gives its time to the id only while it is
fresh. A later repetition looks for the first one's record; if there is none, it puts a marker
under that key, with the id under which the publish is stored instead:

    first try    put(K) on its way ............................. arrives late: K is taken, use M
    repetition              K is old and free: put(K, "see M") ── put(M)

The first put decides, for every try, and so at each further key of a chain.
"""

from __future__ import annotations

from cirrusmq.base import limits, ulid
from cirrusmq.base.errors import Unavailable
from cirrusmq.model.topic import Topic
from cirrusmq.publishing.records import topic_log_key
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed, Item
from cirrusmq.sending.request_messages import new_send_id

_TRIES = 8


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
        pk, sk = topic_log_key(topic, send_id)
        there = core.store.get(core.tables.messages, pk, sk)
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
    pk, sk = topic_log_key(topic, send_id)
    return {
        "pk": {"S": pk},
        "sk": {"S": sk},
        "m": {"S": later_id},
        "t": {"N": str(now_ms)},
        "expires_at": {"N": str((now_ms + limits.DEDUPLICATION_MS) // 1000)},
    }
