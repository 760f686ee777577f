"""The hottest partition key of a topic at 5,000 single messages a second, from the code's own keys.

A key takes 1,000 write and 3,000 read units a second. The engine counts a message's units on each
kind of key, over its whole life. The number of messages of a second on the hottest key of a kind is
counted over 5,000 ids, by the code that chooses their partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from cirrusmq.base.limits import CACHE_MS, SLOW_CACHE_MS
from cirrusmq.fanout.topic_shares import own_share
from cirrusmq.model.topic import Subscription, Topic, partitions_of
from cirrusmq.publishing.log_records import new_id
from cirrusmq.publishing.records import read_record
from cirrusmq.queues.queues import get_queue
from cirrusmq.runtime.store import SHARDS
from cirrusmq.storage.sizes import UNIT_BYTES, item_bytes
from cirrusmq.subscriptions.subscriptions import list_subscriptions
from cirrusmq.subscriptions.topics import find_topic
from cirrusmq_local.commands.quotas import KEY_READS, KEY_WRITES
from cirrusmq_local.testing.world import Client, World

from ..drawing.tables import show
from . import bodies
from .environments import PER_SECOND, heat_by_environments
from .keys import Keys, Units
from .lives import subscribe

RATE = 5_000
PARTITIONS = {1: 32, 20: 32, 100: 192}
"""Partitions of the topic, by number of subscriptions."""
QUEUE_PARTITIONS = 32
PROTOCOLS = ("pull", "queue", "http")
SAMPLE = 48
"""Messages of one batch of fan_out."""
ENVIRONMENTS = 100
"""Environments of the publishing function: 5,000 calls a second of 20 ms. Each reads attributes
again once a second."""
METERED = 1_000
"""Changes in a batch of the meter; the maximum of a stream's shard in a second."""


def run() -> None:
    """Prints the tables."""
    rows = []
    for count, partitions in PARTITIONS.items():
        for protocol in PROTOCOLS:
            heat = hottest(protocol, count, partitions)
            rows += [
                (count, protocol, partitions, kind, units.writes, units.reads)
                for kind, units in heat.items()
            ]
    show(
        f"Units a second on the hottest key of each kind, {RATE:,} messages of 1 KB a second",
        ["subscriptions", "to", "partitions", "key", "writes", "reads"],
        rows,
    )
    print(f"\nA key takes {KEY_WRITES:,} writes and {KEY_READS:,} reads a second. Queues of")
    print(f"subscriptions have {QUEUE_PARTITIONS} partitions each.")
    show(
        "Units a second on keys of one account, by the environments that it keeps busy",
        ["environments", "DocumentSeconds", "key", "writes", "reads"],
        [
            (each.environments, each.seconds, each.key, each.units.writes, each.units.reads)
            for each in heat_by_environments()
        ],
    )
    print(f"\nDocumentSeconds: {PER_SECOND:,} environments for each second, at most.")


def hottest(protocol: str, count: int, partitions: int) -> dict[str, Units]:
    """Returns units per second on the hottest key of each kind, for a topic with subscriptions.

    `count`: number of subscriptions. The sample is in one partition, so that its batches are full,
    as in a busy topic.
    """
    world = World(shared_caches=False)
    alice = world.client("alice")
    alice.put("/topics/news", {"partitions": 1})
    for number in range(count):
        subscribe(alice, protocol, number)
    keys = Keys(world)
    _live(world, alice, protocol, count, 1)
    attributes = _attributes(world, alice, keys, partitions)
    _live(world, alice, protocol, count, 0)
    world.run_stream("meter")
    keys.take()
    before = world.engine.stream_position(world.tables.messages)
    _live(world, alice, protocol, count, SAMPLE)
    changes = world.engine.stream_position(world.tables.messages) - before
    by_key = keys.take()
    topic = find_topic(world.core, "alice", "news").value
    subscription = list_subscriptions(world.core, topic)[0]
    source_id = subscription.endpoint_id or subscription.id
    met = _meetings(world, topic, subscription, partitions)
    log, parcels = (_family(by_key, f"{kind}#") for kind in (f"L#{topic.id}", f"Q#{source_id}"))
    heat = {
        "log": log.times(met.in_log / SAMPLE),
        "parcels": parcels.times(met.in_source / SAMPLE),
        "attributes": _hottest(attributes, ("A#", "K#", "T#")),
        **_metered(world, changes * RATE / SAMPLE, parcels.writes * RATE / SAMPLE, met.sources),
    }
    if protocol == "http":
        heat["schedules"] = _hottest(by_key, ("S#",)).times(RATE / SAMPLE)
    world.engine.close()
    return heat


