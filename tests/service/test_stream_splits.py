"""A split of a stream's shard: two records of one partition key are delivered beside each other.

DynamoDB promises the order of an item's changes, and a shard has that of all its records. A split
by size or heat cuts a partition at a sort key: the parent is read to its end, then both children
are read beside each other.

    parent    m1 m2 m3 │ split at the key of m3
    lower              │ what is put with an older key
    upper              │ m4 m5 m6 …

Keys of a log grow with the time of the send, so all that follows is in the upper child, but for
what comes within seconds of the split from a function, or with an attempt, whose clock is behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from itertools import zip_longest
from typing import Any

import pytest
from tests.service.conftest import TestQueue, usage
from tests.service.test_clock_skew import SKEW_SECONDS, elsewhere
from tests.service.test_stream_shards import READERS, make_reader
from tests.service.topics import TestTopic

from cirrusmq.base import limits, ulid
from cirrusmq_local.engine.changes import StreamRecord
from cirrusmq_local.testing import World

Records = list[dict[str, Any]]
Children = tuple[Records, Records]
"""Those with keys below the split, and the others."""
BODIES = [f"{number:02d}" for number in range(12)]
SPLIT_AT = 4
"""The last message that the parent has."""
BESIDE = ("lower first", "upper first", "in turn", "lower within upper", "upper within lower")


@pytest.fixture
def world(cloud: World) -> World:
    return cloud


def log_records(world: World) -> list[StreamRecord]:
    """Records of logs with messages, in the order of their writes."""
    stream = world.engine.read_stream(world.tables.messages, 0, 10_000)
    return [
        each
        for each in stream
        if each.event_name == "INSERT" and each.keys["pk"]["S"].startswith("L#")
    ]


def split(records: Sequence[StreamRecord], at: int) -> tuple[Records, Children]:
    """The parent's records up to number `at`, at whose key it is split, and its children's."""
    key = max(each.keys["sk"]["S"] for each in records[: at + 1])
    assert len({each.keys["pk"]["S"] for each in records}) == 1, "in order under one partition key"
    children: Children = [], []
    for each in records[at + 1 :]:
        children[each.keys["sk"]["S"] > key].append(each.as_lambda_record())
    return [each.as_lambda_record() for each in records[: at + 1]], children


def fan_out(world: World, records: Records) -> None:
    if records:
        answer = world.run("fan_out", {"Records": records})
        assert answer["batchItemFailures"] == []


def fan_out_within(world: World, outer: Records, inner: Records) -> None:
    """Fan one child out while a batch of the other is under way, at its first parcel."""
    execute = world.engine.execute

    def put(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        pk = request.get("Item", {}).get("pk", {}).get("S", "")
        if operation == "PutItem" and pk.startswith("Q#"):
            world.engine.execute = execute  # type: ignore[method-assign]
            fan_out(world, inner)
        answer: dict[str, Any] = execute(operation, request)
        return answer

    world.engine.execute = put  # type: ignore[method-assign]
    fan_out(world, outer)
    if world.engine.execute is put:  # there was none
        world.engine.execute = execute  # type: ignore[method-assign]
        fan_out(world, inner)


def deliver(world: World, children: Children, beside: str, take: Callable[[], list[str]]) -> None:
    lower, upper = children
    match beside:
        case "lower first" | "upper first":
            for child in children if beside == "lower first" else reversed(children):
                fan_out(world, child)
                take()
        case "in turn":
            for pair in zip_longest(lower, upper):
                for each in pair:
                    fan_out(world, [each] if each else [])
                    take()
        case "lower within upper":
            fan_out_within(world, upper, lower)
        case "upper within lower":
            fan_out_within(world, lower, upper)
    take()


@pytest.mark.few(16)
@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("kind", READERS)
def test_a_split_breaks_no_order_if_clocks_agree(world: World, kind: str, beside: str) -> None:
    send, take = make_reader(world.client("alice", admin=True), kind)
    for body in BODIES:
        world.clock.pass_seconds(0.005)
        send(body)
    parent, children = split(log_records(world), SPLIT_AT)
    assert children[0] == [], "all that follows has a later key"
    fan_out(world, parent)
    take()
    deliver(world, children, beside, take)
    assert take() == BODIES


@pytest.mark.few(15)
@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("kind", READERS)
def test_within_seconds_of_a_split_differing_clocks_lose_nothing(
    world: World, kind: str, beside: str
) -> None:
    """Every second message is of a function whose clock is two seconds behind."""
    send, take = make_reader(world.client("alice", admin=True), kind)
    slow = set(BODIES[1::2])
    for body in BODIES:
        world.clock.pass_seconds(0.4)
        with elsewhere(world, -SKEW_SECONDS) if body in slow else nullcontext():
            send(body)
    parent, children = split(log_records(world), SPLIT_AT)
    lower, upper = children
    assert 0 < len(lower) < len(upper)
    fan_out(world, parent)
    take()
    deliver(world, children, beside, take)
    world.clock.pass_seconds(60)
    received = take()
    assert sorted(received) == BODIES, "nothing is lost, nothing comes twice"
    behind = BODIES[SPLIT_AT + 1 :]
    own = [body for body in behind if body in slow][: len(lower)]
    others = [body for body in BODIES if body not in own]
    assert [body for body in received if body in own] == own, "each child keeps its order"
    if kind != "url":  # whose order is that of the times of sending, by each function's clock
        assert [body for body in received if body in others] == others
    seconds_behind = 0.4 * (int(own[-1]) - SPLIT_AT)
    assert seconds_behind <= SKEW_SECONDS, "only what comes so soon is in the lower child"


@pytest.mark.parametrize(("ahead", "below"), [(1.9, True), (0, False)])
def test_a_split_may_be_at_the_key_of_an_attempt_ahead(
    world: World, ahead: float, below: bool
) -> None:
    """No clock of a client is further ahead, nor behind, nor do functions' differ by more."""
    topic = TestTopic(world.client("alice", admin=True))
    topic.subscribe("ordered", ordered=True)
    for number in range(3):
        world.clock.pass_seconds(0.1)
        own_ms = world.clock.now_ms() + round(1_000 * ahead * (number == 1))
        own = {"attempt": ulid.encode(own_ms, bytes([number] * 10))} if number < 2 else {}
        message = {"body": str(number), "group": "g"}
        assert topic.try_publish([message], **own).status == 201
    _, (lower, upper) = split([each for each in log_records(world) if each.new_image], 1)
    assert (len(lower), len(upper)) == ((1, 0) if below else (0, 1))
    assert limits.ORDER_SLACK_MS + limits.CLOCK_SKEW_MS == 5_000, "as the manual says"


