"""What fan_out gave up is handed out later: by the sweep, and when whoever operates it asks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.faults import Throttled, log_records, publish_apart, puts_into
from tests.service.test_stream_shards import Consumer
from tests.service.test_stream_shards import push as run_invoked
from tests.service.topics import TestSubscription, TestTopic

from cirrusmq.base.errors import InvalidParameter, OperationNotFound
from cirrusmq.base.timestamps import format_time
from cirrusmq.operations import fan_out_again
from cirrusmq.operations.runner import run
from cirrusmq.queues import operations
from cirrusmq_local.testing import Subscriber, World

HOUR_MS = 3_600_000


@pytest.fixture
def broken(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From then on `fan_out` fails as a bad release does; what is called ends that."""
    name = world._names["fan_out"]
    function, handler = world._handlers[name]

    def fail(event: Any, context: Any) -> None:
        raise ImportError("a bad release")

    monkeypatch.setitem(world._handlers, name, (function, fail))
    logging.getLogger("cirrusmq_local.cloud.pump").setLevel(logging.CRITICAL)
    return lambda: monkeypatch.setitem(world._handlers, name, (function, handler))


def give_up(world: World, mend: Callable[[], None]) -> None:
    """Let the day pass after which the stream's records are given up, then mend the function."""
    world.settle()
    mend()


def sweep(world: World) -> None:
    """A minute's sweep, and all that it starts."""
    world.run("sweep")
    world.settle()
    world.clock.pass_seconds(60)


def ask(world: World, since_ms: int, **more: Any) -> dict[str, Any]:
    shown: dict[str, Any] = world.run("replay", {"fan_out_since": format_time(since_ms), **more})
    return shown


def state(world: World, operation: str) -> dict[str, Any]:
    shown: dict[str, Any] = world.run("replay", {"fan_out_state": operation})
    return shown


def taken(queue: TestQueue, **fields: Any) -> list[str]:
    """As `in_turn`, sorted."""
    return sorted(in_turn(queue, **fields))


def in_turn(queue: TestQueue, **fields: Any) -> list[str]:
    """Bodies in the order of receiving, with deletes in between."""
    consumer = Consumer(queue, **fields)
    consumer()
    return consumer.bodies


