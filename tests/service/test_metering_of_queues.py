"""The meter over a queue's life: usage by kind, and the counter of kept messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, usage
from tests.service.crashes import before_each_call
from tests.service.topics import Schedules, TestTopic

from cirrusmq.base.errors import Unavailable
from cirrusmq.storage.counters import read_kept
from cirrusmq_local.engine import EngineError
from cirrusmq_local.testing import Subscriber, World


def kept(world: World, queue: TestQueue) -> int:
    return read_kept(world.core, queue.show()["id"]).messages


def test_a_message_is_counted_as_sent_received_and_deleted(world: World, queue: TestQueue) -> None:
    queue.send("a", "b" * 5_000, "c")
    world.settle()
    assert kept(world, queue) == 3
    held = queue.receive()
    world.clock.pass_seconds(30)
    held = queue.receive()
    queue.delete(*held[:2])
    world.settle()

    assert usage(world) == {
        "queue:orders sent": 3,
        "queue:orders received": 6,
        "queue:orders deleted": 2,
    }
    assert kept(world, queue) == 1


@pytest.mark.parametrize("seconds", [1, 1_000])
def test_a_retrys_wait_is_no_delete(world: World, queue: TestQueue, seconds: int) -> None:
    queue.send("a")
    queue.send("b", "c")
    world.clock.pass_seconds(200)
    queue.give_back(*queue.receive_all(), delay_seconds=seconds)
    world.settle()

    assert usage(world) == {"queue:orders sent": 3, "queue:orders received": 3}
    assert kept(world, queue) == 3


@pytest.mark.parametrize("seconds", [0, 200])
def test_a_dead_letter_leaves_one_queue_and_enters_another(
    world: World, make_queue: MakeQueue, dead: TestQueue, seconds: int
) -> None:
    queue = make_queue(dead_letter={"queue": "dead", "max_receives": 9})
    queue.send("a")
    world.clock.pass_seconds(seconds)
    queue.act("dead-letter", *queue.receive())
    world.settle()

    assert usage(world) == {
        "queue:orders sent": 1,
        "queue:orders received": 1,
        "queue:orders dead_lettered": 1,
    }
    assert (kept(world, queue), kept(world, dead)) == (0, 1)


def test_a_rewind_is_counted(world: World, make_queue: MakeQueue, now: Callable[..., str]) -> None:
    queue = make_queue(rewind_seconds=3_600)
    start = now()
    queue.send("a", "b")
    queue.send("c")
    for message in queue.receive_all():
        queue.delete(message)
    world.clock.pass_seconds(1)
    queue.run("rewind", to=start)
    world.settle()

    counted = usage(world)
    assert counted["queue:orders rewound"] == 3
    assert counted["queue:orders deleted"] == 3
    assert kept(world, queue) == 3


def test_an_expiry_is_no_delete(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(message_retention_seconds=60)
    queue.send("a", "b")
    queue.delete(queue.receive(1)[0])
    world.clock.pass_seconds(62)
    world.engine.remove_expired()
    world.settle()

    assert usage(world)["queue:orders expired"] == 1
    assert usage(world)["queue:orders deleted"] == 1
    assert kept(world, queue) == 0


def stored_records(world: World) -> dict[str, Any]:
    """The usage of each record, as it is stored, by the record's key."""
    return {
        item["sk"]["S"]: (item["records"], item["w"], item["expires_at"])
        for item in world.items("usage")
        if "records" in item
    }


@pytest.mark.parametrize(
    "lengths", [(9, 5), (5, 9), (9, 5, 9), (9, 2, 7, 2), (1, 9, 1, 9), (4, 4, 9, 9)]
)
def test_a_batch_repeated_with_another_length_adds_the_difference(
    world: World, queue: TestQueue, lengths: Sequence[int]
) -> None:
    for number in range(9):
        queue.send("x" * (number + 1))
    records = world.engine.read_stream(world.tables.messages, 0, 9)
    seen: dict[str, Any] = {}

    for length in lengths:
        world.clock.pass_seconds(61)
        event = {"Records": [record.as_lambda_record() for record in records[:length]]}
        world.run("meter", event)
        assert sum(usage(world).values()) == length
        assert kept(world, queue) == length
        stored = stored_records(world)
        assert {name: stored[name] for name in seen} == seen
        seen = stored

    first = records[0].as_lambda_record()["eventID"]
    # Each delivery is a version, also one that adds nothing: what is on its way is refused by it.
    differ = [number for number, (one, next_) in enumerate(pairwise(lengths), 2) if one != next_]
    assert seen.keys() == {first, *(f"{first}#{number}" for number in differ)}


