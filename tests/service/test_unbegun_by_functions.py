"""Functions: what a call did not begin keeps its receive count, and a poison message dies alone."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.topics import Schedules, TestTopic

from cirrusmq.base import limits
from cirrusmq.invoking import function_batch
from cirrusmq.receiving import receive as receiving
from cirrusmq.runtime.core import Called
from cirrusmq_client import Received, Retry, batch_response
from cirrusmq_local.testing import World

INVOKE = {"function": "handler", "max_concurrency": 1}
DEAD = {"queue": "dead", "max_receives": 3}
DEAD_AT_ONCE = {"queue": "dead", "max_receives": 1}
KINDS = ["plain", "ordered", "fair", "subscription", "ordered subscription"]


class Place:
    """A source with a function, its messages in one group or in none."""

    def __init__(
        self, kind: str, topic: TestTopic, make_queue: MakeQueue, **attributes: Any
    ) -> None:
        self.dead = make_queue("dead")
        self.group = {} if kind in ("plain", "subscription") else {"group": "g"}
        self.topic = topic if "subscription" in kind else None
        invoke = INVOKE | attributes
        if self.topic is not None:
            retry = {"policy": "custom", "waits": [1, 1]}
            self.source: TestQueue = topic.subscribe(
                *("all",), ordered="ordered" in kind, retry=retry, dead_letter_queue="dead"
            )
        else:
            kinds = {} if kind == "plain" else {kind: True}
            self.source = make_queue(dead_letter=DEAD, visibility_timeout_seconds=1, **kinds)
        self.kind, self._invoke = kind, invoke

    def send(self, *bodies: str) -> None:
        """Send messages, then name the function: the first call gets all of them."""
        if self.topic is not None:
            for body in bodies:
                self.topic.publish(body, **self.group)
        else:
            self.source.send(*bodies, **self.group)
        assert self.source.patch(invoke=self._invoke).status == 200

    def dead_letters(self) -> list[str]:
        return self.dead.bodies()


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, topic: TestTopic, make_queue: MakeQueue) -> Place:
    return Place(request.param, topic, make_queue)


def run(world: World, seconds: int = 120) -> None:
    Schedules(world, sweeps=True).pass_seconds(seconds)


def test_a_poison_message_of_a_group_takes_no_other_one_along(world: World, place: Place) -> None:
    seen: list[tuple[str, int]] = []

    def handle(message: Received) -> Retry | None:
        seen.append((message.text, message.receive_count))
        return Retry() if message.text == "poison" else None

    respond = batch_response(handle)
    world.handle = lambda event: respond(event, None)
    place.send("poison", "1", "2", "3", "4")

    run(world)

    assert place.dead_letters() == ["poison"]
    assert sorted(seen) == sorted(
        [*(("poison", count) for count in (1, 2, 3)), *((body, 1) for body in "1234")]
    )
    assert place.source.show()["counts"]["active"] == 0


def test_a_poison_message_takes_no_other_one_along(world: World, place: Place) -> None:
    """All of the first call are received once more; from then on each is handed over alone."""
    calls: list[list[str]] = []

    def handle(event: dict[str, Any]) -> None:
        calls.append([record["body"] for record in event["Records"]])
        if "poison" in calls[-1]:
            raise MemoryError

    world.handle = handle
    place.send("1", "2", "poison", "3", "4")

    run(world)

    assert place.dead_letters() == ["poison"]
    handled = Counter(body for call in calls if "poison" not in call for body in call)
    assert handled == dict.fromkeys("1234", 1)
    assert all(call == ["poison"] for call in calls[1:] if "poison" in call)


def test_calls_and_claims_of_a_failed_batch_are_as_many_as_its_messages(
    monkeypatch: pytest.MonkeyPatch, world: World, make_queue: MakeQueue
) -> None:
    """Each call takes so long that nothing can be handed over behind it."""
    queue = make_queue(partitions=1, visibility_timeout_seconds=1)
    calls: list[list[str]] = []

    def handle(event: dict[str, Any]) -> None:
        calls.append([record["body"] for record in event["Records"]])
        if len(calls) == 1:
            raise MemoryError
        world.clock.pass_seconds(20)

    world.handle = handle
    queue.send(*map(str, range(10)))
    claimed: list[int] = []

    def receive(*given: Any) -> Any:
        found = receive_all(*given)
        claimed.append(len(found))
        return found

    receive_all = receiving.receive
    monkeypatch.setattr(function_batch, "receive", receive)
    queue.patch(invoke=INVOKE)

    run(world, 600)

    assert [len(call) for call in calls] == [10, *[1] * 10]
    assert sorted(call[0] for call in calls[1:]) == sorted(map(str, range(10)))
    assert [count for count in claimed if count] == [10, 10, *[1] * 9]


ANSWERS: dict[str, tuple[Any, dict[str, int]]] = {
    "not begun": ({"tried": False}, {"b": 1}),
    "tried": ({"tried": True}, {"b": 2}),
    "no word": ({}, {"b": 2}),
}


@pytest.mark.few(11)
@pytest.mark.parametrize("by", ["messageId", "receiptHandle"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_names_the_unbegun_messages(
    world: World, place: Place, answer: str, by: str
) -> None:
    said, expected = ANSWERS[answer]
    counts: dict[str, int] = {}

    def handle(event: dict[str, Any]) -> Any:
        left = []
        for record in event["Records"]:
            first = record["body"] not in counts
            counts[record["body"]] = int(record["attributes"]["ApproximateReceiveCount"])
            if first and record["body"] == "b":
                left.append({"itemIdentifier": record[by], **said})
        return {"batchItemFailures": left}

    world.handle = handle
    place.send("a", "b")

    run(world, 60)

    assert counts == {"a": 1, **expected}
    assert place.dead_letters() == []


@pytest.mark.parametrize("tried", [None, 0, 1, "false", []])
def test_a_word_for_a_boolean_fails_the_batch(
    world: World, make_queue: MakeQueue, tried: object
) -> None:
    queue = make_queue(invoke=INVOKE, visibility_timeout_seconds=3_600)
    world.handle = lambda event: {
        "batchItemFailures": [{"itemIdentifier": event["Records"][0]["messageId"], "tried": tried}]
    }
    queue.send("a", "b")
    world.settle()
    assert queue.counts() == {"inactive": 2}


def test_a_message_named_both_ways_has_failed(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(invoke=INVOKE, visibility_timeout_seconds=1)
    counts: list[str] = []

    def handle(event: dict[str, Any]) -> Any:
        (record,) = event["Records"]
        counts.append(record["attributes"]["ApproximateReceiveCount"])
        if len(counts) > 1:
            return None
        named = {"itemIdentifier": record["messageId"]}
        return {"batchItemFailures": [named | {"tried": False}, named, named | {"tried": False}]}

    world.handle = handle
    queue.send("a")
    run(world, 30)
    assert counts == ["1", "2"]


def test_calls_without_a_begin_come_in_steps_and_have_an_end(
    monkeypatch: pytest.MonkeyPatch, world: World, make_queue: MakeQueue, dead: TestQueue
) -> None:
    monkeypatch.setattr(limits, "UNTRIED_RECEIVES", 4)
    queue = make_queue(invoke=INVOKE, visibility_timeout_seconds=10, dead_letter=DEAD_AT_ONCE)
    times: list[int] = []

    def handle(event: dict[str, Any]) -> Any:
        times.append(world.clock.now_ms())
        (record,) = event["Records"]
        return {"batchItemFailures": [{"itemIdentifier": record["messageId"], "tried": False}]}

    world.handle = handle
    queue.send("a")
    run(world, 300)

    assert len(times) == 5
    assert all(after - before >= 10_000 for before, after in pairwise(times))
    assert dead.bodies() == ["a"]


def test_a_call_refused_by_lambda_does_not_count(world: World, make_queue: MakeQueue) -> None:
    """A throttled function has begun nothing, however often."""
    dead = make_queue("dead")
    queue = make_queue(invoke=INVOKE, visibility_timeout_seconds=2, dead_letter=DEAD_AT_ONCE)
    seen: list[str] = []
    call, refusals = world.core.call, iter(range(6))

    def throttled(arn: str, event: bytes, seconds: float) -> Called:
        if next(refusals, None) is not None:
            return Called(error="TooManyRequestsException", refused=True)
        return call(arn, event, seconds)

    world.core = replace(world.core, call=throttled)
    world.handle = lambda event: seen.extend(record["body"] for record in event["Records"])
    queue.send("a", "b")

    run(world, 120)

    assert next(refusals, None) is None
    assert sorted(seen) == ["a", "b"]
    assert dead.bodies() == []
