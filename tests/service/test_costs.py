"""The costs of calls: write and read units, as the engine counts them by the published rules."""

from __future__ import annotations

import base64
import random
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue

from cirrusmq.storage.sizes import UNIT_BYTES, item_bytes
from cirrusmq_local.testing import World


def b64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def parcels(world: World) -> list[dict[str, Any]]:
    return [item for item in world.items() if item["pk"]["S"].startswith("Q#")]


def message_units(world: World) -> float:
    tables = world.engine.capacity()["by_table"]
    return float(tables.get(world.tables.messages, {"read_units": 0})["read_units"])


def life(queue: TestQueue, messages: list[Any]) -> None:
    """Send, receive and delete in batches."""
    assert queue.try_send(messages).status == 201
    held = queue.receive()
    assert len(held) == len(messages)
    queue.delete(*held)


def test_a_small_message_costs_three_write_units_in_its_life(
    world: World, queue: TestQueue
) -> None:
    queue.receive()  # who receives is noted once in five minutes
    assert world.write_units(lambda: life(queue, [{"body": "x" * 100}])) == 3
    assert world.items() == []


@pytest.mark.parametrize("compressible", [True, False])
def test_16_messages_of_40_bytes_cost_at_most_five(
    world: World, queue: TestQueue, compressible: bool
) -> None:
    chance = random.Random(5)
    messages = [
        {"body": "x" * 40} if compressible else {"body_base64": b64(chance.randbytes(40))}
        for _ in range(16)
    ]

    assert world.write_units(lambda: life(queue, messages)) <= 5


def test_a_large_message_costs_its_bytes_once_and_three_more(
    world: World, queue: TestQueue
) -> None:
    body = random.Random(6).randbytes(65_536)

    assert world.write_units(lambda: life(queue, [{"body_base64": b64(body)}])) <= 68


def test_a_large_body_is_not_written_again_by_holds_give_backs_and_retries(
    world: World, queue: TestQueue
) -> None:
    body = random.Random(6).randbytes(60_000)
    queue.receive()  # who receives is noted once in five minutes
    queue.try_send([{"body_base64": b64(body)}])

    def turn() -> None:
        (held,) = queue.receive()
        queue.hold(held, 100)
        queue.give_back(held)

    assert world.write_units(turn) == 3


def test_a_long_wait_costs_a_move_of_one_small_parcel(world: World, queue: TestQueue) -> None:
    body = random.Random(6).randbytes(60_000)
    queue.try_send([{"body_base64": b64(body)}])
    (held,) = queue.receive()

    assert world.write_units(lambda: queue.give_back(held, delay_seconds=7_200)) == 4