class TestByTheSweep:
    def test_each_reader_gets_a_given_up_stretch_once(
        self,
        world: World,
        topic: TestTopic,
        group: TestSubscription,
        make_queue: MakeQueue,
        subscriber: Subscriber,
        broken: Callable[[], None],
    ) -> None:
        topic.subscribe("web", "http")
        into = make_queue("into")
        topic.subscribe("queue", "queue", endpoint="into")
        read = make_queue("read")
        read.add_receiver("beside")
        publish_apart(topic, *"abcde")
        read.send(*"xyz")
        give_up(world, broken)
        assert world.unprocessed.bodies()
        assert taken(group) == taken(into) == taken(read, receiver="beside") == []

        sweep(world)

        assert not world.unprocessed.bodies()
        assert taken(group) == taken(into) == list("abcde")
        assert taken(read, receiver="beside") == list("xyz")
        assert sorted(subscriber.bodies()) == list("abcde")
        for _ in range(3):
            sweep(world)
        assert taken(group) == taken(into) == taken(read, receiver="beside") == []
        assert sorted(subscriber.bodies()) == list("abcde")

    def test_readers_with_an_order_get_it_in_order(
        self,
        world: World,
        topic: TestTopic,
        make_queue: MakeQueue,
        subscriber: Subscriber,
        broken: Callable[[], None],
    ) -> None:
        group = topic.subscribe("group", ordered=True)
        topic.subscribe("web", "http", retry={"policy": "backoff"})
        into = make_queue("into", ordered=True)
        topic.subscribe("queue", "queue", endpoint="into")
        bodies = [f"{number:02d}" for number in range(20)]
        publish_apart(topic, *bodies, group="one")
        give_up(world, broken)

        sweep(world)

        assert in_turn(group) == in_turn(into) == subscriber.bodies() == bodies

    def test_many_messages_of_one_outage_are_one_operation(
        self, world: World, topic: TestTopic, group: TestSubscription, broken: Callable[[], None]
    ) -> None:
        publish_apart(topic, *(f"{number}" for number in range(25)))
        give_up(world, broken)
        assert len(world.unprocessed.bodies()) > 10

        sweep(world)
        sweep(world)

        assert len(operations.of_deployment(world.core)) == 1
        assert len(taken(group)) == 25

    def test_a_message_stays_until_its_operation_is_stored(
        self, world: World, topic: TestTopic, group: TestSubscription, broken: Callable[[], None]
    ) -> None:
        publish_apart(topic, "a")
        give_up(world, broken)

        fault = Throttled(world, lambda operation, _: operation == "TransactWriteItems")
        world.run("sweep")
        assert fault.refused
        assert len(world.unprocessed.bodies()) == 1
        fault.end()
        world.clock.pass_seconds(60)
        sweep(world)

        assert taken(group) == ["a"]
        assert not world.unprocessed.bodies()

    def test_an_unremoved_stretch_starts_no_second_operation(
        self, world: World, topic: TestTopic, group: TestSubscription, broken: Callable[[], None]
    ) -> None:
        publish_apart(topic, "a")
        give_up(world, broken)
        (body,) = world.unprocessed.bodies()
        sweep(world)
        world.unprocessed.put(body)

        sweep(world)

        assert not world.unprocessed.bodies()
        assert len(operations.of_deployment(world.core)) == 1
        assert taken(group) == ["a"]

    def test_a_too_old_stretch_stays(
        self, world: World, topic: TestTopic, broken: Callable[[], None]
    ) -> None:
        topic.subscribe("group")
        publish_apart(topic, "a")
        give_up(world, broken)
        world.clock.pass_seconds(1_800)

        sweep(world)

        assert len(world.unprocessed.bodies()) == 1
        assert operations.of_deployment(world.core) == []

    def test_other_failures_stay_and_are_logged_once(
        self, world: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        failed = {"requestContext": {"functionArn": "arn:aws:lambda:l:0:function:cirrusmq-push"}}
        for number in range(12):
            world.unprocessed.put({**failed, "requestPayload": {"deliver": number}})

        for _ in range(3):
            sweep(world)

        assert len(world.unprocessed.bodies()) == 12
        logged = [each for each in caplog.records if "left in the queue" in each.message]
        assert len(logged) == 12


class TestOnRequest:
    def test_publishes_since_a_time_are_handed_out(
        self, world: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        publish_apart(topic, "before")
        world.clock.pass_seconds(60)
        since_ms = world.clock.now_ms()
        publish_apart(topic, *"abc")

        shown = ask(world, since_ms)
        assert shown["state"] == "running"
        # The stream is not read: only the operation hands out.
        run_invoked(world)

        assert taken(group) == list("abc")
        shown = state(world, shown["operation"])
        assert (shown["state"], shown["records"], shown["too_old"]) == ("succeeded", 3, 0)

    def test_readers_with_kept_parcels_get_nothing_twice(
        self,
        world: World,
        topic: TestTopic,
        make_queue: MakeQueue,
        subscriber: Subscriber,
    ) -> None:
        topic.subscribe("web", "http")
        ordered = make_queue("ordered", ordered=True)
        topic.subscribe("queue", "queue", endpoint="ordered")
        held = topic.subscribe("held")
        deleted = topic.subscribe("deleted")
        topic.publish("a", "b")
        messages = held.receive()
        assert taken(ordered) == taken(deleted) == ["a", "b"]

        ask(world, world.clock.now_ms() - HOUR_MS)
        world.settle()

        assert sorted(subscriber.bodies()) == ["a", "b"]
        assert taken(ordered) == []
        assert held.receive() == []
        held.delete(*messages)
        # Of a deleted message nothing is left to tell: its reader gets it again, under its id.
        assert taken(deleted) == ["a", "b"]

    def test_a_moved_message_is_not_handed_out_again(
        self, world: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        topic.publish("a")
        world.clock.pass_seconds(2)
        group.give_back(*group.receive(), delay_seconds=7_200)
        world.clock.pass_seconds(60)

        ask(world, world.clock.now_ms() - HOUR_MS)
        world.settle()

        assert group.receive() == []
        world.clock.pass_seconds(7_200)
        assert taken(group) == ["a"]

    def test_it_goes_on_from_its_saved_place(
        self,
        world: World,
        make_queue: MakeQueue,
        topic: TestTopic,
        group: TestSubscription,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        queues = [make_queue(f"read{number}", partitions=2) for number in range(3)]
        for queue in queues:
            queue.add_receiver("beside")
        monkeypatch.setattr(fan_out_again, "RECORDS", 2)
        monkeypatch.setattr(fan_out_again, "_RESOURCES", 2)
        since_ms = world.clock.now_ms()
        publish_apart(topic, *"abcdefghi")
        for queue in queues:
            for body in "stuvw":
                queue.send(body)

        shown = ask(world, since_ms)
        world.invoked.clear()
        pointer = operations.Pointer(operations.DEPLOYMENT, shown["operation"])
        runs = 0
        while state(world, shown["operation"])["state"] == "running":
            run(world.core, pointer, 0)  # a step at a time, each from what is saved
            world.invoked.clear()
            runs += 1
        assert runs > 12
        assert state(world, shown["operation"])["records"] == 9 + 3 * 5
        assert taken(group) == list("abcdefghi")
        for queue in queues:
            assert taken(queue, receiver="beside") == list("stuvw")

    def test_a_failing_store_is_tried_again_by_the_sweep(
        self, world: World, topic: TestTopic, group: TestSubscription
    ) -> None:
        since_ms = world.clock.now_ms()
        publish_apart(topic, *"ab")
        shown = ask(world, since_ms)
        fault = Throttled(world, lambda operation, _: operation in ("PutItem", "UpdateItem"))
        world.run(*world.invoked.popleft())
        assert fault.refused
        assert state(world, shown["operation"])["state"] == "running"
        fault.end()

        world.run("sweep")
        run_invoked(world)

        assert state(world, shown["operation"])["state"] == "succeeded"
        assert taken(group) == list("ab")

    def test_shares_of_a_hot_reader_are_put_aside(self, world: World, topic: TestTopic) -> None:
        hot, other = topic.subscribe("hot"), topic.subscribe("other")
        since_ms = world.clock.now_ms()
        publish_apart(topic, "a")
        fault = Throttled(world, puts_into(hot.id))
        shown = ask(world, since_ms)
        world.run(*world.invoked.popleft())
        assert state(world, shown["operation"])["state"] == "succeeded"
        assert (taken(hot), taken(other)) == ([], ["a"])
        fault.end()

        run_invoked(world)

        assert taken(hot) == ["a"]

    def test_a_time_of_more_than_23_and_a_half_hours_ago_is_refused(self, world: World) -> None:
        earliest_ms = world.clock.now_ms() - fan_out_again.REACH_MS
        ask(world, earliest_ms)
        with pytest.raises(InvalidParameter, match=r"at most 23\.5 hours ago; the earliest"):
            ask(world, earliest_ms - 1)

    @pytest.mark.parametrize("since", [None, 5, "yesterday", {}])
    def test_anything_but_a_time_is_refused(self, world: World, since: Any) -> None:
        with pytest.raises(InvalidParameter, match="fan_out_since: must be an RFC 3339 time"):
            world.run("replay", {"fan_out_since": since})
        assert operations.of_deployment(world.core) == []

    def test_an_end_before_the_begin_is_refused(self, world: World) -> None:
        now_ms = world.clock.now_ms()
        with pytest.raises(InvalidParameter, match="must be before `until`"):
            ask(world, now_ms, until=format_time(now_ms - 1))
        with pytest.raises(InvalidParameter, match="until: must be an RFC 3339 time"):
            ask(world, now_ms, until=7)

    def test_only_its_own_operations_are_shown(self, world: World, make_queue: MakeQueue) -> None:
        purge = make_queue("queue").start("purge")
        with pytest.raises(OperationNotFound):
            state(world, purge)

    def test_no_account_sees_it(self, world: World, topic: TestTopic) -> None:
        shown = ask(world, world.clock.now_ms())
        reply = topic.client.get(f"/operations/{shown['operation']}")
        assert reply.code == "OperationNotFound"


def test_records_without_readers_are_passed_over(world: World, topic: TestTopic) -> None:
    since_ms = world.clock.now_ms()
    topic.subscribe("gone")
    publish_apart(topic, "a")
    assert topic.client.delete(f"{topic.path}/subscriptions/gone").status == 204
    shown = ask(world, since_ms)
    world.settle()
    assert state(world, shown["operation"])["state"] == "succeeded"
    assert len(log_records(world)) == 1
