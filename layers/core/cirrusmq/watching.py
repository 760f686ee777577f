"""How long messages wait: what an operator's alarm asks once a minute."""

from __future__ import annotations

from cirrusmq.core import Core
from cirrusmq.counters import read_kept
from cirrusmq.decoding import decode_json
from cirrusmq.errors import CirrusMQError
from cirrusmq.queues import Resource, get_queue
from cirrusmq.receivers import source_with_id
from cirrusmq.scan import from_key, read_page, until_key
from cirrusmq.source import Source
from cirrusmq.storage import directory
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.shards import shard_keys
from cirrusmq.storage.store import Item
from cirrusmq.subscription_source import subscription_source
from cirrusmq.subscriptions import cached_subscriptions
from cirrusmq.topic import Topic

LOOKED_AT = 20
"""Parcels at the head of each partition: enough to see past those that are held."""


def oldest_age_ms(core: Core, deadline_ms: int) -> int:
    """Age of the oldest message that could be received now and is not; 0 where none waits.

    Over all queues, receivers and pull subscriptions, until `deadline_ms`. It costs a read a
    resource, and one more a partition where the meter's counter says that something is kept. Only
    heads are looked at: behind 20 held parcels a message is not seen until they are gone.
    """
    oldest_ms = core.now_ms()
    for pk in shard_keys(directory.RESOURCES):
        if core.now_ms() >= deadline_ms:
            break
        items = core.store.query_all(core.tables.directory, pk)
        kept = [item for item in items if "expires_at" not in item]
        oldest_ms = min([oldest_ms, *core.together(lambda item: _oldest_ms(core, item), kept)])
    return max(0, core.now_ms() - oldest_ms)


def _oldest_ms(core: Core, item: Item) -> int:
    """When the oldest message that waits in a resource was sent; now, where none does."""
    now_ms = core.now_ms()
    resource_id = item["sk"]["S"]
    resource = decode_json(item["document"]["S"], Resource)
    if resource.pushed or not read_kept(core, resource_id).messages:
        return now_ms
    source = _source(core, resource, resource_id)
    if source is None:
        return now_ms
    start, until = from_key(core, source, now_ms) or "!", until_key(source, now_ms)
    return min(
        (
            parcel.sent_ms
            for partition in range(source.partitions)
            for parcel in read_page(
                core, partition_key(PARCELS, source.id, partition), start, until, LOOKED_AT
            ).parcels
            if now_ms < parcel.expires_ms and parcel.sent_ms > source.purged_ms
            if any(parcel.receivable(place, now_ms) for place in range(parcel.count))
        ),
        default=now_ms,
    )


def _source(core: Core, resource: Resource, resource_id: str) -> Source | None:
    """What is received from under this id; None for topics, and for what is gone."""
    name, _, subscription_name = resource.name.partition("/")
    if resource.kind in ("queue", "receiver"):
        try:
            return source_with_id(core, get_queue(core, resource.account, name), resource_id)
        except CirrusMQError:
            return None  # deleted meanwhile
    topic = directory.read_cached(core, directory.topic_place(resource.account, name), Topic)
    for subscription in cached_subscriptions(core, topic.id) if topic else ():
        if (subscription.id, subscription.name) == (resource_id, subscription_name):
            return subscription_source(subscription)
    return None
