"""Subscriptions whose URLs are slow, or new: `push_slow` posts to them, `push` to all others."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.service.topics import Schedules, TestTopic, hold_to_be_fast

from cirrusmq.push.shared_invocation import RUN_MS
from cirrusmq_local.testing import Client, Subscriber, World

SLOW_SECONDS = 14.0


class Runs:
    """Notes the runs of functions: how often, and how long each took."""

    def __init__(self, world: World) -> None:
        self.seconds: dict[str, list[float]] = {}
        self._run = world._run_function
        self._roles = {name: role for role, name in world._names.items()}
        self._clock = world.clock
        world._run_function = self._noted  # type: ignore[method-assign]

    def _noted(self, name: str, event: Any, chain: tuple[str, ...] = ()) -> Any:
        begun_ms = self._clock.now_ms()
        try:
            return self._run(name, event, chain)
        finally:
            took = (self._clock.now_ms() - begun_ms) / 1_000
            self.seconds.setdefault(self._roles[name], []).append(took)

    def of(self, call: Any) -> Counter[str]:
        """How often functions run by a call: those that post alone."""
        self.seconds.clear()
        call()
        return Counter({name: len(self.seconds.get(name, [])) for name in ("push", "push_slow")})


@pytest.fixture
def runs(world: World) -> Runs:
    return Runs(world)


def answer_after(world: World, seconds: float) -> None:
    """Have all URLs answer after so long."""
    world.endpoint = lambda url: world.clock.pass_seconds(seconds)


def subscribe(topic: TestTopic, *names: str, **fields: Any) -> None:
    for name in names:
        topic.subscribe(name, "http", endpoint=f"http://127.0.0.1:9/{name}", **fields)


def events(world: World, role: str) -> list[dict[str, Any]]:
    return [event for invoked, event in world.invoked if invoked == role]


def pass_on(world: World, topic: TestTopic, *bodies: str) -> tuple[float, float]:
    """Publish, and let push do its part: the units of that."""
    world.clock.pass_seconds(0.001)
    assert topic.try_publish([{"body": body} for body in bodies]).status == 201
    world.run_stream("fan_out")
    return world.units(lambda: world.run(*world.invoked.popleft()))


class TestNew:
    def test_a_new_one_is_slow_until_its_first_post_took_no_second(
        self, topic: TestTopic, subscriber: Subscriber, runs: Runs
    ) -> None:
        subscribe(topic, "web")
        assert runs.of(lambda: topic.publish("one")) == {"push": 1, "push_slow": 1}
        assert runs.of(lambda: topic.publish("two")) == {"push": 1, "push_slow": 0}
        assert subscriber.bodies("web") == ["one", "two"]

    def test_a_new_slow_one_is_never_posted_to_by_push(
        self, world: World, topic: TestTopic, runs: Runs
    ) -> None:
        """URLs that answer after 14 s, one after the other here: push has no post of them."""
        subscribe(topic, *(f"web{number}" for number in range(6)), max_in_flight=1)
        answer_after(world, SLOW_SECONDS)
        schedules = Schedules(world, sweeps=True)
        for number in range(12):
            topic.publish(str(number))
        schedules.pass_seconds(300)
        assert len(world.posts) == 6 * 12
        assert max(runs.seconds["push"]) == 0
        assert max(runs.seconds["push_slow"]) > SLOW_SECONDS

    def test_another_accounts_delivery_waits_for_none_of_them(
        self, world: World, topic: TestTopic
    ) -> None:
        """60 new URLs that never answer in time, 12 messages; of push_slow nothing has run yet."""
        others = TestTopic(world.client("bob"), "others")
        subscribe(others, "quick")
        hold_to_be_fast(world)
        subscribe(topic, *(f"web{number:02d}" for number in range(60)), max_in_flight=1)
        begun_ms = world.clock.now_ms()
        for number in range(12):
            topic.try_publish([{"body": str(number)}])
        others.try_publish([{"body": "x"}])
        world.run_stream("fan_out")
        waiting = [event for role, event in world.invoked if role == "push"]
        world.invoked.clear()
        for event in waiting:
            world.run("push", event)
        assert [url.rpartition("/")[2] for url, _, _ in world.posts] == ["quick"]
        assert world.clock.now_ms() == begun_ms
        assert {role for role, _ in world.invoked} == {"push_slow"}

    def test_those_of_an_account_share_an_invocation_of_push_slow(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        names = [f"web{number:02d}" for number in range(20)]
        subscribe(topic, *names)
        assert pass_on(world, topic, "one") == (20, 0)  # a refused write each
        (event,) = events(world, "push_slow")
        told = [each["subscription"] for each in (event["deliver"], *event["others"])]
        assert sorted(told) == names
        world.settle()
        assert all(subscriber.bodies(name) == ["one"] for name in names)

    def test_accounts_share_none(self, world: World, alice: Client, subscriber: Subscriber) -> None:
        bob = TestTopic(world.client("bob"), "others")
        mine = TestTopic(alice)
        subscribe(mine, "web1", "web2")
        subscribe(bob, "web3", "web4")
        for topic in (mine, bob):
            topic.try_publish([{"body": "x"}])
        world.run_stream("fan_out")
        (event,) = events(world, "push")
        assert len(event["others"]) == 3
        world.run(*world.invoked.popleft())
        found = [
            sorted(each["subscription"] for each in (told["deliver"], *told["others"]))
            for told in events(world, "push_slow")
        ]
        assert sorted(found) == [["web1", "web2"], ["web3", "web4"]]


class TestSlow:
    @pytest.fixture(autouse=True)
    def fast_until_now(self, world: World, topic: TestTopic) -> None:
        subscribe(topic, "web", max_in_flight=1)
        hold_to_be_fast(world)

    def test_a_post_of_a_second_makes_it_slow_for_ten_minutes(
        self, world: World, topic: TestTopic, runs: Runs
    ) -> None:
        answer_after(world, 1.0)
        assert runs.of(lambda: topic.publish("in time")) == {"push": 1, "push_slow": 0}
        answer_after(world, 1.001)
        assert runs.of(lambda: topic.publish("slow")) == {"push": 1, "push_slow": 0}
        answer_after(world, 0.0)
        assert runs.of(lambda: topic.publish("in time")) == {"push": 1, "push_slow": 1}
        world.clock.pass_seconds(590)
        assert runs.of(lambda: topic.publish("in time")) == {"push": 1, "push_slow": 1}
        world.clock.pass_seconds(10)
        assert runs.of(lambda: topic.publish("in time")) == {"push": 1, "push_slow": 0}
        assert len(world.posts) == 5

    def test_the_next_time_it_is_slow_for_twice_as_long(
        self, world: World, topic: TestTopic, runs: Runs
    ) -> None:
        answer_after(world, 2)
        topic.publish("slow")
        world.clock.pass_seconds(600)
        topic.publish("slow again")
        answer_after(world, 0)
        world.clock.pass_seconds(1_190)
        assert runs.of(lambda: topic.publish("in time"))["push_slow"] == 1
        world.clock.pass_seconds(10)
        assert runs.of(lambda: topic.publish("in time"))["push_slow"] == 0

    def test_push_holds_on_for_one_post_and_leaves_the_rest(
        self, world: World, topic: TestTopic, runs: Runs
    ) -> None:
        """It was fast, and answers nothing at once any more."""
        answer_after(world, SLOW_SECONDS)
        topic.publish(*"abcdefgh")
        assert runs.seconds["push"] == [SLOW_SECONDS]
        assert len(world.posts) == 8
        assert sum(runs.seconds["push_slow"]) == 7 * SLOW_SECONDS
        assert max(runs.seconds["push_slow"]) <= RUN_MS / 1_000

    def test_it_costs_a_unit_more_and_a_fast_one_none(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        pass_on(world, topic, "warm")
        assert pass_on(world, topic, "fast") == (3, 1)
        answer_after(world, 2)
        assert pass_on(world, topic, "slow") == (3, 1)
        assert pass_on(world, topic, "passed on") == (1, 0)  # a refused write
        (event,) = events(world, "push_slow")
        world.invoked.clear()
        assert pass_on(world, topic, "passed on") == (0, 1)  # the environment reads first now
        assert world.units(lambda: world.run("push_slow", event))[0] == 3

    def test_a_message_passed_on_is_delayed_once(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        answer_after(world, 2)
        topic.publish("slow")
        subscriber = world.subscriber()
        begun_ms = world.clock.now_ms()
        schedules = Schedules(world)
        topic.publish("later", delay_seconds=60)
        schedules.pass_seconds(62)
        (at_ms,) = subscriber.times("later", "web")
        assert 60_000 <= at_ms - begun_ms <= 61_000

    def test_a_lost_invocation_of_push_slow_is_found_by_the_sweep(
        self, world: World, topic: TestTopic, runs: Runs
    ) -> None:
        answer_after(world, 2)
        topic.publish("slow")
        pass_on(world, topic, "lost")
        world.run_stream("meter")
        world.invoked.clear()
        world.clock.pass_seconds(130)
        world.run("sweep")
        assert [role for role, _ in world.invoked] == ["push_slow"]
        world.settle()
        assert len(world.posts) == 2

    def test_a_paused_one_is_not_passed_on(
        self, world: World, topic: TestTopic, runs: Runs
    ) -> None:
        answer_after(world, 2)
        topic.publish("slow")
        path = f"{topic.path}/subscriptions/web"
        assert topic.client.post(f"{path}/pause").status == 200
        assert runs.of(lambda: topic.publish("waits"))["push_slow"] == 0
        assert topic.client.post(f"{path}/resume").status == 200
        assert runs.of(world.settle)["push_slow"] == 1
        assert len(world.posts) == 2

    def test_executions_of_the_release_before_invoke_push_and_all_is_delivered(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        subscriber.down()
        topic.publish("one")
        ((_, state),) = world.executions
        subscriber.up()
        while state["action"] in ("wait", "again"):
            world.clock.pass_seconds(state["wait_seconds"])
            state = world.run("push", state)
        assert subscriber.bodies("web") == ["one", "one"]


def test_a_confirmation_is_posted_by_push_slow(world: World, runs: Runs) -> None:
    event = {"confirm": {"topic_id": "T", "subscription": "web", "token": "x", "expires_ms": 0}}
    world.run("push", event)  # as the release before invokes it
    assert events(world, "push_slow") == [event]
    world.settle()
    assert runs.seconds["push_slow"] == [0]
