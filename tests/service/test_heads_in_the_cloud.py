"""Receivers in environments of their own, on one partition with thousands in flight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.service.conftest import MakeQueue, Message, TestQueue
from tests.service.faults import Throttled
from tests.service.test_costs import fill, message_units

from cirrusmq.base import ulid
from cirrusmq_local.testing import World

LEASE_SECONDS = 43_200
LONG = pytest.mark.long


class Environments:
    """Calls of a queue from several environments, each of which knows only what it met itself."""

    def __init__(self, world: World, queue: TestQueue, count: int) -> None:
        self._world, self.queue = world, queue
        self._cores = [replace(world.core, memories={}) for _ in range(count)]

    def use(self, number: int) -> None:
        """Let the following calls use this environment."""
        self._world.core = self._cores[number % len(self._cores)]

    def receive(self, number: int, limit: int = 16, **fields: Any) -> list[Message]:
        self.use(number)
        return self.queue.receive(limit, **fields)

    def look(self, seconds: float, pause_seconds: float = 0.1) -> dict[str, float]:
        """All look in turn, each as often; for each body when it was received, in seconds."""
        received: dict[str, float] = {}
        begun_ms = self._world.clock.now_ms()
        number = 0
        while self._world.clock.now_ms() < begun_ms + seconds * 1000:
            for message in self.receive(number, visibility_timeout_seconds=LEASE_SECONDS):
                passed_ms = self._world.clock.now_ms() - begun_ms
                received.setdefault(str(message["body"]), passed_ms / 1000)
            self._world.clock.pass_seconds(pause_seconds / len(self._cores))
            number += 1
        return received


@pytest.fixture
def queue(make_queue: MakeQueue) -> TestQueue:
    return make_queue(partitions=1)


def put_in_flight(
    world: World, queue: TestQueue, count: int, ends: Callable[[int], float] = lambda n: 43_200
) -> None:
    """Messages of the last ten seconds, in flight; number n's lease ends in `ends(n)` seconds."""
    queue.send("in flight")
    (held,) = queue.receive(visibility_timeout_seconds=LEASE_SECONDS)
    (item,) = (item for item in world.items() if item["pk"]["S"].startswith("Q#"))
    now_ms = world.clock.now_ms()
    first_ms, behind = now_ms - 14_000, item["sk"]["S"][13:]
    fill(
        world,
        [
            {
                **item,
                "sk": {"S": f"{first_ms + n * 10_000 // count:013d}{behind}{n:05d}"},
                "i": {"S": behind[1:]},
                "v": {"L": [{"N": str(now_ms + round(ends(n) * 1000))}]},
            }
            for n in range(count)
        ],
    )
    queue.delete(held)


def busy(world: World, queue: TestQueue, environments: int) -> Environments:
    """Environments that have looked for two seconds at a head with 900 messages in flight."""
    put_in_flight(world, queue, 900)
    receivers = Environments(world, queue, environments)
    receivers.look(2)
    return receivers


@pytest.mark.few(1)
@pytest.mark.parametrize(("environments", "delay_seconds"), [(1, 0), (10, 0), (3, 5)])
def test_a_first_delivery_is_seen_within_half_a_second(
    world: World, queue: TestQueue, environments: int, delay_seconds: int
) -> None:
    receivers = busy(world, queue, environments)
    late: dict[str, float] = {}
    for number in range(3):
        body = f"{number}"
        queue.send(body, delay_seconds=delay_seconds)
        late |= receivers.look(delay_seconds + 0.77)

    assert len(late) == 3
    assert max(late.values()) <= delay_seconds + 0.5


@pytest.mark.long
def test_a_first_delivery_is_seen_though_thousands_were_just_received(
    world: World, queue: TestQueue
) -> None:
    for number in range(300):
        queue.send(f"{number}")
    receivers = Environments(world, queue, 5)
    assert len(receivers.look(1)) == 300
    late: dict[str, float] = {}
    for number in range(6):
        queue.send(f"late {number}")
        late |= receivers.look(0.55, pause_seconds=0.05)

    assert max(late.values()) <= 0.5
    assert len(late) == 6


