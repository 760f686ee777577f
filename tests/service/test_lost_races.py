"""Receives that lose the race for the messages they read: they go on while more wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, Message, TestQueue
from tests.service.faults import Throttled
from tests.service.test_heads_in_the_cloud import Environments

from cirrusmq_local.testing import Reply, World

FAIR_OR_NOT: dict[str, dict[str, Any]] = {
    "plain": {},
    "fair": {"fair": True},
    "limited": {"fair": True, "max_in_flight": 256},
}
KINDS = FAIR_OR_NOT | {"ordered": {"ordered": True}}
CONSUMERS = 16


class Races:
    """Receives of several environments, each of which reads before any of them claims."""

    def __init__(self, world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch) -> None:
        self._world, self._environments = world, Environments(world, queue, CONSUMERS)
        self._execute = world.engine.execute
        self._others: Iterator[Callable[[], object]] = iter(())
        monkeypatch.setattr(world.engine, "execute", self._first_the_others)

    def receive_at_once(self, *limit: int) -> list[list[Message]]:
        """Receives of so many messages; the first one claims last of all, the last one first."""
        received: dict[int, list[Message]] = {}

        def receive(number: int) -> None:
            received[number] = self._environments.receive(number, limit[number])

        self._others = iter([partial(receive, number) for number in range(1, len(limit))])
        receive(0)
        for left in self._others:
            left()
        return [received[number] for number in range(len(limit))]

    def receive_behind(self, limit: int, *, faster: int) -> Reply:
        """A receive that reads what another one of so many messages claims before it."""
        self._others = iter([partial(self._environments.receive, 1, faster)])
        self._environments.use(0)
        queue = self._environments.queue
        request = {"max": limit, "wait_seconds": 0}
        return queue.client.post(f"{queue.path}/messages/receive", request)

    def _first_the_others(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        key = request.get("Key", {}).get("pk", {}).get("S", "")
        if operation == "UpdateItem" and key.startswith("Q#"):
            core = self._world.core
            if (other := next(self._others, None)) is not None:
                other()
            self._world.core = core
        answer: dict[str, Any] = self._execute(operation, request)
        return answer


@pytest.fixture
def race(
    world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Races]:
    def made(kind: str, waiting: int, groups: int = 1, **attributes: Any) -> Races:
        queue = make_queue(kind, partitions=1, **KINDS[kind] | attributes)
        for number in range(waiting):
            queue.send(f"m{number}", **({"group": f"g{number % groups}"} if KINDS[kind] else {}))
        world.clock.pass_seconds(5)
        return Races(world, queue, monkeypatch)

    return made


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", FAIR_OR_NOT)
@pytest.mark.parametrize("limit", [1, 2, 8])
def test_a_receive_with_one_lost_race_is_full(
    race: Callable[..., Races], kind: str, limit: int
) -> None:
    slower, faster = race(kind, 200).receive_at_once(limit, 1)

    assert (len(slower), len(faster)) == (limit, 1)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", FAIR_OR_NOT)
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("limit", [1, 4, 16])
def test_sixteen_receives_at_once_all_get_something(
    race: Callable[..., Races], kind: str, groups: int, limit: int
) -> None:
    races = race(kind, 600, groups)

    answers = races.receive_at_once(*[limit] * CONSUMERS)

    assert all(answers), [len(answer) for answer in answers]
    bodies = [message["body"] for answer in answers for message in answer]
    assert len(bodies) == len(set(bodies))


@pytest.mark.parametrize("kind", FAIR_OR_NOT)
def test_the_slower_receive_takes_the_rest_of_a_parcel(
    world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    queue = make_queue(kind, partitions=1, **KINDS[kind])
    queue.send(*"abcdefghijklmnop", **({"group": "g"} if KINDS[kind] else {}))
    world.clock.pass_seconds(5)

    slower, faster = Races(world, queue, monkeypatch).receive_at_once(4, 4)

    assert sorted(message["body"] for message in faster + slower) == list("abcdefgh")


def test_a_lost_race_lets_no_more_of_a_group_in_flight(race: Callable[..., Races]) -> None:
    slower, faster = race("limited", 20, max_in_flight=3).receive_at_once(16, 2)

    assert (len(slower), len(faster)) == (1, 2)


@pytest.mark.parametrize("limit", [1, 4])
def test_receives_of_an_ordered_queue_go_on_to_other_groups(
    race: Callable[..., Races], limit: int
) -> None:
    answers = race("ordered", 80, groups=80).receive_at_once(*[limit] * CONSUMERS)

    assert [len(answer) for answer in answers] == [limit] * CONSUMERS


def test_a_refusing_store_is_not_asked_page_after_page(
    world: World, race: Callable[..., Races]
) -> None:
    races = race("fair", 200)
    claims: list[str] = []

    def behind_the_race(operation: str, request: Mapping[str, Any]) -> bool:
        key = request.get("Key", {})
        if operation == "UpdateItem" and key["pk"]["S"].startswith("Q#"):
            claims.append(key["sk"]["S"])
        return operation == "UpdateItem" and len(claims) > 9

    throttled = Throttled(world, behind_the_race)
    reply = races.receive_behind(1, faster=8)

    assert (reply.status, len(claims) - throttled.refused) == (503, 9)
    assert throttled.refused < 20