@pytest.mark.parametrize("seconds", [0.9, 1.5])
def test_an_attempt_is_in_the_lower_child_only_while_it_is_fresh(
    world: World, seconds: float
) -> None:
    alice = world.client("alice", admin=True)
    topic = TestTopic(alice)
    topic.subscribe("ordered", ordered=True)
    for number in range(3):
        world.clock.pass_seconds(0.1)
        made_ms = world.clock.now_ms() - round(seconds * 1_000 * (number == 2))
        own = ulid.encode(made_ms, bytes([number] * 10))
        message = {"body": str(number), "group": "g"}
        assert topic.try_publish([message], attempt=own).status == 201
    records = [each for each in log_records(world) if "g" in (each.new_image or {})]
    _, (lower, upper) = split(records, 1)
    assert (len(lower), len(upper)) == ((1, 0) if seconds < 1 else (0, 1))


@pytest.mark.parametrize("lower_first", [True, False])
def test_the_meter_rests_on_the_order_of_each_item_alone(world: World, lower_first: bool) -> None:
    """Its records of a partition key, in two children that are read one behind the other."""
    alice = world.client("alice", admin=True)
    alice.put("/queues/work", {"partitions": 1})
    work = TestQueue(alice, "work")
    for body in BODIES:
        world.clock.pass_seconds(0.01)
        work.send(body)
    received = work.receive()
    work.delete(*received[:5])
    work.give_back(*received[5:7], delay_seconds=60)
    stream = world.engine.read_stream(world.tables.messages, 0, 10_000)
    parcels = [each for each in stream if each.keys["pk"]["S"].startswith("Q#")]
    key = sorted({each.keys["sk"]["S"] for each in parcels})[6]
    children: Children = [], []
    for each in parcels:
        children[each.keys["sk"]["S"] >= key].append(each.as_lambda_record())
    assert all(children)
    for child in children if lower_first else reversed(children):
        assert world.run("meter", {"Records": child})["batchItemFailures"] == []
    queue_id = work.show()["id"]
    counted = usage(world)
    count = len(BODIES)
    assert counted == {
        "queue:work sent": count, "queue:work received": count, "queue:work deleted": 5
    }  # fmt: skip
    (counter,) = (each for each in world.items("usage") if each["sk"]["S"] == queue_id)
    assert counter["messages"]["N"] == str(len(BODIES) - 5)