def _attributes(world: World, client: Client, keys: Keys, environments: int) -> dict[str, Units]:
    """Returns units of a second's directory reads, by publishing environments and fan_out's.

    `environments`: fan_out's, one for each shard. Some documents are cached for a second, some for
    a minute.
    """
    functions: tuple[tuple[Callable[[], None], int], ...] = (
        (partial(_publish, client, 1), ENVIRONMENTS),
        (partial(world.run_stream, "fan_out"), environments),
    )
    read: dict[str, Units] = {}
    for seconds, share in ((SLOW_CACHE_MS / 1000, 1 / 60), (CACHE_MS / 1000, 1 - 1 / 60)):
        for call, times in functions:
            world.clock.pass_seconds(seconds)
            keys.take()
            call()
            for pk, units in keys.take().items():
                read[pk] = read.get(pk, Units()) + units.times(share * times)
    return read


def _publish(client: Client, messages: int) -> None:
    for _ in range(messages):
        reply = client.post("/topics/news/messages", {"messages": [bodies.binary(1_024)]})
        if reply.status != 201:
            raise RuntimeError(reply.text)


def _live(world: World, client: Client, protocol: str, count: int, messages: int) -> None:
    """Publishes messages, and receives and deletes, or posts, all of them."""
    _publish(client, messages)
    world.run_stream("fan_out")
    if protocol == "http":
        while world.invoked:
            world.run(*world.invoked.popleft())
        return
    world.invoked.clear()
    for number in range(count):
        source = (
            f"queues/in{number}"
            if protocol == "queue"
            else f"topics/news/subscriptions/sub{number}"
        )
        _take_all(client, f"/{source}")


def _take_all(client: Client, source: str) -> None:
    asked = {"max": 16, "wait_seconds": 0}
    while held := client.post(f"{source}/messages/receive", asked).json["messages"]:
        receipts = [message["receipt"] for message in held]
        client.post(f"{source}/messages/delete", {"receipts": receipts})


@dataclass(frozen=True)
class Meetings:
    """Number of messages of a second on one key."""

    in_log: int
    in_source: int
    sources: int
    """Number of keys of one subscription's parcels."""


def _meetings(world: World, topic: Topic, subscription: Subscription, partitions: int) -> Meetings:
    """Counts over new ids of a topic with this number of partitions."""
    records = [item for item in world.items() if item["pk"]["S"].startswith(f"L#{topic.id}#")]
    record = read_record(next(item for item in records if "g" in item))
    delivery = record.header.deliveries[0]
    wide = replace(topic, attributes=replace(topic.attributes, partitions=partitions))
    reader = replace(subscription, partitions=partitions_of(subscription.protocol, wide))
    queue = None
    if subscription.protocol == "queue":
        queue = get_queue(world.core, "alice", subscription.endpoint or "")
        attributes = replace(queue.attributes, partitions=QUEUE_PARTITIONS)
        queue = replace(queue, attributes=attributes)
    in_log: Counter[int] = Counter()
    in_source: Counter[int] = Counter()
    for _ in range(RATE):
        send_id = new_id(world.core, wide, world.clock.now_ms(), in_order=False)
        partition = wide.log_partition(send_id)
        in_log[partition] += 1
        other = replace(record, send_id=send_id, partition=partition)
        share = own_share(reader, other, delivery)
        in_source[queue.partition_of(send_id) if queue else share.partition] += 1
    return Meetings(max(in_log.values()), max(in_source.values()), len(in_source))


def _metered(world: World, changes: float, writes: float, sources: int) -> dict[str, Units]:
    """Returns the meter's writes, from changes per second, and a source's writes and keys.

    A shard of the stream has the keys of one partition of the table, which takes 1,000 writes a
    second: it fills one batch of the meter in a second, with few resources if keys are busy. A
    source is in at most as many batches a second as it has keys.
    """
    batches = changes / METERED
    keys_of_a_shard = 1 + KEY_WRITES * sources / writes
    world.run_stream("meter")
    items = [item for item in world.items("usage") if "counters" in item]
    item = max(items, key=item_bytes)
    one = item_bytes(item) / max(1, len(item["counters"]["M"]))
    return {
        "usage": Units(2 * -(-one * keys_of_a_shard // UNIT_BYTES) * batches / SHARDS),
        "counters": Units(2 * min(batches, sources)),
    }


def _family(by_key: Mapping[str, Units], prefix: str) -> Units:
    return sum((units for pk, units in by_key.items() if pk.startswith(prefix)), Units())


def _hottest(by_key: Mapping[str, Units], prefixes: tuple[str, ...]) -> Units:
    units = [units for pk, units in by_key.items() if pk.startswith(prefixes)]
    return Units(
        max((each.writes for each in units), default=0.0),
        max((each.reads for each in units), default=0.0),
    )