@pytest.mark.long
def test_a_late_send_is_seen_within_half_a_second_of_being_stored(
    world: World, queue: TestQueue
) -> None:
    receivers = busy(world, queue, 3)
    for age_seconds in (1, 2, 30, 119):
        attempt = ulid.encode(world.clock.now_ms() - age_seconds * 1000, bytes(10))
        messages = [{"body": f"{age_seconds}"}]
        assert queue.try_send(messages, attempt=attempt).status == 201
        seen = receivers.look(0.7)
        assert queue.try_send(messages, attempt=attempt).status == 201

        assert seen[f"{age_seconds}"] <= 0.5
        assert receivers.look(2) == {}


@pytest.mark.few(1)
@pytest.mark.parametrize("environments", [1, 10])
def test_expired_leases_are_all_seen_within_30_seconds(
    world: World, queue: TestQueue, environments: int
) -> None:
    """40 at once, in several places of the head."""
    put_in_flight(world, queue, 900, lambda n: 5 if n % 23 == 0 else 43_200)
    receivers = Environments(world, queue, environments)
    receivers.look(5)

    received = 0
    begun_ms = world.clock.now_ms()
    number = 0
    while received < 40 and world.clock.now_ms() < begun_ms + 30_000:
        received += len(receivers.receive(number, 16, visibility_timeout_seconds=600))
        world.clock.pass_seconds(0.1 / environments)
        number += 1

    assert received == 40


@pytest.mark.long
def test_once_the_first_is_seen_the_others_follow_without_an_empty_answer(
    world: World, queue: TestQueue
) -> None:
    put_in_flight(world, queue, 600, lambda n: 5 if n < 40 else 43_200)
    receivers = Environments(world, queue, 4)
    receivers.look(4.9)
    answers = []
    for number in range(300):
        answers.append(len(receivers.receive(number, 1, visibility_timeout_seconds=600)))
        world.clock.pass_seconds(0.1)

    first = answers.index(1)
    assert answers[first : first + 40] == [1] * 40
    assert sum(answers) == 40


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("how", "held_seconds"),
    [
        *(("give-back", 5), ("visibility", 0.2)),
        *(pytest.param(*each, marks=LONG) for each in (("give-back", 0.2), ("visibility", 5))),
    ],
)
def test_a_give_back_is_seen_by_another_environment_within_half_a_second(
    world: World, queue: TestQueue, how: str, held_seconds: float
) -> None:
    receivers = busy(world, queue, 3)
    for number in range(4):
        queue.send(f"{number}")
        held: list[Message] = []
        while not held:
            held = receivers.receive(number)
            world.clock.pass_seconds(0.1)
        world.clock.pass_seconds(held_seconds)
        receivers.use(number + 1)
        if how == "give-back":
            queue.give_back(*held)
        else:
            queue.hold(held[0], 0)

        assert receivers.look(0.7)[f"{number}"] <= 0.5


@pytest.mark.long
def test_older_messages_cost_20_units_a_second_in_all(world: World, queue: TestQueue) -> None:
    environments = 10
    put_in_flight(world, queue, 2_000, lambda n: n / 25)  # 25 end in each second
    receivers = Environments(world, queue, environments)
    receivers.look(1, 1)
    looks = 0
    before = message_units(world)
    for number in range(20 * environments):
        receivers.receive(number, visibility_timeout_seconds=LEASE_SECONDS)
        world.clock.pass_seconds(1 / environments)
        looks += 1

    units = message_units(world) - before
    own = 3.0 * looks  # the look itself, asking for the mark, the claims in it
    assert units - own <= 20 * 20 * 1.25


def test_a_small_queue_has_no_mark(world: World, queue: TestQueue) -> None:
    queue.send(*"abcdefghijklmnop")
    queue.receive()
    before = world.items()

    assert world.write_units(lambda: [queue.receive() for _ in range(20)]) == 0

    assert world.items() == before


def test_a_mark_goes_when_nothing_is_in_the_way_any_more(world: World, queue: TestQueue) -> None:
    put_in_flight(world, queue, 200, lambda n: 3)
    assert queue.receive() == []
    assert marks(world) == 1
    world.clock.pass_seconds(4)
    queue.delete(*queue.receive_all())

    for _ in range(40):
        world.clock.pass_seconds(1)
        assert queue.receive() == []

    assert marks(world) == 0


def test_refused_marks_fail_no_receive(world: World, queue: TestQueue) -> None:
    put_in_flight(world, queue, 500)
    Throttled(world, lambda _, request: "H#" in str(request))
    queue.send("x")

    assert queue.bodies() == ["x"]
    assert queue.receive() == []


def marks(world: World) -> int:
    return sum(item["pk"]["S"].startswith("H#") for item in world.items())
