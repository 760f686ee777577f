"""What a function gets of a message is what a consumer gets of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.client.stores import Store
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.topics import Schedules, TestTopic

from cirrusmq.invoking import function_batch, function_records
from cirrusmq.model.sender import Onlooker
from cirrusmq.model.source import Source
from cirrusmq.receiving.receive_request import Received as Claimed
from cirrusmq_client import Queue, Received, Retry, Subscription, batch_response, exactly_once
from cirrusmq_client.messages import DEDUPLICATION_ATTRIBUTE
from cirrusmq_lambda.answers.received import ReceivedMessage
from cirrusmq_local.testing import World

INVOKE = {"function": "handler"}
LARGE = 1_048_576
NOTED = {DEDUPLICATION_ATTRIBUTE: "order-17"}
CONTENTS: dict[str, dict[str, Any]] = {
    "text": {"body": "text"},
    "quotes and controls": {"body": '"\\\x00\r\n\u2028😀'},
    "bytes": {"body_base64": "AAEC/w=="},
    "bytes of a text": {"body_base64": "dGV4dA=="},
    "attributes": {
        "body": "x",
        "attributes": {"k": "größe, 100%", "empty": "", "raw": {"base64": "AP8="}, **NOTED},
    },
    "empty bytes": {"body": "x", "attributes": {"raw": {"base64": ""}}},
    "tags": {"body": "x", "tags": ["new", "a, b", ",", "größe"]},
    "all": {"body_base64": "/w==", "attributes": NOTED, "tags": ["t"], "deduplication_id": "o"},
    "large": {"body": "ü" * 200_000, "attributes": {"k": "v"}, "tags": ["t"]},
    "large bytes": {"body_base64": "AP//" * 100_000},
}


class Seen:
    """A function with the library's handler, beside what a receive's answer has."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.got: list[Received] = []
        self.answers: list[dict[str, Any]] = []

        def event_of(source: Source, claimed: list[Claimed]) -> bytes:
            for each in claimed:
                answer = ReceivedMessage.at(
                    each.parcel,
                    each.index,
                    each.message,
                    Onlooker(source.account, source.account),
                    receipt=each.receipt,
                )
                self.answers.append(msgspec.json.decode(msgspec.json.encode(answer)))
            return function_records.event_of(source, claimed)

        monkeypatch.setattr(function_batch, "event_of", event_of)
        respond = batch_response(self.handle)
        world.handle = lambda event: respond(event, None)
        self.result: Callable[[Received], Retry | None] = lambda message: None

    def handle(self, message: Received) -> Retry | None:
        self.got.append(message)
        return self.result(message)

    def check(self, source: Queue | Subscription, count: int = 1) -> None:
        """Whether each message was handled as a consumer of the source gets it."""
        assert self.got == [Received(answer, str(source)) for answer in self.answers]
        assert len(self.got) == count


@pytest.fixture
def seen(world: World, monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(world, monkeypatch)


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ordered": {"ordered": True},
    "fair": {"fair": True},
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_queues_function_gets_all_fields(
    world: World, make_queue: MakeQueue, seen: Seen, kind: str, content: dict[str, Any]
) -> None:
    queue = make_queue(invoke=INVOKE, max_message_bytes=LARGE, **KINDS[kind])
    group = {} if kind == "plain" else {"group": "g: ü"}
    assert queue.try_send([content | group]).status == 201

    world.settle()

    seen.check(Queue("orders"))
    (message,) = seen.got
    assert message.group == group.get("group")
    assert message.deduplication_id == content.get("attributes", {}).get(DEDUPLICATION_ATTRIBUTE)


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("ordered", [False, True], ids=["plain", "ordered"])
def test_a_subscriptions_function_gets_all_fields(
    world: World, topic: TestTopic, seen: Seen, ordered: bool, content: dict[str, Any]
) -> None:
    group = {"group": "g"} if ordered else {}
    assert topic.client.patch(topic.path, {"max_message_bytes": LARGE}).status == 200
    topic.subscribe("all", invoke=INVOKE, ordered=ordered)
    assert topic.try_publish([content | group]).status == 201

    world.settle()

    seen.check(Subscription("news", "all"))


def test_times_and_counts_are_those_of_each_receive(
    world: World, make_queue: MakeQueue, seen: Seen
) -> None:
    queue = make_queue(visibility_timeout_seconds=3, invoke=INVOKE)
    queue.send("a")
    seen.result = lambda message: Retry() if message.receive_count == 1 else None

    Schedules(world).pass_seconds(60)

    seen.check(Queue("orders"), 2)
    assert [message.receive_count for message in seen.got] == [1, 2]


@pytest.mark.parametrize("giving_up", ["queue", "receiver", "subscription"])
def test_a_dead_letter_has_the_note_of_its_source(
    world: World,
    topic: TestTopic,
    make_queue: MakeQueue,
    seen: Seen,
    giving_up: str,
) -> None:
    dead = make_queue("dead", invoke=INVOKE)
    source: TestQueue
    receiver: dict[str, Any] = {}
    if giving_up == "subscription":
        source = topic.subscribe("group", dead_letter_queue="dead")
        topic.publish("a", attributes=NOTED)
    else:
        source = make_queue("orders", dead_letter={"queue": "dead", "max_receives": 5})
        if giving_up == "receiver":
            source.add_receiver("audit")
            receiver = {"receiver": "audit"}
        source.send("a", attributes=NOTED)
        world.settle()
    source.act("dead-letter", *source.receive(**receiver), reason="no order, ü")

    world.settle()

    seen.check(Queue("dead"))
    note = seen.got[0].dead_letter
    assert note is not None
    assert note["reason"] == "no order, ü"
    assert (note.get("receiver"), note.get("subscription")) == (
        receiver.get("receiver"),
        "group" if giving_up == "subscription" else None,
    )
    assert dead.counts() == {}


def test_exactly_once_acts_once_in_a_function_and_beside_it_in_a_consumer(
    world: World, make_queue: MakeQueue
) -> None:
    """A message that a function has done, and whose delete was lost, comes to whoever is next."""
    effects: list[str] = []
    queue = make_queue(invoke=INVOKE)
    handler = exactly_once(Store(), "shop")(lambda message, _: effects.append(message.text))

    def lost(event: dict[str, Any]) -> Any:
        handler(event, None)
        raise TimeoutError

    world.handle = lost
    queue.send("a", "b", attributes=NOTED)

    world.settle()
    world.handle = lambda event: handler(event, None)
    Schedules(world).pass_seconds(120)

    assert [len(each) for each in world.batches] == [2, 1, 1]
    assert queue.counts() == {}
    assert effects == ["a"], "b has the deduplication id of a"
