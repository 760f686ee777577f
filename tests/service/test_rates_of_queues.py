"""Rates of queues and receivers: never more messages within a second than they say."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, sweep

from cirrusmq.access.source_rates import (
    MAX_HELD,
    RateMemory,
    allow_receives,
    give_back,
    second_of,
)
from cirrusmq_local.testing import Reply, World


def receive(queue: TestQueue, limit: int = 16, **fields: Any) -> Reply:
    given = {"max": limit, "wait_seconds": 0, **fields}
    return queue.client.post(f"{queue.path}/messages/receive", given)


def received(queue: TestQueue, limit: int = 16, **fields: Any) -> int:
    reply = receive(queue, limit, **fields)
    assert reply.status in (200, 429), reply.text
    return len(reply.json["messages"]) if reply.status == 200 else 0


def next_second(world: World) -> None:
    world.clock.pass_seconds(1 - world.clock.now_ms() % 1_000 / 1_000)


def forget(world: World) -> None:
    """Go on as another environment, which knows nothing of what was taken."""
    world.core.memories.pop(RateMemory, None)


def test_an_environment_remembers_a_bounded_number_of_rates() -> None:
    memory = RateMemory()
    for number in range(2 * MAX_HELD):
        memory.of((f"source{number}", "send"), 7).left = 5

    assert len(memory._held) == MAX_HELD
    assert memory.of((f"source{2 * MAX_HELD - 1}", "send"), 7).left == 5
    assert memory.of(("source0", "send"), 7).left == 0


def test_a_part_of_an_earlier_second_is_not_given_back(world: World) -> None:
    next_second(world)
    second = second_of(world.core)
    assert allow_receives(world.core, "source", 5, 4) == 4
    give_back(world.core, "source", 1, second)
    assert allow_receives(world.core, "source", 5, 5) == 2

    next_second(world)
    assert allow_receives(world.core, "source", 5, 3) == 3
    give_back(world.core, "source", 3, second)
    assert allow_receives(world.core, "source", 5, 5) == 2


def test_a_rate_taken_whole_by_one_environment_is_asked_for_no_more(world: World) -> None:
    next_second(world)

    def take() -> None:
        assert allow_receives(world.core, "source", 5, 5) == 5
        assert allow_receives(world.core, "source", 5, 5) == 0

    assert world.units(take)[0] == 1


class TestSends:
    def test_sends_over_the_rate_are_refused_until_the_next_second(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(send_rate=10)
        next_second(world)

        statuses = [queue.try_send([{"body": "x"}]).status for _ in range(12)]
        refused = queue.try_send([{"body": "x"}])
        next_second(world)
        later = queue.try_send([{"body": "x"}])

        assert statuses == [201] * 10 + [429] * 2
        assert (refused.code, refused.headers["Retry-After"]) == ("Throttled", "1")
        assert "10 messages a second (send_rate)" in refused.json["detail"]
        assert later.status == 201
        assert queue.counts() == {"active": 11}

    def test_environments_share_it(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue(send_rate=10)
        next_second(world)
        taken = 0
        for _ in range(14):
            forget(world)
            taken += queue.try_send([{"body": "x"}]).status == 201
        assert taken == 10

    def test_a_batch_is_taken_whole_or_not_at_all(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(send_rate=10)
        next_second(world)
        batch = [{"body": "x"}] * 6
        assert [queue.try_send(batch).status for _ in range(2)] == [201, 429]
        assert queue.try_send([{"body": "x"}] * 4).status == 201
        next_second(world)
        reply = queue.try_send([{"body": "x"}] * 11)
        assert (reply.status, reply.code) == (413, "BatchTooLarge")

    def test_refused_messages_take_nothing(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue(send_rate=1)
        next_second(world)
        assert queue.try_send([{"body": ""}]).status == 400
        assert queue.try_send([{"body": "x"}]).status == 201

    def test_a_rate_is_taken_away(self, make_queue: MakeQueue) -> None:
        queue = make_queue(send_rate=1)
        assert queue.patch(send_rate=None).status == 200
        assert {queue.try_send([{"body": "x"}]).status for _ in range(20)} == {201}


class TestReceives:
    def test_no_more_are_handed_out_within_a_second(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(receive_rate=10, partitions=1)
        for _ in range(4):
            queue.send(*["x"] * 16)
        next_second(world)

        first = [received(queue, 4) for _ in range(4)]
        refused = receive(queue)
        next_second(world)
        then = received(queue)

        assert (first, then) == ([4, 4, 2, 0], 10)
        assert (refused.status, refused.code) == (429, "Throttled")
        assert "10 messages are received within a second" in refused.json["detail"]

    def test_environments_share_it(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue(receive_rate=10, partitions=1)
        for _ in range(3):
            queue.send(*["x"] * 16)
        next_second(world)
        counts = []
        for _ in range(14):
            forget(world)
            counts.append(received(queue, 1))
        assert sum(counts) == 10

    def test_a_wait_goes_on_into_the_next_second(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue(receive_rate=1, partitions=1)
        queue.send("a", "b")
        next_second(world)
        assert received(queue, 1) == 1
        assert received(queue, 1, wait_seconds=3) == 1

    def test_an_empty_queue_is_empty_and_not_throttled(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(receive_rate=2, partitions=1)
        next_second(world)
        assert [receive(queue).status for _ in range(5)] == [200] * 5
        queue.send("x")
        assert received(queue) == 1

    def test_a_receiver_has_a_rate_and_labels_of_its_own(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(partitions=1)
        queue.add_receiver("audit")
        path = f"{queue.path}/receivers/audit"
        changed = queue.client.patch(path, {"receive_rate": 2, "labels": {"team": "risk"}})
        assert changed.status == 200, changed.text
        shown = queue.client.get(path).json
        assert (shown["receive_rate"], shown["labels"]) == (2, {"team": "risk"})
        queue.send(*["x"] * 6)
        world.settle()
        next_second(world)

        assert [received(queue, receiver="audit") for _ in range(2)] == [2, 0]
        assert received(queue) == 6
        unset = queue.client.patch(path, {"receive_rate": None, "labels": {}}).json
        assert (unset["receive_rate"], unset["labels"]) == (None, {})

    def test_a_receive_by_an_attribute_takes_too(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue(receive_rate=2, partitions=1)
        queue.send(*["x"] * 6, attributes={"a": "1"})
        next_second(world)
        where = {"name": "a", "value": "1"}
        assert [received(queue, where=where) for _ in range(2)] == [2, 0]

    def test_a_receive_by_an_attribute_gives_back_its_unused_rate(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(receive_rate=3, partitions=1)
        queue.send("found", attributes={"a": "1"})
        queue.send(*["x"] * 6)
        next_second(world)

        assert received(queue, where={"name": "a", "value": "none"}) == 0
        assert received(queue, where={"name": "a", "value": "1"}) == 1
        assert [received(queue) for _ in range(2)] == [2, 0]

    @pytest.mark.parametrize(
        "rates", [{"receive_rate": 3}, {"fair": True, "rate": 3}], ids=["of the queue", "by group"]
    )
    def test_functions_keep_to_it(
        self, world: World, make_queue: MakeQueue, rates: dict[str, Any]
    ) -> None:
        queue = make_queue(partitions=1, invoke={"function": "handler"}, **rates)
        by_second: Counter[int] = Counter()

        def handle(event: dict[str, Any]) -> None:
            by_second[world.clock.now_ms() // 1_000] += len(event["Records"])

        world.handle = handle
        next_second(world)
        queue.send(*["x"] * 8, group="loud")
        world.settle()
        for _ in range(6):
            sweep(world, after_seconds=60)

        assert sum(by_second.values()) == 8
        assert max(by_second.values()) <= 3


class TestCosts:
    def test_a_take_is_a_unit_and_serves_a_share_of_the_rate(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(send_rate=1_000)

        def second(count: int) -> float:
            next_second(world)
            return world.units(lambda: [queue.send("x") for _ in range(count)])[0] - count

        second(1)
        assert second(200) == 200  # nothing was sent before: a take each
        assert second(200) <= 200 / 50 + 1

    def test_a_queue_without_rates_reads_and_writes_nothing_for_them(
        self, world: World, queue: TestQueue
    ) -> None:
        queue.send("x")
        queue.receive()
        assert not [item for item in world.items("usage") if "#rate#" in item["pk"]["S"]]
