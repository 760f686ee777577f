"""Crashes of push at every call of the store, lost events and executions, and several pushing at
once: nothing is lost, nothing stays stuck, and one at a time delivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.service.conftest import TestQueue, sweep, to_ms
from tests.service.crashes import before_each_call
from tests.service.topic_crashes import Crash, Crashes
from tests.service.topics import Schedules, TestTopic, failing_url

from cirrusmq.model.parcel import Parcel
from cirrusmq.model.transitions import failed
from cirrusmq.push.poster_lease import acquire
from cirrusmq.storage.changes import as_read, change
from cirrusmq.storage.parcels import parcel_key, read_parcel
from cirrusmq.subscriptions.delivery import items as delivery_items
from cirrusmq.subscriptions.delivery.due_marks import DueMark, marks_key, put_mark
from cirrusmq_local.testing import Delivery, Subscriber, World

STUCK_MS = 120_000
POLICIES: dict[str, dict[str, Any]] = {
    "exponential_decay": {},
    "backoff": {"retry": {"policy": "backoff"}},
    "ordered": {"retry": {"policy": "ordered", "interval_seconds": 4}, "ordered": True},
    "unordered": {"retry": {"policy": "unordered"}},
}
BODIES = ["one", "two", "three", "four"]


class Scene:
    """One URL that refuses `one` twice, and a push that crashes somewhere on the way."""

    def __init__(self, policy: str, crash_at: int | None) -> None:
        self.world = World()
        alice = self.world.client("alice")
        self.topic = TestTopic(alice)
        self.web = self.topic.subscribe("web", "http", **POLICIES[policy])
        self.subscriber = self.world.subscriber()
        self.schedules = Schedules(self.world, sweeps=True)
        self._refusals = 2
        self.subscriber.answer = self._refuse
        self.accepted: dict[str, list[float]] = {}
        answer = self.world.endpoint

        def listen(url: str) -> str | None:
            error = answer(url)
            if error is None:
                taken = self.subscriber.taken[-1]
                self.accepted.setdefault(taken.text, []).append(taken.at_ms)
            return error

        self.world.endpoint = listen
        self.crashes = Crashes(self.world, "push", crash_at)

    def _refuse(self, delivery: Delivery) -> int | None:
        if delivery.text != "one" or not self._refusals:
            return 204
        self._refusals -= 1
        return None

    def play(self) -> None:
        self.topic.publish("one", "two")
        self.schedules.pass_seconds(2)
        self.topic.publish("three")
        self.topic.publish("four")
        self.schedules.pass_seconds(70)
        self.topic.publish("five")
        self.schedules.pass_seconds(STUCK_MS / 1000 + 60)

    def check_histories(self, at: int) -> None:
        """Of each message those posts are traced whose outcome was stored, each once."""
        for body, message_id in {(each.text, each.message_id) for each in self.subscriber.taken}:
            attempts = self.topic.trace(message_id)["web"]["attempts"]
            history = self.topic.history(message_id, "web")
            assert [each["number"] for each in history] == list(range(1, attempts + 1)), at
            times = [to_ms(each["at"]) for each in history]
            assert times == sorted({*times} & {*self.subscriber.times(body)}), at
            errors = [each.get("error") for each in history]
            assert errors == ["timeout"] * (attempts - 1) + [None], at


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("policy", "step"),
    [
        ("exponential_decay", 11),
        ("ordered", 23),
        ("unordered", 23),
        ("backoff", 23),
        *(pytest.param(policy, 1, marks=pytest.mark.long) for policy in POLICIES),
    ],
)
def test_a_crash_at_any_call_of_push_loses_nothing_and_delays_by_at_most_2_minutes(
    policy: str, step: int
) -> None:
    undisturbed = Scene(policy, None)
    undisturbed.play()
    latest = {body: times[0] for body, times in undisturbed.accepted.items()}
    calls = undisturbed.crashes.calls
    assert calls > 20
    for at in range(0, calls, step):
        scene = Scene(policy, at)
        scene.play()
        assert scene.crashes.crashed_ms is not None, at
        for body, due_ms in latest.items():
            assert body in scene.accepted, (at, body)
            late_ms = scene.accepted[body][0] - max(due_ms, scene.crashes.crashed_ms)
            assert late_ms <= STUCK_MS, (at, body, late_ms)
        # Only messages under way at the crash may be posted twice.
        assert sum(map(len, scene.accepted.values())) <= len(latest) + 16, at
        if policy in ("backoff", "ordered"):
            assert list(scene.accepted) == [*BODIES, "five"], at
        assert scene.web.show()["counts"]["active"] == 0, at
        assert scene.web.show()["state"] == "delivering", at
        scene.check_histories(at)
        scene.world.engine.close()


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.long)])
def test_a_crash_while_giving_up_leaves_one_dead_letter_and_loses_none(step: int) -> None:
    at = 0
    while True:
        world = World()
        alice = world.client("alice")
        topic = TestTopic(alice)
        web = topic.subscribe("web", "http", retry={"policy": "custom", "waits": [1]})
        subscriber, schedules = world.subscriber(), Schedules(world, sweeps=True)
        subscriber.down()
        sent = topic.publish("one", "two")
        crashes = Crashes(world, "push", at)
        schedules.pass_seconds(240)

        dead = TestQueue(alice, f"dlq-{web.id}").receive_all()
        assert sorted(each["id"] for each in dead) == [each["id"] for each in sent], at
        assert web.show()["counts"]["active"] == 0, at
        assert web.show()["dead_letter_queue"] == f"dlq-{web.id}", at
        assert [topic.trace(each["id"])["web"]["state"] for each in sent] == ["dead"] * 2, at
        world.engine.close()
        if crashes.crashed_ms is None:
            break
        at += step
    assert at > 15


class TestLostEvents:
    def test_a_message_of_a_lost_event_is_found_behind_a_finished_scan(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        topic.subscribe("web", "http")
        schedules = Schedules(world, sweeps=True)
        topic.publish("one")
        schedules.pass_seconds(300)  # a scan since the post finds nothing more
        topic.try_publish([{"body": "two"}])
        world.run_stream("fan_out")
        world.invoked.clear()
        schedules.pass_seconds(61)

        assert subscriber.bodies() == ["one", "two"]

    def test_an_idle_subscription_with_a_waiting_message_is_not_called_each_minute(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        failing_url(topic, subscriber, "one", retry={"policy": "custom", "waits": [3_600]})
        Schedules(world, sweeps=True).pass_seconds(300)
        world.clock.pass_seconds(60)
        world.run("sweep")

        assert not [role for role, _ in world.invoked if role.startswith("push")]

    def test_lost_executions_are_started_anew_with_another_generation(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        schedules = Schedules(world, sweeps=True)
        web = failing_url(topic, subscriber, "one")
        topic.publish("two")
        schedules.pass_seconds(30)
        schedules.kill()
        killed_ms = world.clock.now_ms()
        subscriber.up()
        schedules.pass_seconds(120)

        assert schedules.started == {web.id: 2}
        assert subscriber.bodies()[-2:] == ["one", "two"]
        assert subscriber.times("two")[0] - killed_ms <= STUCK_MS

    def test_an_unstarted_execution_is_started_by_the_sweep(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        class Refused(list[Any]):
            def append(self, given: Any) -> None:
                raise Crash

        web = topic.subscribe("web", "http")
        Crashes(world, "push")
        schedules = Schedules(world, sweeps=True)
        subscriber.down()
        world.executions = Refused()
        topic.publish("one")
        world.executions = []
        schedules.pass_seconds(120)

        assert schedules.started == {web.id: 1}
        assert len(subscriber.times("one")) > 1

    def test_the_sweep_leaves_working_urls_alone(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        topic.subscribe("well", "http", endpoint="http://127.0.0.1:9/well")
        sick = topic.subscribe("sick", "http")
        world.endpoint = lambda url: None if url.endswith("/well") else "timeout"
        schedules = Schedules(world, sweeps=True)
        topic.publish("one")
        schedules.pass_seconds(1_000)

        assert schedules.started == {sick.id: 1}
        assert len([1 for url, _, _ in world.posts if url.endswith("/well")]) == 1


def during_posts(world: World, call: Callable[[], object]) -> None:
    """Run something inside every post that is not itself inside one."""
    answer = world.endpoint
    inside: list[bool] = []

    def endpoint(url: str) -> str | None:
        error = answer(url)
        if not inside:
            inside.append(True)
            call()
            inside.pop()
        return error

    world.endpoint = endpoint


class TestOneAtATime:
    """Other work during a post is run from inside it."""

    @pytest.mark.writes_by_hand
    def test_a_posters_write_behind_its_lease_is_found_by_the_next(
        self,
        world: World,
        topic: TestTopic,
        subscriber: Subscriber,
        schedules: Schedules,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The next one has read the marks by then, and its look is still to come."""
        web = topic.subscribe("web", "http", retry={"policy": "custom", "waits": [1, 3, 3]})
        place = {"topic_id": topic.shown["id"], "subscription": "web", "id": web.id}
        execute, core = world.engine.execute, world.core
        late: list[DueMark] = []
        stored: list[Parcel] = []

        def write_down() -> None:
            """As the first one does, whose call of the store took so long."""
            (parcel,), now_ms = stored, core.now_ms()
            late.append(DueMark(parcel.sent_ms + 1_000, parcel.sort_key, 0, 0, "status 503"))
            put_mark(core, parcel, late[0])
            changes = {0: failed(parcel, 0, late[0].due_ms, b"", now_ms)}
            still = as_read(parcel, changes, "visible_ms", "receives")
            core.store.write(
                "UpdateItem", change(core.tables.messages, parcel_key(parcel), changes, still)
            )

        def behind_the_marks(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
            answer: dict[str, Any] = execute(operation, request)
            asked = request.get("ExpressionAttributeValues", {}).get(":pk", {}).get("S", "")
            of_parcel = asked == marks_key(web.id, stored[0].partition)
            if operation == "Query" and of_parcel and not late:
                write_down()
            return answer

        def another() -> None:
            subscriber.up()
            stored.extend(
                read_parcel(each) for each in world.items() if each["pk"]["S"].startswith("Q#")
            )
            world.clock.pass_seconds(40)  # its lease is over
            with monkeypatch.context() as patch:
                patch.setattr(world.engine, "execute", behind_the_marks)
                world.run("push_slow", {"deliver": place})

        subscriber.down()
        during_posts(world, another)
        topic.publish("x")
        assert late, "no mark was read"
        schedules.run_out()
        for _ in range(3):
            sweep(world, after_seconds=60)
        assert web.show()["counts"]["active"] == 0
        assert len(subscriber.times("x")) >= 2

    @pytest.mark.parametrize("by", ["an invocation", "an execution"])
    def test_a_poster_overtaken_between_its_read_and_its_lease_posts_nothing(
        self,
        world: World,
        topic: TestTopic,
        subscriber: Subscriber,
        schedules: Schedules,
        monkeypatch: pytest.MonkeyPatch,
        by: str,
    ) -> None:
        topic.subscribe("web", "http")
        overtaken: list[bool] = []

        def overtake(operation: str, request: Mapping[str, Any]) -> None:
            if operation == "UpdateItem" and "held_until" in str(request) and not overtaken:
                overtaken.append(True)
                (state,) = delivery_items.read_all(world.core)
                acquired = acquire(world.core, state, "push/another")
                overtaken[0] = acquired is not None and acquired.mine

        subscriber.down()
        if by == "an execution":
            topic.publish("x")
        posts = len(subscriber.deliveries)
        before_each_call(world, monkeypatch, overtake)
        if by == "an invocation":
            topic.publish("x")
        schedules.pass_seconds(20)  # the other one holds it for 30

        assert overtaken == [True]
        assert len(subscriber.deliveries) == posts

    @pytest.mark.parametrize("policy", ["backoff", "ordered"])
    def test_in_order_nobody_else_posts_while_one_does(
        self, world: World, topic: TestTopic, subscriber: Subscriber, policy: str
    ) -> None:
        web = topic.subscribe("web", "http", **POLICIES[policy])
        place = {"topic_id": topic.shown["id"], "subscription": "web", "id": web.id}
        depth: list[int] = []

        def another() -> None:
            before = len(subscriber.deliveries)
            world.run("push", {"deliver": place})
            depth.append(len(subscriber.deliveries) - before)

        during_posts(world, another)
        topic.publish(*BODIES)
        topic.publish("five")

        assert depth == [0] * 5
        assert subscriber.bodies() == [*BODIES, "five"]
        assert web.show()["counts"]["active"] == 0

    def test_side_by_side_no_message_is_posted_twice(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        web = topic.subscribe("web", "http")
        place = {"topic_id": topic.shown["id"], "subscription": "web", "id": web.id}
        during_posts(world, lambda: world.run("push", {"deliver": place}))
        for number in range(10):
            topic.try_publish([{"body": f"{number}.{n}"} for n in range(5)])
        world.settle()

        assert sorted(subscriber.bodies()) == sorted(set(subscriber.bodies()))
        assert len(subscriber.bodies()) == 50

    @pytest.mark.parametrize("policy", ["exponential_decay", "backoff", "ordered"])
    def test_while_one_retries_another_of_the_same_generation_waits(
        self,
        world: World,
        topic: TestTopic,
        subscriber: Subscriber,
        schedules: Schedules,
        policy: str,
    ) -> None:
        web = topic.subscribe("web", "http", **POLICIES[policy])
        subscriber.down("one")
        topic.publish("one")
        topic.publish("two")
        place = {"topic_id": topic.shown["id"], "subscription": "web", "id": web.id}
        given = {"retry": {**place, "generation": 1, "rounds": 0, "due_ms": 0}}
        answers: list[dict[str, Any]] = []
        counts: list[int] = []

        def another() -> None:
            before = len(subscriber.deliveries)
            answers.append(world.run("push", given))
            world.run("push", {"deliver": place})
            counts.append(len(subscriber.deliveries) - before)

        during_posts(world, another)
        schedules.run(lambda: len(subscriber.times("one")) == 3, None)

        assert counts == [0] * len(counts)
        assert len(counts) >= 2
        assert {answer["action"] for answer in answers} == {"wait"}
        assert web.show()["state"] == "retrying"

    def test_an_old_generation_does_nothing(
        self, world: World, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = failing_url(topic, subscriber, "one")
        schedules.pass_seconds(1)
        world.clock.pass_seconds(500)
        place = {"topic_id": topic.shown["id"], "subscription": "web", "id": web.id}
        before = len(subscriber.deliveries)
        given = {"retry": {**place, "generation": 0, "rounds": 3, "due_ms": 0}}
        assert world.run("push", given) == {"action": "done"}

        assert len(subscriber.deliveries) == before


class TestLateFanOut:
    """The stream's shards advance independently: one may lag behind for hours."""

    def test_a_message_fanned_out_late_is_delivered_though_newer_ones_were_long_before(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        topic.subscribe("web", "http")
        run = world.run
        held: list[Any] = []
        fan_out = world._names["fan_out"]
        feed = world._run_function

        def lag(name: str, event: Any) -> Any:
            if name == fan_out and not held:
                held.append(event)
                return None
            return feed(name, event)

        for pump in world._pumps:
            pump._run = lag
        topic.publish("late")
        for number in range(60):
            topic.publish(str(number))
        world.clock.pass_seconds(100)
        topic.publish("newest")
        assert len(subscriber.bodies()) == 61
        run("fan_out", held[0])
        world.settle()

        assert subscriber.bodies()[-1] == "late"
