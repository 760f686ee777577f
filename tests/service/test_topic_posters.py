"""One poster for each subscription, due marks, and executions that wait until something is due."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest
from tests.service.conftest import TestQueue, to_ms
from tests.service.crashes import before_each_call
from tests.service.faults import Throttled
from tests.service.test_clock_skew import elsewhere
from tests.service.topic_crashes import Crash
from tests.service.topics import Schedules, TestTopic, failing_url

from cirrusmq.wiring import adapters
from cirrusmq_local.testing import Client, Subscriber, World

DAY = 86_400


def units(world: World, call: Callable[[], object], kind: str) -> float:
    """Units of the message table that a call consumes."""
    table = world.tables.messages

    def used() -> float:
        found = world.engine.capacity()["by_table"].get(table, {})
        return float(found.get(f"{kind}_units", 0))

    before = used()
    call()
    return used() - before


class TestWaits:
    @pytest.mark.long
    def test_a_schedule_with_a_lost_execution_goes_on_while_others_keep_failing(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        schedules = Schedules(world, sweeps=True)
        failing_url(topic, subscriber, "first", retry={"policy": "http_unordered"})
        schedules.kill()
        for number in range(68):  # 45 minutes
            schedules.pass_seconds(40)
            topic.publish(str(number))
        assert len(subscriber.times("first")) >= 8
        assert max(subscriber.waits("first")) <= 300 + 120

    def test_a_fresh_failure_is_retried_on_time_whatever_else_waits(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        failing_url(topic, subscriber, retry={"policy": "custom", "waits": [1, 600, 600]})
        for number in range(4):
            topic.publish(str(number))
            schedules.pass_seconds(10)
        schedules.run_out()
        for number in range(4):
            assert subscriber.waits(str(number)) == [1, 600, 600]

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("policy", "seconds", "attempts"),
        [("unordered", DAY, 17), ("http_unordered", DAY - 400, 287)],
    )
    def test_an_execution_comes_when_something_is_due_and_at_no_other_time(
        self,
        topic: TestTopic,
        subscriber: Subscriber,
        schedules: Schedules,
        policy: str,
        seconds: int,
        attempts: int,
    ) -> None:
        web = failing_url(topic, subscriber, "sick", retry={"policy": policy})
        schedules.pass_seconds(seconds)
        assert len(subscriber.times("sick")) == attempts
        assert schedules.started == {web.id: 1}
        assert sum(schedules.rounds.values()) == attempts - 1

    @pytest.mark.long
    def test_a_hundred_failures_at_once_start_one_execution(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = failing_url(topic, subscriber, retry={"policy": "custom", "waits": [30, 60]})
        for first in range(0, 96, 16):
            topic.publish(*(str(number) for number in range(first, first + 16)))
        schedules.run_out()
        assert schedules.started == {web.id: 1}
        assert {tuple(subscriber.waits(str(number))) for number in range(96)} == {(30, 60)}

    def test_a_wait_ending_before_it_is_written_down_is_not_forgotten(
        self, world: World, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        """The poster skips the mark of a message that it has not settled yet."""
        failing_url(topic, subscriber, retry={"policy": "custom", "waits": [10, 600]})
        for number in range(40):  # in each partition something waits
            topic.publish(str(number))
        schedules.pass_seconds(8)
        broken_ms = world.clock.now_ms()
        mended_ms = broken_ms + 13_000

        def refused(operation: str, request: Mapping[str, Any]) -> bool:
            settles = operation == "UpdateItem" and request["Key"]["pk"]["S"][0] == "Q"
            late = settles and int(request["Key"]["sk"]["S"].partition("#")[0]) >= broken_ms
            return late and world.clock.now_ms() < mended_ms

        Throttled(world, refused)
        topic.publish("late")
        assert world.clock.now_ms() >= mended_ms
        schedules.pass_seconds(1_300)
        first, second = subscriber.waits("late")
        assert 10 <= first <= 20
        assert second == 600

    def test_an_earlier_wait_takes_over_and_its_predecessor_ends(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = failing_url(
            topic, subscriber, "one", retry={"policy": "custom", "waits": [10, 7_200]}
        )
        schedules.pass_seconds(100)
        topic.publish("two")
        schedules.run_out()
        assert subscriber.waits("one") == subscriber.waits("two") == [10, 7_200]
        assert schedules.started == {web.id: 2}
        # Each posts when it is due; the first execution wakes once more, and ends.
        assert schedules.rounds == {f"{web.id}-1": 2, f"{web.id}-2": 3}

    def test_an_unstarted_execution_loses_nothing(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        schedules = Schedules(world, sweeps=True)
        failing_url(topic, subscriber, "one", retry={"policy": "custom", "waits": [10, 600]})
        schedules.pass_seconds(100)
        topic.publish("two")
        world.executions.clear()
        schedules.pass_seconds(1_000)
        assert subscriber.waits("one") == [10, 600]
        first, _ = subscriber.waits("two")
        assert 10 <= first <= 10 + 120

    def test_the_name_of_an_execution_has_the_time_in_it(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        """A table that was restored counts its starts again, and names are kept for 90 days."""
        web = failing_url(topic, subscriber, "one")
        ((name, _),) = world.executions
        assert name == f"{web.id}-1-{world.clock.now_ms()}"


class TestOnePoster:
    def test_a_second_poster_leaves_it_all_to_the_first(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        topic.subscribe("slow", "http", retry={"policy": "unordered"})
        answer = world.endpoint
        inside: list[int] = []

        def endpoint(url: str) -> str | None:
            error = answer(url)
            if not inside:
                inside.append(len(subscriber.deliveries))
                for number in range(200):
                    topic.publish(str(number))
                inside.append(len(subscriber.deliveries))
            return error

        world.endpoint = endpoint
        topic.publish("first")
        assert inside == [1, 1]
        assert sorted(subscriber.bodies()) == sorted(["first", *map(str, range(200))])

    @pytest.mark.parametrize("limit", [1, 2, 16, 40])
    def test_no_more_than_max_in_flight_are_posted_at_a_time_and_a_hanging_one_takes_one_slot(
        self, world: World, topic: TestTopic, limit: int
    ) -> None:
        world.core = msgspec.structs.replace(world.core, window=adapters.ThreadWindow)
        topic.subscribe("web", "http", max_in_flight=limit)
        lock, free = threading.Lock(), threading.Event()
        at_once, high, ended = [0], [0], [0]

        def endpoint(url: str) -> str | None:
            with lock:
                at_once[0] += 1
                high[0] = max(high[0], at_once[0])
                hangs = not ended[0] and at_once[0] == 1
            if hangs and limit > 1:
                free.wait(20)
            with lock:
                at_once[0] -= 1
                ended[0] += 1
                if ended[0] == 63:
                    free.set()  # all but the one that hangs
            return None

        world.endpoint = endpoint
        for number in range(4):
            topic.try_publish([{"body": f"{number}.{place}"} for place in range(16)])
        world.settle()
        assert ended[0] == 64
        assert high[0] <= limit
        assert free.is_set()

    def test_a_new_message_is_posted_at_once_while_another_post_hangs(
        self, world: World, topic: TestTopic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The poster listens while it has free slots."""
        world.core = msgspec.structs.replace(world.core, window=adapters.ThreadWindow)
        topic.subscribe("web", "http")
        second = threading.Event()
        posted: list[bytes] = []
        main = threading.current_thread()

        def endpoint(url: str) -> str | None:
            posted.append(world.posts[-1][2])
            if len(posted) == 1:
                return None if second.wait(20) else "timeout"
            second.set()
            return None

        world.endpoint = endpoint
        published: list[bool] = []

        def publish_meanwhile(operation: str, request: Mapping[str, Any]) -> None:
            holds = operation == "GetItem" and posted and request["Key"]["pk"]["S"][0] == "S"
            if holds and not published and threading.current_thread() is main:
                published.append(True)
                topic.publish("second")

        before_each_call(world, monkeypatch, publish_meanwhile)
        sleep = world.clock.pass_seconds
        wait = adapters.ThreadWindow.wait

        def wait_a_little(window: adapters.ThreadWindow, seconds: float) -> list[Any]:
            sleep(seconds)
            return wait(window, seconds)

        monkeypatch.setattr(adapters.ThreadWindow, "wait", wait_a_little)
        topic.publish("first")
        assert second.is_set()
        assert len(posted) == 2

    def test_a_lagging_cheap_read_has_no_message_posted_twice(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        """A mark that is dealt with stays, and fits what its message was before."""
        schedules = Schedules(world, sweeps=True)
        failing_url(topic, subscriber, "one", retry={"policy": "custom", "waits": [10, 20, 600]})
        call = world.core.store._call
        former: dict[str, Any] = {}
        died: list[int] = []

        def lag(operation: str, request: dict[str, Any]) -> dict[str, Any]:
            if operation == "UpdateItem" and request["Key"]["pk"]["S"][0] == "Q":
                read = {"TableName": request["TableName"], "Key": request["Key"]}
                former[str(request["Key"])] = world.engine.execute("GetItem", read)["Item"]
            if "holder, held_until" in request.get("UpdateExpression", "") and not died:
                died.append(world.clock.now_ms())
                raise Crash
            answer = call(operation, request)
            for table, asked in request.get("RequestItems", {}).items():
                if operation == "BatchGetItem" and not asked.get("ConsistentRead"):
                    keys = [str(key) for key in asked["Keys"]]
                    items = [former[key] for key in keys if key in former]
                    answer["Responses"][table] = items or answer["Responses"][table]
            return answer

        world.core.store._call = lag  # type: ignore[method-assign]
        with pytest.raises(Crash):
            schedules.pass_seconds(12)
        schedules.pass_seconds(200)
        first, second = subscriber.waits("one")
        assert first == 10
        assert 20 <= second <= 20 + 120

    def test_a_message_costs_a_hold_its_own_write_and_a_release(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        topic.subscribe("web", "http")

        def publish(*bodies: str) -> Callable[[], object]:
            topic.try_publish([{"body": body} for body in bodies])
            world.run_stream("fan_out")
            return lambda: world.run(*world.invoked.popleft())

        publish("warm")()
        world.settle()
        assert units(world, publish("one"), "write") == 3
        assert units(world, publish(*"abcdefghijklmnop"), "write") == 3
        assert units(world, publish("one"), "read") == 1
        assert len(subscriber.bodies()) == 19


class TestOldNames:
    def test_an_execution_of_a_deleted_subscription_leaves_its_successor_alone(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        schedules = Schedules(world, sweeps=True)
        old = topic.subscribe("web", "http")
        subscriber.down()
        topic.publish("old")
        schedules.pass_seconds(10)
        topic.client.delete(f"{topic.path}/subscriptions/web")
        new = topic.subscribe("web", "http")
        topic.publish("new")
        schedules.pass_seconds(1_000)
        assert len(subscriber.times("old")) == 4
        assert subscriber.waits("new") == [1, 2, 4, 8, 16, 32, 64, 128, 256]
        assert schedules.started == {old.id: 1, new.id: 1}
        assert schedules.running == [f"{new.id}-1"]
        # The old one wakes once, and ends.
        assert schedules.rounds[f"{old.id}-1"] <= 5


class TestEachItsOwn:
    def test_traces_and_the_state_show_the_messages_own_times_and_errors(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = topic.subscribe("web", "http", retry={"policy": "custom", "waits": [100, 900]})
        subscriber.answer = lambda delivery: {"one": 500, "two": None}[delivery.text]
        (one,) = topic.publish("one")
        schedules.pass_seconds(30)
        (two,) = topic.publish("two")
        schedules.pass_seconds(1)

        def told(message: dict[str, Any]) -> tuple[float, str]:
            state = topic.trace(message["id"])["web"]
            return to_ms(state["next_attempt_at"]), state["last_error"]

        assert told(one) == (subscriber.times("one")[0] + 100_000, "status 500")
        assert told(two) == (subscriber.times("two")[0] + 100_000, "timeout")
        shown = web.show()
        assert (to_ms(shown["next_attempt_at"]), shown["last_error"]) == told(one)
        schedules.pass_seconds(80)
        shown = web.show()
        assert (to_ms(shown["next_attempt_at"]), shown["last_error"]) == told(two)


class TestWhatItCosts:
    @pytest.mark.parametrize("backlog", [96, pytest.param(416, marks=pytest.mark.long)])
    def test_an_attempt_costs_the_same_whatever_waits(
        self, world: World, topic: TestTopic, subscriber: Subscriber, backlog: int
    ) -> None:
        failing_url(topic, subscriber, retry={"policy": "custom", "waits": [7_200] * 3})
        schedules = Schedules(world)
        for first in range(0, backlog, 16):
            topic.try_publish([{"body": str(number)} for number in range(first, first + 8)])
            for number in range(first + 8, first + 16):
                topic.try_publish([{"body": str(number)}])
        schedules.pass_seconds(0)
        before = len(subscriber.deliveries)
        read = units(world, lambda: schedules.pass_seconds(7_300), "read")
        attempts = len(subscriber.deliveries) - before
        assert attempts == backlog
        # Its own parcel, and of the look at most a unit for 16.
        assert read <= attempts * (1 + 1 / 16) + 16
        written = units(world, lambda: schedules.pass_seconds(7_300), "write")
        assert written <= 4 * backlog

    @pytest.mark.long
    def test_counts_cost_only_the_undelivered_messages(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        web = topic.subscribe("web", "http", retry={"policy": "custom", "waits": [7_200]})
        schedules = Schedules(world, sweeps=True)
        subscriber.down(*map(str, range(96)))
        topic.publish(*(str(number) for number in range(8)))  # it waits at the very front
        for number in range(600):
            topic.try_publish([{"body": f"x{number}"}])
        world.settle()
        topic.publish(*(str(number) for number in range(8, 16)))
        schedules.pass_seconds(300)
        assert web.show()["counts"]["active"] == topic.active() == 16
        all_of_it = 600 * 400 / 4_096
        for look in (web.show, topic.show):
            assert units(world, look, "read") <= 20 < all_of_it / 2

    def test_an_idle_subscription_is_left_alone(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        topic.subscribe("web", "http")
        schedules = Schedules(world, sweeps=True)
        topic.publish("one")
        schedules.pass_seconds(300)
        world.run("sweep")
        assert list(world.invoked) == []


class TestPartitions:
    def test_messages_of_a_url_are_spread_over_eight_keys(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        web = topic.subscribe("web", "http")
        for number in range(100):
            topic.publish(str(number))
        found = {item["pk"]["S"] for item in world.items() if item["pk"]["S"][0] == "Q"}
        assert found == {f"Q#{web.id}#{partition}" for partition in range(8)}
        assert len(subscriber.bodies()) == 100

    @pytest.mark.parametrize("retry", [{"policy": "backoff"}, {"policy": "ordered"}])
    def test_in_order_they_are_read_as_one(
        self, world: World, topic: TestTopic, subscriber: Subscriber, retry: dict[str, Any]
    ) -> None:
        topic.subscribe("web", "http", retry=retry, ordered=retry["policy"] == "ordered")
        bodies = [f"{number:03d}" for number in range(100)]
        for body in bodies:
            world.clock.pass_seconds(0.001)
            topic.try_publish([{"body": body}])
        world.run_stream("fan_out")
        _, event = world.invoked[-1]
        world.invoked.clear()
        world.run("push_slow", event)
        assert subscriber.bodies() == bodies

    def test_in_order_a_lost_event_of_a_slower_clock_lets_nothing_overtake(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        """The key of what is published second is before that of the first, which was looked at."""
        topic.subscribe("web", "http", retry={"policy": "backoff"})

        def publish(body: str, ahead: float) -> None:
            world.clock.pass_seconds(0.01)
            with elsewhere(world, ahead):
                assert topic.try_publish([{"body": body}]).status == 201

        def answer(delivery: Any) -> int:
            if delivery.text == "first":
                publish("second", -0.5)
                world.run_stream("fan_out")
                world.invoked.clear()  # its event is lost
                publish("third", 1.5)
                world.run_stream("fan_out")
                world.run(*world.invoked.popleft())
            return 204

        subscriber.answer = answer
        publish("first", 1.5)
        world.settle()
        assert subscriber.bodies() == ["first", "second", "third"]


def publish_alone(world: World, topic: TestTopic, bodies: list[str], **fields: Any) -> None:
    """Publish messages one after the other whose events are lost, and come 100 s before their end.

    What moves them then does it side by side, as in the cloud.
    """
    for body in bodies:
        world.clock.pass_seconds(0.001)
        topic.try_publish([{"body": body, **fields}])
    world.run_stream("fan_out")
    world.invoked.clear()
    world.clock.pass_seconds(DAY - 100)
    world.core = msgspec.structs.replace(world.core, in_parallel=adapters.InParallel())


class TestRescue:
    def test_a_retry_due_in_the_last_two_minutes_becomes_a_dead_letter_before(
        self, alice: Client, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        waits = [43_200.0, 43_200 - 90.0, 10.0]
        web = failing_url(topic, subscriber, "one", retry={"policy": "custom", "waits": waits})
        schedules.run_out()
        assert subscriber.waits("one") == [43_200]
        assert [dead["body"] for dead in TestQueue(alice, f"dlq-{web.id}").receive_all()] == ["one"]

    @pytest.mark.parametrize("policy", ["unordered", "exponential_decay"])
    def test_messages_expiring_together_are_moved_several_at_a_time(
        self, world: World, alice: Client, topic: TestTopic, subscriber: Subscriber, policy: str
    ) -> None:
        assert alice.put("/queues/dead", {}).status == 201
        retry = {"policy": policy}
        topic.subscribe("web", "http", retry=retry, dead_letter_queue="dead")
        bodies = [f"{number:02d}" for number in range(64)]
        publish_alone(world, topic, bodies)
        call, eight = world.core.store._call, threading.Barrier(8)

        def meet(operation: str, request: dict[str, Any]) -> dict[str, Any]:
            moves = [
                each["Put"]["TableName"]
                for each in request.get("TransactItems", ())
                if "Put" in each
            ]
            if world.tables.messages in moves:
                eight.wait(20)
            return call(operation, request)

        world.core.store._call = meet  # type: ignore[method-assign]
        Schedules(world, sweeps=True).pass_seconds(70)
        assert subscriber.bodies() == []
        assert sorted(dead["body"] for dead in TestQueue(alice, "dead").receive_all()) == bodies

    def test_ordered_messages_expiring_together_are_dead_letters_in_order(
        self, world: World, alice: Client, topic: TestTopic
    ) -> None:
        assert alice.put("/queues/dead", {"ordered": True}).status == 201
        retry = {"policy": "ordered"}
        fields = {"retry": retry, "ordered": True, "dead_letter_queue": "dead"}
        topic.subscribe("web", "http", **fields)
        bodies = [f"{number:02d}" for number in range(100)]
        publish_alone(world, topic, bodies, group="one")
        Schedules(world, sweeps=True).pass_seconds(70)
        assert TestQueue(alice, "dead").consume() == bodies


class TestAnotherPolicy:
    """PATCH may change what a failing message does to the others while it waits."""

    @pytest.mark.few(1)
    @pytest.mark.parametrize(
        ("dies", "seconds"),
        [
            *((False, 400), (True, 0)),
            *(pytest.param(*each, marks=pytest.mark.long) for each in ((False, 0), (True, 400))),
        ],
    )
    @pytest.mark.parametrize(
        ("before", "after"),
        [("unordered", "exponential_decay"), ("exponential_decay", "unordered")],
    )
    def test_no_waiting_message_is_lost(
        self,
        world: World,
        topic: TestTopic,
        subscriber: Subscriber,
        before: str,
        after: str,
        dies: bool,
        seconds: int,
    ) -> None:
        schedules = Schedules(world, sweeps=True)
        web = failing_url(topic, subscriber, "one", "two", retry={"policy": before})
        schedules.pass_seconds(3)
        topic.publish("three")
        schedules.pass_seconds(seconds)
        assert web.patch(retry={"policy": after}).status == 200
        if dies:
            schedules.kill()
        subscriber.up()
        schedules.pass_seconds(1_200)
        assert {"one", "two", "three"} <= set(subscriber.bodies())
        assert web.show()["counts"]["active"] == 0
        assert web.show()["state"] == "delivering"


class TestMaxInFlight:
    def test_it_is_of_http_subscriptions_16_by_default_and_may_change(
        self, topic: TestTopic
    ) -> None:
        web = topic.subscribe("web", "http")
        assert web.show()["max_in_flight"] == 16
        assert web.patch(max_in_flight=256).status == 200
        assert web.show()["max_in_flight"] == 256
        assert "max_in_flight" not in topic.subscribe("pull").show()
        same = {"protocol": "http", "endpoint": web.shown["endpoint"]}
        assert topic.try_subscribe("web", **same).status == 200
        assert topic.try_subscribe("web", max_in_flight=16, **same).code == "AlreadyExists"
