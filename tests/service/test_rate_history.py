"""The last week of a resource by the hour: what the sweep moves out of its counter."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, sweep, to_ms
from tests.service.topics import TestTopic

from cirrusmq.storage.counters import rates_in, read_all_counters
from cirrusmq.storage.rate_history import move_past, remove_empty
from cirrusmq_local.engine import EngineError
from cirrusmq_local.testing import Client, World

HOUR = 3_600
SHOWN = ("sent", "received", "deleted", "published", "kept")


@pytest.fixture(autouse=True)
def _at_the_beginning_of_an_hour(world: World) -> None:
    into = world.clock.now_ms() // 1_000 % HOUR
    world.clock.pass_seconds(HOUR - into + 60)


def hourly(client: Client, hours: int, named: str = "queues=orders") -> dict[str, list[int]]:
    """The numbers of one resource that are not all 0."""
    reply = client.get("/rates", f"{named}&hours={hours}")
    assert reply.status == 200, reply.text
    assert reply.json["interval_seconds"] == HOUR
    (rates,) = reply.json["rates"]
    assert all(len(rates[name]) == hours for name in SHOWN)
    return {name: rates[name] for name in SHOWN if any(rates[name])}


def sweep_for(world: World, seconds: int) -> None:
    """Let time pass, with a sweep every ten minutes."""
    for _ in range(seconds // 600):
        sweep(world, after_seconds=600)


def days(world: World) -> list[dict[str, Any]]:
    return [item for item in world.items("usage") if item["pk"]["S"].startswith("V#")]


def test_a_day_has_each_of_its_hours_wherever_it_is_kept(
    world: World, alice: Client, queue: TestQueue
) -> None:
    queue.send(*"abc")
    world.settle()
    assert hourly(alice, 2) == {"sent": [0, 3], "kept": [0, 3]}
    sweep_for(world, HOUR)
    queue.delete(*queue.receive()[:2])
    world.settle()
    assert hourly(alice, 3) == {
        "sent": [0, 3, 0], "received": [0, 0, 3], "deleted": [0, 0, 2], "kept": [0, 3, 1]
    }  # fmt: skip
    assert days(world) == []

    sweep_for(world, 3 * HOUR)

    # The counter has none of it any more, and nothing changed.
    assert [rates_in(counter.item) for counter in read_all_counters(world.core)] == [{}]
    assert hourly(alice, 6) == {
        "sent": [0, 3, 0, 0, 0, 0],
        "received": [0, 0, 3, 0, 0, 0],
        "deleted": [0, 0, 2, 0, 0, 0],
        "kept": [0, 3, 1, 1, 1, 1],
    }
    assert hourly(alice, 1) == {"kept": [1]}


def test_an_empty_queue_keeps_its_week(world: World, alice: Client, queue: TestQueue) -> None:
    queue.send("a")
    queue.delete(*queue.receive())
    world.settle()
    sweep_for(world, 2 * HOUR)
    assert list(read_all_counters(world.core)) == []
    assert hourly(alice, 3) == {"sent": [1, 0, 0], "received": [1, 0, 0], "deleted": [1, 0, 0]}


def test_a_week_ends_after_a_week(world: World, alice: Client, queue: TestQueue) -> None:
    queue.send("a")
    world.settle()
    sweep_for(world, 3 * HOUR)
    (day,) = days(world)
    world.clock.pass_seconds(164 * HOUR)
    assert hourly(alice, 168) == {"sent": [1, *[0] * 167], "kept": [1] * 168}
    world.clock.pass_seconds(HOUR)
    assert hourly(alice, 168) == {"kept": [1] * 168}
    left_days = int(day["expires_at"]["N"]) / 86_400 - world.clock.now_ms() / 86_400_000
    assert 0 < left_days <= 2


def test_the_answer_begins_with_the_first_of_the_hours(
    world: World, alice: Client, queue: TestQueue
) -> None:
    world.clock.pass_seconds(17)
    shown = alice.get("/rates", "queues=orders&hours=24").json
    assert to_ms(shown["starts_at"]) == world.clock.now_ms() - 77_000 - 23 * HOUR * 1_000


def test_two_sweeps_at_once_move_an_hour_once(
    world: World, alice: Client, queue: TestQueue
) -> None:
    queue.send("a")
    world.settle()
    world.clock.pass_seconds(2 * HOUR)
    (counter,) = read_all_counters(world.core)
    assert counter.past

    move_past(world.core, counter)
    move_past(world.core, counter)

    assert hourly(alice, 3)["sent"] == [1, 0, 0]


def test_late_additions_of_the_meter_are_moved_by_the_next_sweep(
    world: World, alice: Client, queue: TestQueue
) -> None:
    queue.send("a")
    world.settle()
    queue.send("b")
    world.clock.pass_seconds(2 * HOUR)
    (read_before,) = read_all_counters(world.core)
    world.settle()  # of "b", which the meter sees two hours late

    move_past(world.core, read_before)
    assert days(world) == []
    (counter,) = read_all_counters(world.core)
    move_past(world.core, counter)

    assert len(days(world)) == 1
    assert hourly(alice, 3)["sent"] == [2, 0, 0]


@pytest.mark.parametrize("empty", [False, True])
def test_an_hour_is_moved_once_though_the_answer_is_lost(
    world: World, alice: Client, queue: TestQueue, monkeypatch: pytest.MonkeyPatch, empty: bool
) -> None:
    queue.send("a")
    if empty:
        queue.delete(*queue.receive())
    world.settle()
    world.clock.pass_seconds(HOUR + 60 if empty else 2 * HOUR)
    execute = world.engine.execute
    lost: list[Any] = []

    def lose(operation: str, request: Any) -> Any:
        answer = execute(operation, request)
        if operation == "TransactWriteItems" and "V#" in str(request) and len(lost) < 3:
            lost.append(request)
            raise EngineError("InternalServerError", "lost")
        return answer

    monkeypatch.setattr(world.engine, "execute", lose)
    for _ in range(3):
        world.run("sweep", {})
        world.clock.pass_seconds(60)

    assert lost
    assert hourly(alice, 4)["sent"] == ([0, 0, 1, 0] if empty else [0, 1, 0, 0])


def test_a_reused_counter_is_not_removed(world: World, alice: Client, queue: TestQueue) -> None:
    queue.send("a")
    queue.delete(*queue.receive())
    world.settle()
    world.clock.pass_seconds(HOUR + 60)
    (read_before,) = read_all_counters(world.core)
    assert read_before.empty
    queue.send("b")
    world.settle()

    remove_empty(world.core, read_before)

    assert days(world) == []
    assert hourly(alice, 2) == {
        "sent": [1, 1], "received": [1, 0], "deleted": [1, 0], "kept": [0, 1]
    }  # fmt: skip


def test_intervals_of_two_days_go_to_two_days(
    world: World, alice: Client, queue: TestQueue
) -> None:
    into = world.clock.now_ms() // 1_000 % 86_400
    world.clock.pass_seconds(86_400 - into - 300)
    queue.send("a")
    world.settle()
    world.clock.pass_seconds(600)
    queue.send("b")
    world.settle()

    sweep_for(world, 3 * HOUR)

    assert len(days(world)) == 2
    assert hourly(alice, 5) == {"sent": [1, 1, 0, 0, 0], "kept": [1, 2, 2, 2, 2]}


def test_a_topic_and_a_rewound_group_have_a_week(
    world: World, alice: Client, make_queue: MakeQueue
) -> None:
    topic = TestTopic(alice)
    topic.subscribe("all", protocol="pull")
    world.settle()
    topic.publish(*"ab")
    world.settle()
    sweep_for(world, 3 * HOUR)
    assert hourly(alice, 4, "topics=news") == {"published": [2, 0, 0, 0]}
    reply = alice.get("/rates", "subscriptions=news/all&hours=4")
    assert reply.json["rates"][0]["delivered"] == [2, 0, 0, 0]
    assert reply.json["rates"][0]["kept"] == [2, 2, 2, 2]


def test_a_day_costs_four_write_units_and_a_week_of_it_half_a_unit_a_day(
    world: World, alice: Client, queue: TestQueue
) -> None:
    queue.send("a")
    queue.delete(*queue.receive())
    queue.send("b")
    world.settle()
    world.clock.pass_seconds(2 * HOUR)
    (counter,) = read_all_counters(world.core)

    assert world.write_units(lambda: move_past(world.core, counter)) == 4
    alice.get("/rates", "queues=orders")
    hour = world.units(lambda: alice.get("/rates", "queues=orders"))[1]
    week = world.units(lambda: alice.get("/rates", "queues=orders&hours=168"))[1]
    assert week - hour == 0.5 * 8
