"""Ordered queues: messages of a group are received in the order of their sending."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, bodies

from cirrusmq_local.testing import World


@pytest.fixture
def ordered(make_queue: MakeQueue) -> TestQueue:
    return make_queue("orders", ordered=True)


def test_a_group_is_received_in_the_order_of_sending(ordered: TestQueue) -> None:
    for first in range(0, 40, 4):
        ordered.send(*(f"{number:02}" for number in range(first, first + 4)), group="g")

    assert ordered.consume(3) == [f"{number:02}" for number in range(40)]


def test_one_receive_may_hold_several_of_a_group_in_order(ordered: TestQueue) -> None:
    ordered.send("1", "2", group="g")
    ordered.send("3", group="g")
    ordered.send("4", group="g")

    held = ordered.receive()

    assert bodies(held) == ["1", "2", "3", "4"]
    assert {message["group"] for message in held} == {"g"}


def test_while_one_is_held_nobody_gets_a_later_one(world: World, ordered: TestQueue) -> None:
    ordered.send("1", "2", "3", group="g")
    first = ordered.receive(1)
    ordered.send("4", group="g")

    assert ordered.receive() == []
    ordered.delete(*first)
    assert bodies(ordered.receive(2)) == ["2", "3"]
    world.clock.pass_seconds(29)
    assert ordered.receive() == []
    world.clock.pass_seconds(1)
    assert bodies(ordered.receive()) == ["2", "3", "4"]


def test_deleting_a_later_one_frees_nothing(ordered: TestQueue) -> None:
    ordered.send("1", "2", "3", group="g")
    held = ordered.receive(2)

    ordered.delete(held[1])

    assert ordered.receive() == []
    ordered.delete(held[0])
    assert bodies(ordered.receive()) == ["3"]


def test_nobody_gets_past_a_message_held_by_another(ordered: TestQueue) -> None:
    ordered.send("1", "2", group="g")
    ordered.send("3", group="g")
    first, second = ordered.receive(2)
    ordered.give_back(first)

    again = ordered.receive()

    assert bodies(again) == ["1"]
    ordered.delete(*again, second)
    assert bodies(ordered.receive()) == ["3"]


@pytest.mark.parametrize("seconds", [10, 1_000])
def test_while_one_waits_for_a_retry_nobody_gets_a_later_one(
    world: World, ordered: TestQueue, seconds: int
) -> None:
    ordered.send("1", group="g")
    ordered.send("2", group="g")
    ordered.give_back(*ordered.receive(1), delay_seconds=seconds)

    world.clock.pass_seconds(seconds - 0.001)
    assert ordered.receive() == []
    world.clock.pass_seconds(0.001)
    assert bodies(ordered.receive()) == ["1", "2"]


def test_a_retrys_wait_holds_the_group_too(world: World, make_queue: MakeQueue) -> None:
    ordered = make_queue(ordered=True, retry={"policy": "ordered", "interval_seconds": 20})
    ordered.send("1", "2", group="g")
    ordered.receive(1, visibility_timeout_seconds=5)

    world.clock.pass_seconds(24.999)
    assert ordered.receive() == []
    world.clock.pass_seconds(0.001)
    assert bodies(ordered.receive()) == ["1", "2"]


def test_the_queues_delay_holds_the_group_too(world: World, ordered: TestQueue) -> None:
    ordered.patch(delay_seconds=10)
    ordered.send("1", group="g")
    ordered.patch(delay_seconds=0)
    ordered.send("2", group="g")
    ordered.send("x", group="other")

    assert bodies(ordered.receive()) == ["x"]
    assert ordered.counts() == {"active": 1, "inactive": 1, "delayed": 1}
    world.clock.pass_seconds(10)
    assert bodies(ordered.receive()) == ["1", "2"]


def test_groups_do_not_wait_for_each_other(ordered: TestQueue) -> None:
    for number in range(50):
        ordered.send("1", "2", group=f"g{number}")
    ordered.receive(1)

    got: dict[str, list[str]] = {}
    for message in ordered.receive_all():
        got.setdefault(message["group"], []).append(message["body"])

    assert len(got) == 49
    assert set(map(tuple, got.values())) == {("1", "2")}


def test_a_long_backlog_of_a_held_group_does_not_hide_the_others(
    world: World, make_queue: MakeQueue
) -> None:
    ordered = make_queue(ordered=True, partitions=1)
    for _ in range(60):
        ordered.send(*("x" * 16), group="busy")
    ordered.receive(1)
    ordered.send("free", group="other")

    before = world.engine.capacity()["read_units"]
    assert bodies(ordered.receive()) == ["free"]
    assert world.engine.capacity()["read_units"] - before < 15


def test_a_deduplication_id_keeps_order_and_number(ordered: TestQueue) -> None:
    for body in "1213":
        ordered.send(body, group="g", deduplication_id=body)

    assert bodies(ordered.receive()) == ["1", "2", "3"]


def test_large_messages_keep_their_order(ordered: TestQueue) -> None:
    sent = [f"{number}" * 5_000 for number in range(6)]
    ordered.send(*sent[:3], group="g")
    ordered.send(*sent[3:], group="g")

    assert bodies(ordered.receive()) == sent


def test_a_dead_letter_makes_way_for_the_next(world: World, make_queue: MakeQueue) -> None:
    dead = make_queue("dead", ordered=True)
    ordered = make_queue(ordered=True, dead_letter={"queue": "dead", "max_receives": 1})
    ordered.send("1", "2", group="g")
    ordered.send("3", group="g")
    ordered.receive(1)
    world.clock.pass_seconds(30)

    assert bodies(ordered.receive()) == ["2", "3"]
    world.clock.pass_seconds(30)
    assert ordered.receive() == []
    assert bodies(dead.receive()) == ["1", "2", "3"]


def test_several_groups_in_one_send_keep_their_own_order(ordered: TestQueue) -> None:
    messages = [{"body": f"{number:02}", "group": f"g{number % 3}"} for number in range(16)]
    ordered.try_send(messages)
    got: dict[str, list[str]] = {}
    for message in ordered.receive_all():
        got.setdefault(message["group"], []).append(message["body"])

    assert got == {
        f"g{group}": [f"{number:02}" for number in range(group, 16, 3)] for group in range(3)
    }


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 30))]
)
def test_no_group_is_ever_inverted_whatever_happens(
    world: World, make_queue: MakeQueue, seed: int
) -> None:
    """Senders, and three receivers that delete, hold, give back, forget and repeat at random.

    The receiver of a group's message must hold all messages before it, unless they are deleted.
    """
    chance = random.Random(seed)
    retry = chance.choice([None, {"policy": "ordered", "interval_seconds": 2}])
    queue = make_queue(ordered=True, partitions=chance.choice([1, 2, 4]), retry=retry)
    sent: dict[str, int] = {}
    deleted: dict[str, set[int]] = {}
    held: list[tuple[dict[str, Any], int]] = []  # with the time when the lease ends
    for _ in range(150):
        match chance.randrange(6):
            case 0 | 1:
                batch = []
                for _ in range(chance.randrange(1, 6)):
                    group = f"g{chance.randrange(3)}"
                    sent[group] = sent.get(group, -1) + 1
                    size = chance.choice([1, 400])
                    body = f"{sent[group]}|{'x' * size}"
                    batch.append({"body": body, "group": group})
                assert queue.try_send(batch).status == 201
            case 2 | 3:
                seconds = chance.choice([1, 5])
                got = queue.receive(chance.randrange(1, 9), visibility_timeout_seconds=seconds)
                now_ms = world.clock.now_ms()
                mine: dict[str, set[int]] = {}
                for message in got:
                    group, number = message["group"], int(message["body"].partition("|")[0])
                    before = set(range(number)) - deleted.get(group, set())
                    assert before <= mine.get(group, set()), (group, number, before)
                    assert number not in deleted.get(group, set())
                    mine.setdefault(group, set()).add(number)
                    held.append((message, now_ms + 1000 * seconds))
            case 4 if held:
                message, _ = held.pop(chance.randrange(len(held)))
                verb = chance.choice(["delete", "delete", "delete", "give-back"])
                answer = queue.act(verb, message)
                if verb == "delete" and answer["deleted"]:
                    number = int(message["body"].partition("|")[0])
                    deleted.setdefault(message["group"], set()).add(number)
            case _:
                world.clock.pass_seconds(chance.choice([0.5, 1, 3]))
    for _ in range(300):
        received = queue.receive()
        for message in received:
            number = int(message["body"].partition("|")[0])
            deleted.setdefault(message["group"], set()).add(number)
        queue.delete(*received)
        world.clock.pass_seconds(1)
        if queue.counts() == {}:
            break
    assert deleted == {group: set(range(last + 1)) for group, last in sent.items()}
