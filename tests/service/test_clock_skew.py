"""Functions whose clocks differ by two seconds: floors in time hold by every clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from msgspec.structs import replace
from tests.service.conftest import MakeQueue, Message, TestQueue
from tests.service.test_rewinding_groups import rewind, take_in_order
from tests.service.topics import TestSubscription, TestTopic

from cirrusmq.base import ulid
from cirrusmq.base.limits import ATTEMPT_AHEAD_MS, CACHE_MS
from cirrusmq.base.timestamps import format_time
from cirrusmq.queues.queues import get_queue
from cirrusmq.queues.receivers import source_named
from cirrusmq.receiving import rounds
from cirrusmq.runtime.cache import Cache
from cirrusmq.runtime.clock import Clock
from cirrusmq.storage.walk import FIRST_PARCELS
from cirrusmq_local.testing import Client, World

SKEW_SECONDS = 1.999


class SkewedClock:
    """The world's clock, some seconds behind or ahead."""

    scale = 1.0

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._ms = round(seconds * 1000)

    def now_ms(self) -> int:
        return self._clock.now_ms() + self._ms

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)


@contextmanager
def elsewhere(world: World, seconds: float) -> Iterator[None]:
    """Calls are answered by environments whose clocks are `seconds` ahead."""
    core, clock = world.core, SkewedClock(world.clock, seconds)
    world.core = replace(core, clock=clock, cache=Cache(clock, CACHE_MS, shared=False))
    try:
        yield
    finally:
        world.core = core


@pytest.fixture
def queue(cloud: World) -> TestQueue:
    """A queue that keeps deleted messages."""
    alice: Client = cloud.client("alice", admin=True)
    assert alice.put("/queues/orders", {"rewind_seconds": 3_600}).status == 201
    return TestQueue(alice, "orders")


def send(queue: TestQueue, seconds: float) -> None:
    """Send a message by an environment whose clock is so far ahead."""
    with elsewhere(queue.client.world, seconds):
        queue.send("x")


def test_a_look_sees_messages_due_behind_claims_of_a_clock_ahead(
    cloud: World,
) -> None:
    """Its key is still to come by the clock of who looks, and it is held."""
    alice: Client = cloud.client("alice", admin=True)
    assert alice.put("/queues/late", {"partitions": 1}).status == 201
    queue = TestQueue(alice, "late")
    for _ in range(2 * FIRST_PARCELS):
        queue.send("soon", delay_seconds=20)
    queue.send("later", delay_seconds=60)
    later_ms = cloud.clock.now_ms() + 60_000
    cloud.clock.pass_seconds(19)
    with elsewhere(cloud, SKEW_SECONDS):
        assert len(queue.receive_all()) == 2 * FIRST_PARCELS

    source = source_named(cloud.core, get_queue(cloud.core, "alice", "late"), None)
    seen = rounds.look(cloud.core, source.all)

    assert seen.answer == rounds.DueAt(later_ms)


SENT = [
    pytest.param(True, [], id="right before, by a clock ahead"),
    pytest.param(False, ["x"], id="right after, by a clock behind"),
]


@pytest.mark.parametrize(("is_sent_before", "bodies"), SENT)
def test_a_purge_takes_only_messages_sent_before_it(
    cloud: World, queue: TestQueue, is_sent_before: bool, bodies: list[str]
) -> None:
    if is_sent_before:
        send(queue, SKEW_SECONDS)
    queue.start("purge")
    if not is_sent_before:
        send(queue, -SKEW_SECONDS)
    cloud.settle()

    cloud.clock.pass_seconds(3)
    assert queue.bodies() == bodies


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("is_sent_before", "bodies"), SENT)
def test_a_latest_receiver_gets_only_later_messages(
    cloud: World, queue: TestQueue, first: bool, is_sent_before: bool, bodies: list[str]
) -> None:
    if not first:
        queue.add_receiver("other")
    if is_sent_before:
        send(queue, SKEW_SECONDS)
    queue.add_receiver("copy")
    if not is_sent_before:
        send(queue, -SKEW_SECONDS)
    cloud.settle()

    cloud.clock.pass_seconds(3)
    assert queue.bodies(receiver="copy") == bodies


def test_an_earliest_receiver_gets_copies_fanned_out_before_it_was_known(
    cloud: World, queue: TestQueue
) -> None:
    queue.add_receiver("other")
    cloud.clock.pass_seconds(60)
    send(queue, SKEW_SECONDS)
    cloud.settle()

    queue.add_receiver("copy", start="earliest")

    cloud.clock.pass_seconds(3)
    assert queue.bodies(receiver="copy") == ["x"]


def test_a_rewind_brings_back_messages_deleted_right_before_by_a_clock_ahead(
    cloud: World, queue: TestQueue
) -> None:
    start = format_time(cloud.clock.now_ms())
    queue.send("x")
    with elsewhere(cloud, SKEW_SECONDS):
        queue.delete(*queue.receive())

    operation = queue.run("rewind", to=start)

    assert operation["done"] == 1
    cloud.clock.pass_seconds(3)
    assert queue.bodies() == ["x"]


def test_a_rewind_leaves_messages_deleted_right_after_its_answer_by_a_clock_behind(
    cloud: World, queue: TestQueue
) -> None:
    start = format_time(cloud.clock.now_ms())
    queue.send("x")
    cloud.clock.pass_seconds(3)
    queue.start("rewind", to=start)
    with elsewhere(cloud, -SKEW_SECONDS):
        queue.delete(*queue.receive())
    cloud.settle()

    cloud.clock.pass_seconds(3)
    assert queue.bodies() == []


