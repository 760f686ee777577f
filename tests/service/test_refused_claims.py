"""A store that refuses a part of a receive: claimed messages are answered, or given back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from tests.service.conftest import MakeQueue, TestQueue, usage
from tests.service.crashes import before_each_call

from cirrusmq_local.engine import EngineError
from cirrusmq_local.testing import World

Refuse = Callable[..., None]
LARGE = "".join(map(str, range(1_000)))


@pytest.fixture
def refuse(world: World, monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """Throttle calls of an operation: the first `times` of those behind the first `after`.

    Without an operation: no more.
    """
    plans: dict[str, range] = {}
    seen: Counter[str] = Counter()

    def fail(operation: str, request: object) -> None:
        if operation in plans and world.tables.messages in str(request):
            seen[operation] += 1
            if seen[operation] - 1 in plans[operation]:
                raise EngineError("ThrottlingException", "too much")

    def plan(operation: str = "", *, times: int = 10**9, after: int = 0) -> None:
        if operation:
            plans[operation] = range(after, after + times)
        else:
            plans.clear()

    before_each_call(world, monkeypatch, fail)
    return plan


@pytest.fixture
def strict(make_queue: MakeQueue) -> TestQueue:
    """A queue in which a message that was received once and not deleted is dead."""
    make_queue("dead")
    return make_queue(partitions=1, dead_letter={"queue": "dead", "max_receives": 1})


def later(world: World, queue: TestQueue) -> tuple[list[str], list[str]]:
    """The bodies in the queue, and in its dead-letter queue, when all leases are over."""
    world.clock.pass_seconds(31)
    received = queue.receive_all()
    queue.delete(*received)
    return sorted(m["body"] for m in received), TestQueue(queue.client, "dead").bodies()


@pytest.mark.parametrize("refused", [0, 4, 15])
def test_one_throttled_claim_of_16_leaves_the_other_15_to_be_answered(
    strict: TestQueue, refuse: Refuse, refused: int
) -> None:
    sent = {strict.send(body)[0]["id"] for body in "abcdefghijklmnop"}
    refuse("UpdateItem", times=1, after=refused)

    received = strict.receive()

    assert len(received) == 15
    strict.delete(*received)
    left = sent - {message["id"] for message in received}
    (last,) = strict.receive()
    assert ({last["id"]}, last["receive_count"]) == (left, 1)


def test_a_refusing_partition_does_not_hide_the_others(
    make_queue: MakeQueue, refuse: Refuse
) -> None:
    queue = make_queue(partitions=8)
    for body in "abcdefghijklmnop":
        queue.send(body)
    refuse("UpdateItem", times=1)

    assert queue.receive(1) != []


@pytest.mark.parametrize("ordered", [False, True])
def test_a_receive_fails_if_nothing_was_claimed_and_the_store_refused(
    world: World, make_queue: MakeQueue, refuse: Refuse, ordered: bool
) -> None:
    make_queue("dead", ordered=ordered)
    dead_letter = {"queue": "dead", "max_receives": 1}
    queue = make_queue(dead_letter=dead_letter, ordered=ordered)
    for body in "abc":
        queue.send(body, group=body)
    refuse("UpdateItem")

    reply = queue.client.post(f"{queue.path}/messages/receive", {"max": 16, "wait_seconds": 0})

    assert (reply.status, reply.code) == (503, "Unavailable")
    refuse()
    assert later(world, queue) == (["a", "b", "c"], [])


def test_messages_with_unreadable_bodies_are_given_back_as_if_never_received(
    world: World, strict: TestQueue, refuse: Refuse
) -> None:
    strict.send(LARGE, LARGE)
    before = world.items()
    refuse("BatchGetItem")

    reply = strict.client.post(f"{strict.path}/messages/receive", {"max": 16, "wait_seconds": 0})

    assert (reply.status, reply.code) == (503, "Unavailable")
    assert world.items() == before
    refuse()
    world.settle()
    assert usage(world) == {"queue:orders sent": 2}
    assert later(world, strict) == ([LARGE, LARGE], [])


def test_messages_with_bodies_at_hand_are_answered_though_others_cannot_be_read(
    strict: TestQueue, refuse: Refuse
) -> None:
    strict.send("small")
    strict.send(LARGE)
    refuse("BatchGetItem")

    received = strict.receive()

    assert [message["body"] for message in received] == ["small"]
    refuse()
    (given_back,) = strict.receive()
    assert (given_back["body"], given_back["receive_count"]) == (LARGE, 1)


def test_a_message_with_a_failed_give_back_stays_held(strict: TestQueue, refuse: Refuse) -> None:
    strict.send(LARGE)
    refuse("BatchGetItem")
    refuse("UpdateItem", after=1)

    reply = strict.client.post(f"{strict.path}/messages/receive", {"max": 16, "wait_seconds": 0})

    assert reply.status == 503
    assert strict.counts() == {"inactive": 1}


def test_a_message_with_a_lost_body_keeps_nobody_busy_and_does_not_die_of_it(
    world: World, strict: TestQueue
) -> None:
    strict.send(LARGE)
    (log,) = (item for item in world.items() if item["pk"]["S"].startswith("L#"))
    key = {name: log[name] for name in ("pk", "sk")}
    world.core.store.write("DeleteItem", {"TableName": world.tables.messages, "Key": key})

    assert strict.receive() == []

    assert world.write_units(strict.receive) == 0
    world.clock.pass_seconds(30)
    assert strict.counts() == {"active": 1}


class TestOrderedQueues:
    @pytest.fixture
    def queue(self, make_queue: MakeQueue) -> TestQueue:
        make_queue("dead", ordered=True)
        return make_queue(
            partitions=1, ordered=True, dead_letter={"queue": "dead", "max_receives": 1}
        )

    @pytest.mark.parametrize("refused", [0, 1, 2])
    def test_a_throttled_claim_ends_the_taking_of_its_group(
        self, queue: TestQueue, refuse: Refuse, refused: int
    ) -> None:
        for number in "123":
            queue.send(number, group="g")
        queue.send("other", group="h")
        refuse("UpdateItem", times=1, after=refused)

        received = [message["body"] for message in queue.receive()]

        of_group = [body for body in received if body != "other"]
        assert of_group == ["1", "2", "3"][: len(of_group)]
        assert len(received) < 4

    def test_nothing_is_answered_behind_an_unreadable_message(
        self, queue: TestQueue, refuse: Refuse
    ) -> None:
        queue.send("1", group="g")
        queue.send(LARGE, group="g")
        queue.send("3", group="g")
        queue.send("other", group="h")
        refuse("BatchGetItem")

        received = queue.receive()

        assert sorted(message["body"] for message in received) == ["1", "other"]
        refuse()
        queue.delete(*received)
        again = queue.receive()
        assert [message["body"] for message in again] == [LARGE, "3"]
        assert [message["receive_count"] for message in again] == [1, 1]