class TestParcels:
    """A parcel never exceeds 1 KiB, so that every change of it costs one unit."""

    @pytest.mark.few(1)
    @pytest.mark.parametrize("kind", [{}, {"ordered": True}, {"fair": True}])
    @pytest.mark.parametrize("receivers", [pytest.param(0, marks=pytest.mark.long), 1])
    def test_with_16_messages_with_every_field(
        self, world: World, make_queue: MakeQueue, kind: dict[str, bool], receivers: int
    ) -> None:
        make_queue("dead", **kind)
        queue = make_queue(
            "q" * 64,
            **kind,
            partitions=255,
            message_retention_seconds=1_296_000,
            retry={"policy": "custom", "waits": [43_199.999], "jitter": 0.9},
            dead_letter={"queue": "dead", "max_receives": 1_000, "max_age_seconds": 43_200},
        )
        for number in range(receivers):
            queue.add_receiver(f"r{number}")
        chance = random.Random(9)
        largest = 0
        for size in (1, 15, 20, 25, 30, 40, 1_000, 15_000):
            messages = []
            for number in range(16):
                message: dict[str, Any] = {
                    "body_base64": b64(chance.randbytes(size)),
                    "attributes": {"a" * 64: "\1" * min(size, 1_000)},
                    "tags": ["t" * 16],
                    "group": "g" * 128,
                    "visibility_timeout_seconds": 43_000 + number,
                    "deduplication_id": f"{size} {number}",
                }
                messages.append(message)
            assert queue.try_send(messages).status == 201
            world.settle()
            for source in ("default", *(f"r{number}" for number in range(receivers))):
                held = queue.receive(receiver=source)
                assert len(held) == 16
                sizes = [item_bytes(item) for item in parcels(world)]
                largest = max(largest, *sizes)
                assert max(sizes) <= UNIT_BYTES, size
                queue.delete(*held[1:])
                entry = queue.hold(held[0], 43_200)
                assert len(entry["changed"]) == 1
                assert max(item_bytes(item) for item in parcels(world)) <= UNIT_BYTES
                queue.delete(held[0])
        assert largest > 700  # the limit was worth looking at

    def test_a_dead_letter_with_a_long_reason(self, world: World, make_queue: MakeQueue) -> None:
        make_queue("d" * 64)
        queue = make_queue("q" * 64, dead_letter={"queue": "d" * 64, "max_receives": 9})
        queue.add_receiver("r" * 64)
        queue.send("x", group="g" * 128, attributes={"a": "b"})
        world.settle()
        held = queue.receive(receiver="r" * 64)

        queue.act("dead-letter", *held, reason="r" * 256)

        assert max(item_bytes(item) for item in parcels(world)) <= UNIT_BYTES

    def test_sizes_are_counted_as_the_engine_bills_them(
        self, world: World, queue: TestQueue
    ) -> None:
        for size in (10, 100, 500, 900):
            queue.send("".join(map(chr, range(40, 40 + size))))
        for item in parcels(world):
            put = {"TableName": world.tables.messages, "Item": item}
            units = world.write_units(lambda put=put: world.engine.execute("PutItem", put))  # type: ignore[misc]
            assert units == -(-item_bytes(item) // 1_024)


def fill(world: World, items: list[dict[str, Any]]) -> None:
    """Put items straight into the store, as many calls would."""
    for first in range(0, len(items), 25):
        puts = [{"PutRequest": {"Item": item}} for item in items[first : first + 25]]
        world.engine.execute("BatchWriteItem", {"RequestItems": {world.tables.messages: puts}})


def cost_of_receives(backlog: int) -> float:
    """Read units of five receives of ten messages each."""
    world = World()
    alice = world.client("alice", admin=True)
    alice.put("/queues/orders", {"partitions": 1})
    queue = TestQueue(alice, "orders")
    queue.send("x" * 100)
    (parcel,) = parcels(world)
    prefix = parcel["sk"]["S"][:-10]
    fill(world, [{**parcel, "sk": {"S": f"{prefix}{n:010d}"}} for n in range(backlog - 1)])
    before = message_units(world)
    for _ in range(5):
        assert len(queue.receive(10)) == 10
    cost = message_units(world) - before
    world.engine.close()
    return cost


@pytest.mark.parametrize("backlog", [3_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_a_receive_costs_the_same_whatever_the_backlog(backlog: int) -> None:
    assert cost_of_receives(backlog) == cost_of_receives(100)


@pytest.mark.long
def test_10_000_in_flight_cost_at_most_25_read_units_a_second_more(
    world: World, make_queue: MakeQueue
) -> None:
    queue = make_queue(partitions=1, visibility_timeout_seconds=43_200)

    def units_a_second(seconds: int) -> float:
        """Read units a second, of five receives and one message a second."""
        before = message_units(world)
        for _ in range(seconds):
            queue.send("new")
            for _ in range(5):
                queue.receive()
                world.clock.pass_seconds(0.2)
        return (message_units(world) - before) / seconds

    alone = units_a_second(10)
    world.clock.pass_seconds(4)  # younger keys are read again and again, for a first delivery
    item = parcels(world)[0]
    in_flight = {**item, "v": {"L": [{"N": str(world.clock.now_ms() + 43_200_000)}]}}
    start_ms = world.clock.now_ms() - 13_000
    key = item["sk"]["S"][13:]
    fill(world, [{**in_flight, "sk": {"S": f"{start_ms + n:013d}{key}"}} for n in range(10_000)])

    is_backlogged = units_a_second(40)

    assert is_backlogged - alone <= 25
    assert is_backlogged > alone  # they were there


def test_messages_with_a_late_retry_leave_the_head(world: World, make_queue: MakeQueue) -> None:
    make_queue("dead")
    queue = make_queue(
        partitions=1,
        retry={"policy": "custom", "waits": [3_600]},
        dead_letter={"queue": "dead", "max_receives": 9},
    )
    for _ in range(40):
        queue.send(*("x" * 16))
    assert len(queue.receive_all(visibility_timeout_seconds=1)) == 640
    world.clock.pass_seconds(2)
    for _ in range(2):  # they are re-keyed, and later the tombstones of their sends are removed
        queue.receive()
        world.settle()
        world.clock.pass_seconds(1_000)
    before = message_units(world)

    assert queue.receive() == []

    assert message_units(world) - before <= 0.5