def test_a_late_write_is_refused_behind_a_shorter_batch_adding_nothing(
    world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer was lost, and it takes effect when the batch was counted in two."""
    for number in range(4):
        queue.send("x" * (number + 1))
    records = world.engine.read_stream(world.tables.messages, 0, 4)
    events = [record.as_lambda_record() for record in records]
    late: list[Mapping[str, Any]] = []

    def lose(operation: str, request: Mapping[str, Any]) -> None:
        if operation == "TransactWriteItems":
            late.append(request)
            raise EngineError("InternalServerError", "lost")

    world.run("meter", {"Records": events[:1]})
    with monkeypatch.context() as patch:
        before_each_call(world, patch, lose)
        with pytest.raises(Unavailable):
            world.run("meter", {"Records": events})
    for batch in (events[:1], events[1:]):
        world.run("meter", {"Records": batch})
    assert late
    for request in late:
        with pytest.raises(EngineError):
            world.engine.execute("TransactWriteItems", request)
    assert sum(usage(world).values()) == 4
    assert kept(world, queue) == 4


def test_an_overwritten_record_of_an_earlier_release_is_added_to(
    world: World, queue: TestQueue
) -> None:
    queue.send(*"abcd")
    queue.send("e")
    records = [
        each.as_lambda_record() for each in world.engine.read_stream(world.tables.messages, 0, 9)
    ]
    world.run("meter", {"Records": records[:1]})
    (item,) = (item for item in world.items("usage") if "records" in item)
    for entry in item["records"]["L"]:
        del entry["M"]["id"]
    item |= {"version": {"N": "3"}}
    del item["w"]
    world.engine.execute("PutItem", {"TableName": world.tables.usage, "Item": item})

    world.run("meter", {"Records": records})

    assert usage(world) == {"queue:orders sent": 5}
    assert kept(world, queue) == 5
    names = {item["sk"]["S"] for item in world.items("usage") if "records" in item}
    assert names == {records[0]["eventID"], f"{records[0]['eventID']}#4"}


def test_an_entry_has_the_id_of_its_resource(world: World, queue: TestQueue) -> None:
    queue.send("a")
    world.settle()
    world.clock.pass_seconds(3_600)
    world.run("sweep")

    ids = {
        entry["M"]["id"]["S"]
        for item in world.items("usage")
        for entry in item.get("records", {"L": []})["L"]
    }
    assert ids == {queue.show()["id"]}


def gauged(world: World) -> dict[str, int]:
    """The gauges of the next 5 hours' sweeps, all hours together."""
    for _ in range(5):
        world.clock.pass_seconds(3_600)
        world.run("sweep")
    return {name: n for name, n in usage(world).items() if name.endswith((" kept", " rewindable"))}


def test_kept_messages_of_a_queue_and_its_receivers_are_gauged_hourly(
    world: World, queue: TestQueue
) -> None:
    queue.add_receiver("copy")
    queue.send("a", "b")
    world.settle()

    assert gauged(world) == {"queue:orders kept": 10, "queue:orders/copy kept": 10}


def test_messages_of_a_deleted_queues_receivers_are_kept_no_longer(
    world: World, queue: TestQueue
) -> None:
    queue.add_receiver("copy")
    queue.send("a", "b")
    world.settle()
    queue.client.delete(queue.path)

    assert gauged(world) == {}


def test_rewindable_messages_are_gauged_until_rewinding_is_turned_off(
    world: World, make_queue: MakeQueue
) -> None:
    queue = make_queue(rewind_seconds=86_400)
    queue.add_receiver("copy")
    queue.send("a", "b")
    world.settle()
    queue.delete(*queue.receive_all())
    queue.delete(*queue.receive_all(receiver="copy"))
    world.settle()
    on = {"queue:orders rewindable": 10, "queue:orders/copy rewindable": 10}
    assert gauged(world) == on

    queue.patch(rewind_seconds=0)

    assert gauged(world) == on


def test_deleted_messages_beside_live_ones_are_counted_and_gauged(
    world: World, make_queue: MakeQueue
) -> None:
    queue = make_queue(rewind_seconds=86_400)
    queue.send(*(str(number) for number in range(16)))
    world.settle()
    queue.delete(*queue.receive(16)[:15])
    world.settle()
    assert queue.counts()["rewindable"] == 15
    assert read_kept(world.core, queue.show()["id"]).rewindable == 15
    assert gauged(world)["queue:orders rewindable"] == 5 * 15


@pytest.mark.parametrize("protocol", ["http", "pull"])
def test_a_dead_letter_redriven_to_its_subscription_is_no_delete(
    world: World,
    dead: TestQueue,
    topic: TestTopic,
    subscriber: Subscriber,
    schedules: Schedules,
    protocol: str,
) -> None:
    retry = {"policy": "custom", "waits": [1]}
    reader = topic.subscribe("reader", protocol, dead_letter_queue="dead", retry=retry)
    subscriber.down()
    topic.publish("a")
    for _ in range(3):
        schedules.pass_seconds(5)
        if protocol == "pull":
            reader.receive(visibility_timeout_seconds=1)
    subscriber.up()
    schedules.pass_seconds(200)
    assert dead.counts() == {"active": 1}

    assert dead.run("redrive")["done"] == 1
    schedules.pass_seconds(5)

    assert not [name for name in usage(world) if name.startswith("queue:dead")]
    assert dead.counts() == {}
