"""Fan-out where the store throttles: ordered readers keep their order, and no other waits."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue
from tests.service.faults import Throttled, log_records, publish_apart, puts_into
from tests.service.test_stream_shards import Consumer
from tests.service.topic_crashes import Crashes
from tests.service.topics import TestTopic

from cirrusmq.fanout import parking_lot
from cirrusmq.storage import lease
from cirrusmq_local.testing import Subscriber, World

TRIES = 3
Record = dict[str, Any]


def feed(world: World, records: list[Record], *consumers: Consumer) -> None:
    """Give fan_out a batch as Lambda does: again from the first failure on, until none is left."""
    left = records
    for _ in range(20):
        failures = world.run("fan_out", {"Records": left})["batchItemFailures"]
        for consume in consumers:
            consume()
        if not failures:
            break
        failed = {each["itemIdentifier"] for each in failures}
        first = min(
            place
            for place, record in enumerate(left)
            if record["dynamodb"]["SequenceNumber"] in failed
        )
        left = left[first:]
        world.clock.pass_seconds(1)
    else:
        raise AssertionError("the batch never ended")
    settle(world, *consumers)


def settle(world: World, *consumers: Consumer) -> None:
    """Run what was invoked, the consumers being quick."""
    while world.invoked:
        role, event = world.invoked.popleft()
        world.run(role, event)
        for consume in consumers:
            consume()


BODIES = ["m1", "m2", "m3"]


class TestInOrder:
    """One put of m1's parcel is refused, more often than the SDK and fan_out try it."""

    @pytest.mark.parametrize("times", [1, TRIES, TRIES + 1, 3 * TRIES])
    @pytest.mark.parametrize("reader", ["receiver", "group", "queue", "url"])
    def test_a_reader_with_an_order_keeps_it(
        self,
        world: World,
        topic: TestTopic,
        make_queue: MakeQueue,
        subscriber: Subscriber,
        reader: str,
        times: int,
    ) -> None:
        consumers: list[Consumer] = []
        queue = make_queue("ordered", ordered=True)
        if reader == "receiver":
            reader_id = queue.add_receiver("second")["id"]
            consumers.append(Consumer(queue, receiver="second"))
            for body in BODIES:
                assert queue.try_send([{"body": body, "group": "g"}]).status == 201
        else:
            if reader == "group":
                group = topic.subscribe("group", ordered=True)
                reader_id = group.id
                consumers.append(Consumer(group))
            elif reader == "queue":
                topic.subscribe("to-queue", "queue", endpoint="ordered")
                reader_id = queue.show()["id"]
                consumers.append(Consumer(queue))
            else:
                reader_id = topic.subscribe("web", "http", retry={"policy": "backoff"}).id
            publish_apart(topic, *BODIES, group="g")
        Throttled(world, puts_into(reader_id), times)

        feed(world, log_records(world), *consumers)

        got = consumers[0].bodies if consumers else subscriber.bodies()
        assert got == BODIES


class TestCrashes:
    """fan_out or the drainer ends at any call of the store, in the midst of parked shares."""

    @pytest.mark.few(1)
    @pytest.mark.parametrize("role", ["fan_out", "replay"])
    def test_nothing_is_lost_and_nothing_overtakes(self, role: str) -> None:
        at = 0
        while True:
            world = World()
            topic = TestTopic(world.client("alice"))
            group = topic.subscribe("group", ordered=True)
            records = publish_apart(topic, *BODIES, group="g")
            Throttled(world, puts_into(group.id), TRIES)
            crashes = Crashes(world, role, at)
            consumer = Consumer(group)
            world.run("fan_out", {"Records": records})
            settle(world, consumer)
            if crashes.crashed_ms is None:
                assert consumer.bodies == BODIES
                break
            if role == "fan_out":  # the stream was not told that the batch is done
                feed(world, records, consumer)
            else:  # the lease ends, and the sweep runs
                world.clock.pass_seconds(61)
                world.run("sweep")
                settle(world, consumer)
            assert list(dict.fromkeys(consumer.bodies)) == BODIES, at
            world.engine.close()
            at += 1
        assert at >= 8

    def test_the_lot_stays_while_its_writer_may_be_at_it(
        self, world: World, topic: TestTopic
    ) -> None:
        """A drainer that finds nothing yet does not remove the lot of shares still to be parked."""
        group = topic.subscribe("group", ordered=True)
        parking_lot.mark(world.core, group.id)
        world.run("replay", {"parked": group.id})
        assert parking_lot.exists(world.core, group.id)
        world.clock.pass_seconds(parking_lot.KEEP_MS / 1000 + 1)
        world.run("replay", {"parked": group.id})
        assert not parking_lot.exists(world.core, group.id)

    def test_parked_messages_are_handed_out_by_one_at_a_time(
        self, world: World, topic: TestTopic
    ) -> None:
        group = topic.subscribe("group", ordered=True)
        records = publish_apart(topic, *BODIES, group="g")
        Throttled(world, puts_into(group.id), TRIES)
        world.run("fan_out", {"Records": records})
        another = parking_lot.hold(world.core, group.id)
        assert another is not None
        settle(world)
        world.run("fan_out", {"Records": publish_apart(topic, "m4", group="g")[3:]})
        settle(world)
        assert group.receive_all() == []
        lease.release(world.core, another)
        consumer = Consumer(group)
        feed(world, publish_apart(topic, "m5", group="g")[4:], consumer)
        assert consumer.bodies == [*BODIES, "m4", "m5"]


class TestNeighbours:
    def test_they_get_nothing_twice_while_another_subscription_is_throttled(
        self, world: World, topic: TestTopic
    ) -> None:
        throttled, healthy = topic.subscribe("throttled", ordered=True), topic.subscribe("healthy")
        records = publish_apart(topic, *BODIES, group="g")
        fault = Throttled(world, puts_into(throttled.id))
        consumer, late = Consumer(healthy), Consumer(throttled)
        feed(world, records, consumer, late)
        assert sorted(consumer.bodies) == BODIES
        assert late.bodies == []

        fault.end()
        feed(world, publish_apart(topic, "m4", group="g")[3:], consumer, late)
        assert sorted(consumer.bodies) == [*BODIES, "m4"]
        assert late.bodies == [*BODIES, "m4"]

    def test_a_failing_share_costs_its_reader_three_tries_a_batch(
        self, world: World, topic: TestTopic
    ) -> None:
        throttled = topic.subscribe("throttled")
        records = publish_apart(topic, *(f"{number}" for number in range(20)))
        fault = Throttled(world, puts_into(throttled.id))
        world.run("fan_out", {"Records": records})
        assert fault.refused <= 16 * TRIES  # the shares side by side with the first
        fault.end()
        settle(world)
        assert len(throttled.receive_all()) == 20