def test_a_repeat_by_a_clock_behind_finds_the_receive_of_a_clock_ahead(
    cloud: World, queue: TestQueue
) -> None:
    client, now_ms = queue.client, cloud.clock.now_ms()
    first_try = ulid.encode(now_ms + ATTEMPT_AHEAD_MS - 1, cloud.random.randbytes(10))
    queue.try_send([{"body": "x"}], attempt=first_try)
    token = ulid.encode(now_ms, cloud.random.randbytes(10))
    with elsewhere(cloud, 0.999):
        first = client.receive("orders", attempt=token)
    assert len(first) == 1

    with elsewhere(cloud, -1):
        assert client.receive("orders", attempt=token, repeat=True) == first


def test_on_one_machine_there_is_one_clock_and_nothing_to_wait_for(
    world: World, make_queue: MakeQueue
) -> None:
    queue = make_queue(rewind_seconds=3_600)
    before = world.clock.now_ms()

    queue.run("purge")
    queue.run("rewind", to=format_time(before))
    queue.add_receiver("copy")

    assert world.clock.now_ms() - before < 50


@pytest.mark.parametrize("protocol", ["pull", "queue"])
def test_publishes_right_after_an_ordered_readers_subscription_are_put_in_its_order(
    cloud: World, protocol: str
) -> None:
    alice = cloud.client("alice", admin=True)
    alice.put("/queues/steps", {"ordered": True})
    alice.put("/topics/news")
    reader = {"ordered": True} if protocol == "pull" else {"endpoint": "steps"}
    path = "/topics/news/subscriptions/reader"
    assert alice.put(path, {"protocol": protocol, **reader}).status == 201

    with elsewhere(cloud, -SKEW_SECONDS):
        for number in range(20):
            published = {"messages": [{"body": str(number), "group": "one"}]}
            assert alice.post("/topics/news/messages", published).status == 201

    topic_id = alice.get("/topics/news").json["id"]
    records = [item for item in cloud.items() if item["pk"]["S"].startswith(f"L#{topic_id}#")]
    assert len(records) == 20
    assert len({item["pk"]["S"] for item in records}) == 1


class TestRewoundGroups:
    """A rewind goes by the time of the function that published, a group's order by its numbers.

    clocks      1 at 12:00:02 (fast) ── 2 at 12:00:00.1, published behind it
    rewound to 12:00:02     former  2     present  1 again
    """

    @pytest.fixture
    def topic(self, cloud: World) -> TestTopic:
        return TestTopic(cloud.client("alice", admin=True))

    @pytest.fixture
    def group(self, topic: TestTopic) -> TestSubscription:
        return topic.subscribe("group", ordered=True)

    def test_the_order_holds_though_a_later_message_has_an_earlier_time(
        self, cloud: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        publish(topic, "0")
        cloud.clock.pass_seconds(5)
        fast = publish_at_a_fast_clock(topic, "1")
        slow = publish(topic, "2")
        cloud.clock.pass_seconds(3)
        publish(topic, "3")
        assert slow["sent_at"] < fast["sent_at"]
        rewind(group, fast["sent_at"])
        assert take_in_order(group) == [*"0123"]

    def test_neither_is_received_before_the_operation_has_reached_the_first(
        self, cloud: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        publish(topic, "0")
        cloud.clock.pass_seconds(5)
        fast = publish_at_a_fast_clock(topic, "1")
        publish(topic, "2")
        cloud.clock.pass_seconds(3)
        rewind(group, fast["sent_at"], settle=False)
        assert take_in_order(group) == ["0"]
        cloud.settle()
        assert take_in_order(group) == [*"12"]

    def test_only_one_is_received_at_a_time(
        self, cloud: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        fast = publish_at_a_fast_clock(topic, "1")
        publish(topic, "2")
        cloud.clock.pass_seconds(3)
        rewind(group, fast["sent_at"])
        (first,) = group.receive()
        assert first["body"] == "1"
        assert group.receive() == []
        group.delete(first)
        assert take_in_order(group) == ["2"]

    def test_one_held_from_before_is_waited_for(
        self, cloud: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        fast = publish_at_a_fast_clock(topic, "1")
        publish(topic, "2")
        cloud.clock.pass_seconds(3)
        group.delete(*group.receive(1))
        (held,) = group.receive()
        assert held["body"] == "2"
        rewind(group, fast["sent_at"])
        assert group.receive() == []
        group.delete(held)
        assert take_in_order(group) == ["1"]

    def test_the_order_holds_over_two_rewinds(
        self, cloud: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        fast = []
        for number in range(0, 6, 2):
            fast.append(publish_at_a_fast_clock(topic, f"{number}"))
            publish(topic, f"{number + 1}")
            cloud.clock.pass_seconds(0.5)
        cloud.clock.pass_seconds(3)
        rewind(group, fast[0]["sent_at"])
        rewind(group, fast[2]["sent_at"])
        assert take_in_order(group) == [*"012345"]


def publish(topic: TestTopic, body: str) -> Message:
    """Publish a message of one group; it is fanned out."""
    (published,) = topic.publish(body, group="g")
    return published


def publish_at_a_fast_clock(topic: TestTopic, body: str) -> Message:
    """Publish by an environment whose clock is ahead."""
    with elsewhere(topic.client.world, SKEW_SECONDS):
        return publish(topic, body)
