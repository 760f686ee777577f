"""A receive fills its batch across the partitions of a plain queue, and its repeat finds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, Message, TestQueue, bodies
from tests.service.faults import Throttled
from tests.service.test_costs import parcels
from tests.service.test_repeated_receives import REPEAT_UNITS, attempt, units
from tests.service.topics import TestTopic

from cirrusmq.receiving.receive import EMPTY_LOOKS, FILLING_MS
from cirrusmq_local.testing import Client, World

MAX = 16
LARGE = "x" * 2_000_000


class Looks:
    """The looks at partitions from now on: the key of each, and how many parcels it read."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, int]] = []
        self._execute = world.engine.execute
        self.before: Callable[[], object] = list
        """Called before each."""
        monkeypatch.setattr(world.engine, "execute", self._execute_noting)

    def _execute_noting(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        pk = request.get("ExpressionAttributeValues", {}).get(":pk", {}).get("S", "")
        looks = operation == "Query" and pk.startswith("Q#")
        if looks:
            self.before()
        answer: dict[str, Any] = self._execute(operation, request)
        if looks:
            self.seen.append((pk, len(answer["Items"])))
        return answer


@pytest.fixture
def looks(world: World, monkeypatch: pytest.MonkeyPatch) -> Looks:
    return Looks(world, monkeypatch)


def send_singles(world: World, queue: TestQueue, count: int) -> list[str]:
    sent = [f"m{number}" for number in range(count)]
    for body in sent:
        queue.send(body)
    world.clock.pass_seconds(5)
    return sent


@pytest.mark.parametrize("wait_seconds", [0, 1, 20])
@pytest.mark.parametrize("count", [3, 10, 16])
def test_one_receive_gets_the_messages_of_four_partitions(
    world: World, make_queue: MakeQueue, count: int, wait_seconds: int
) -> None:
    for number in range(6):
        queue = make_queue(f"orders-{number}")
        sent = send_singles(world, queue, count)

        assert sorted(bodies(queue.receive(MAX, wait_seconds=wait_seconds))) == sorted(sent)


def test_it_takes_no_more_than_was_asked_for(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(partitions=16)
    send_singles(world, queue, 60)

    assert [len(queue.receive(10)) for _ in range(3)] == [10] * 3
    assert queue.counts() == {"active": 30, "inactive": 30}


def test_receivers_and_subscriptions_are_filled_as_well(
    world: World, alice: Client, queue: TestQueue
) -> None:
    queue.add_receiver("audit")
    sent = send_singles(world, queue, 12)
    topic = TestTopic(alice, partitions=4)
    subscription = topic.subscribe()
    for body in sent:
        topic.publish(body)
    world.settle()
    world.clock.pass_seconds(5)

    assert sorted(bodies(queue.receive(MAX, receiver="audit"))) == sorted(sent)
    assert sorted(bodies(subscription.receive(MAX))) == sorted(sent)


@pytest.mark.parametrize("count", [1, 2])
def test_it_ends_after_four_empty_partitions_in_a_row(
    world: World, make_queue: MakeQueue, looks: Looks, count: int
) -> None:
    queue = make_queue(partitions=64)
    send_singles(world, queue, count)
    looks.seen.clear()

    received = queue.receive(MAX)

    read = [parcels for _, parcels in looks.seen]
    last = max(number for number, parcels in enumerate(read) if parcels)
    assert len(received) == sum(read) > 0
    assert len(read) == min(64, last + 1 + EMPTY_LOOKS)


def test_it_looks_everywhere_until_it_has_something(
    world: World, make_queue: MakeQueue, looks: Looks
) -> None:
    queue = make_queue(partitions=64)
    for _ in range(8):
        sent = send_singles(world, queue, 1)
        looks.seen.clear()

        (message,) = queue.receive(MAX)

        assert [message["body"]] == sent
        queue.delete(message)


def test_a_full_answer_needs_no_further_look(world: World, queue: TestQueue, looks: Looks) -> None:
    for _ in range(16):
        queue.send(*"abcdefghijklmnop")
    world.clock.pass_seconds(5)
    looks.seen.clear()

    assert len(queue.receive(MAX)) == MAX
    assert len(looks.seen) == 1


@pytest.mark.parametrize("gzips", [False, True])
def test_large_messages_of_several_partitions_fit_the_answer(
    world: World, make_queue: MakeQueue, *, gzips: bool
) -> None:
    queue = make_queue(partitions=8, max_message_bytes=len(LARGE))
    queue.client.gzips = gzips
    for _ in range(8):
        queue.send(LARGE)
    world.clock.pass_seconds(5)
    assert len({item["pk"]["S"] for item in parcels(world)}) > 2

    counts = [len(queue.receive(MAX)) for _ in range(8)]

    assert sum(counts) == 8
    assert max(counts) == 2


def test_a_refusal_behind_claims_is_the_end_and_no_error(
    world: World, queue: TestQueue, looks: Looks
) -> None:
    sent = send_singles(world, queue, 16)
    first = len(queue.receive(MAX, visibility_timeout_seconds=1))
    assert first == 16
    world.clock.pass_seconds(5)
    looks.seen.clear()

    throttled = Throttled(world, lambda operation, _: operation == "Query" and bool(looks.seen))
    received = queue.receive(MAX)
    throttled.end()

    assert 0 < len(received) < 16
    assert sorted(bodies(received + queue.receive_all())) == sorted(sent)


def test_a_slow_store_does_not_use_the_leases_up(
    world: World, make_queue: MakeQueue, looks: Looks
) -> None:
    queue = make_queue(partitions=16)
    send_singles(world, queue, 64)
    looks.before = lambda: world.clock.pass_seconds(0.4)
    begun_ms = world.clock.now_ms()

    received = queue.receive(MAX)

    assert received
    assert world.clock.now_ms() - begun_ms <= FILLING_MS + 800


class TestWaits:
    @pytest.mark.parametrize("partitions", [4, 16])
    def test_a_look_of_a_wait_answers_its_messages(
        self, world: World, make_queue: MakeQueue, looks: Looks, partitions: int
    ) -> None:
        queue = make_queue(partitions=partitions)
        sent: list[str] = []

        def send_two(*_: object) -> None:
            if looks.seen and not sent and world.clock.now_ms() > begun_ms:
                sent.extend(["a", "b"])
                for body in ("a", "b"):
                    queue.send(body)

        begun_ms = world.clock.now_ms()
        looks.before = send_two

        received = queue.receive(MAX, wait_seconds=5)

        found = [number for number, (_, parcels) in enumerate(looks.seen) if parcels]
        assert sorted(bodies(received)) in (["a"], ["b"], ["a", "b"])
        assert found[0] == len(looks.seen) - 1  # nothing was looked at behind it


class TestRepeats:
    @pytest.mark.parametrize("partitions", [1, 4, 16])
    def test_a_repeat_has_the_messages_of_all_partitions_up_to_its_limit(
        self, world: World, make_queue: MakeQueue, partitions: int
    ) -> None:
        queue = make_queue(partitions=partitions)
        send_singles(world, queue, 40)
        token = attempt(world)
        first = queue.receive(MAX, attempt=token)
        queue.receive(MAX)
        before = units(world)

        again = queue.receive(MAX, attempt=token, repeat=True)

        assert {each["receipt"] for each in again} == {each["receipt"] for each in first}
        assert units(world) - before <= REPEAT_UNITS
        fewer = queue.receive(5, attempt=token, repeat=True)
        assert len(fewer) == 5
        assert {each["id"] for each in fewer} < {each["id"] for each in first}

    def test_gaps_of_deleted_messages_do_not_end_it(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(partitions=16)
        send_singles(world, queue, 60)
        token = attempt(world)
        first = queue.receive(MAX, attempt=token)
        partitions = list(dict.fromkeys(partition_of(world, each) for each in first))
        assert len(partitions) > 3
        kept = [each for each in first if partition_of(world, each) == partitions[-1]]
        queue.delete(*(each for each in first if each not in kept))

        again = queue.receive(MAX, attempt=token, repeat=True)

        assert {each["receipt"] for each in again} == {each["receipt"] for each in kept}


def partition_of(world: World, message: Message) -> str:
    """The key of the partition that has the parcel of a message sent alone."""
    send_id = message["id"][len("Msg-") : -1]
    (pk,) = (item["pk"]["S"] for item in parcels(world) if send_id in item["sk"]["S"])
    return str(pk)
