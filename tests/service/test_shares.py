"""An account's share of what posts to slow URLs, and of what calls functions."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.service.topics import Schedules, TestTopic, hold_to_be_fast

from cirrusmq.access import running, shares
from cirrusmq_local.stack.recovery import release_posts
from cirrusmq_local.testing import Client, Subscriber, World

BOUND = 2


@pytest.fixture
def world() -> World:
    made = World()
    settings = replace(made.core.settings, account_slow_pushes=BOUND, account_workers=BOUND)
    made.core = replace(made.core, settings=settings)
    return made


@pytest.fixture
def subscriber(world: World) -> Subscriber:
    return world.subscriber()


@pytest.fixture
def topic(world: World) -> TestTopic:
    return TestTopic(world.client("alice"))


def fill(world: World, account: str, name: str, seconds: int = 60) -> None:
    """Have as much run for an account as may."""
    end = world.clock.now_ms() // 1_000 + seconds
    running.add(world.core, account, name, end, BOUND)


def counts(world: World) -> list[tuple[str, int]]:
    """What is counted as running now."""
    now_ms = world.clock.now_ms()
    return [
        (item["sk"]["S"], sum(counted.values()))
        for item in world.items("usage")
        if item["pk"]["S"].startswith("T#")
        for counted in [{k: int(v["N"]) for k, v in item.items() if k.isdigit()}]
        if running.present({int(k): v for k, v in counted.items()}, now_ms)
    ]


def url(topic: TestTopic, name: str = "web", **fields: Any) -> None:
    topic.subscribe(name, "http", endpoint=f"http://127.0.0.1:9/{name}", **fields)


def counted_by_who_goes_on(world: World, role: str, kind: str) -> list[list[tuple[str, int]]]:
    """What is counted whenever an invocation starts another one to go on, from now on."""
    counted: list[list[tuple[str, int]]] = []
    invoke = world.core.invoke

    def noted(to: str, event: dict[str, Any]) -> None:
        if to == role and event[kind]["hops"]:
            counted.append(counts(world))
        invoke(to, event)

    world.core = replace(world.core, invoke=noted)
    return counted


class TestPosting:
    def test_above_the_share_an_invocation_ends_and_the_sweep_finds_the_message(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        url(topic)
        fill(world, "alice", "posting")
        topic.publish("one")
        assert subscriber.bodies("web") == []
        Schedules(world, sweeps=True).pass_seconds(130)
        assert subscriber.bodies("web") == ["one"]
        assert counts(world) == []

    def test_another_account_has_its_own(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        url(topic)
        fill(world, "bob", "posting")
        topic.publish("one")
        assert subscriber.bodies("web") == ["one"]

    def test_of_an_invocation_for_two_accounts_each_is_admitted_by_itself(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        bob = TestTopic(world.client("bob"), "others")
        url(topic)
        url(bob, "bobs")
        fill(world, "bob", "posting")
        for each in (topic, bob):
            each.try_publish([{"body": "x"}])
        world.run_stream("fan_out")
        (_, event) = world.invoked.popleft()
        world.run("push_slow", event)
        assert (subscriber.bodies("web"), subscriber.bodies("bobs")) == (["x"], [])

    def test_an_execution_comes_back_by_itself(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        url(topic, retry={"policy": "backoff"})
        subscriber.down()
        topic.publish("one")
        subscriber.up()
        fill(world, "alice", "posting", 30)
        begun_ms = world.clock.now_ms()
        Schedules(world).pass_seconds(100)  # without a sweep
        assert subscriber.bodies("web") == ["one", "one"]
        assert 30 <= (subscriber.times("one", "web")[1] - begun_ms) / 1_000 <= 30 + 42

    def test_executions_that_wait_do_not_pile_up(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        """The sweep takes one that is overdue for lost, and starts another."""
        url(topic, retry={"policy": "backoff"})
        subscriber.down()
        topic.publish("one")
        subscriber.up()
        fill(world, "alice", "posting", 900)
        schedules = Schedules(world, sweeps=True)
        schedules.pass_seconds(890)
        assert len(schedules.running) <= 2
        schedules.pass_seconds(60)
        assert subscriber.bodies("web") == ["one", "one"]

    def test_who_goes_on_is_not_one_above_the_share(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        """20 posts of 14 s, one after the other, are more than an invocation has time for."""
        counted = counted_by_who_goes_on(world, "push_slow", "deliver")
        url(topic, max_in_flight=1)
        world.endpoint = lambda url: world.clock.pass_seconds(14)
        for _ in range(2):
            topic.try_publish([{"body": "x"}] * 10)
        world.settle()
        assert len(world.posts) == 20
        assert counted == [[], []]

    def test_a_confirmation_is_posted_later(self, world: World, topic: TestTopic) -> None:
        settings = replace(world.core.settings, confirm_endpoints=True)
        world.core = replace(world.core, settings=settings)
        fill(world, "alice", "posting", 20)
        url(topic)
        world.settle()
        assert world.posts == []
        Schedules(world).pass_seconds(40)
        assert len(world.posts) == 1

    def test_an_invocation_that_dies_is_counted_to_its_end_and_no_longer(
        self, world: World
    ) -> None:
        died = [shares.posting(world.core, "alice", 120_000) for _ in range(BOUND)]
        assert all(each.__enter__() for each in died)

        def admitted() -> bool:
            with shares.posting(world.core, "alice", 120_000) as may:
                return may

        assert not admitted()
        world.clock.pass_seconds(121)
        assert admitted()

    def test_what_a_killed_stack_had_running_is_forgotten_when_it_starts_again(
        self, world: World, topic: TestTopic
    ) -> None:
        url(topic)
        for account in ("alice", "local"):
            fill(world, account, "posting")
            fill(world, account, "calling", 900)
        release_posts(world.core, "local")
        assert counts(world) == []

    def test_a_count_that_fails_turns_nobody_away(
        self,
        world: World,
        topic: TestTopic,
        subscriber: Subscriber,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(running, "_update", lambda *_: None)
        url(topic)
        topic.publish("one")
        assert subscriber.bodies("web") == ["one"]

    def test_it_costs_two_units_an_invocation(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        url(topic)
        topic.try_publish([{"body": "x"}])
        world.run_stream("fan_out")
        world.run(*world.invoked.popleft())
        assert world.units(lambda: world.run(*world.invoked.popleft()))[0] == 3 + 2


class TestCalling:
    @pytest.fixture
    def alice(self, world: World) -> Client:
        alice = world.client("alice", admin=True)
        alice.put("/queues/orders", {"invoke": {"function": "handler"}})
        return alice

    def test_above_the_share_a_worker_ends_and_the_sweep_finds_the_message(
        self, world: World, alice: Client
    ) -> None:
        fill(world, "alice", "calling")
        alice.send("orders", "one")
        world.settle()
        assert world.batches == []
        Schedules(world, sweeps=True).pass_seconds(130)
        assert [[each["body"] for each in batch] for batch in world.batches] == [["one"]]
        assert counts(world) == []

    def test_a_worker_counts_while_its_function_runs(self, world: World, alice: Client) -> None:
        seen: list[list[tuple[str, int]]] = []
        world.handle = lambda event: seen.append(counts(world))
        alice.send("orders", "one")
        world.settle()
        assert seen == [[("calling", 1)]]

    def test_who_goes_on_is_not_one_above_the_share(self, world: World, alice: Client) -> None:
        counted = counted_by_who_goes_on(world, "call", "invoke")
        invoke_one = {"function": "handler", "batch": 1, "max_concurrency": 1}
        alice.put("/queues/slow", {"invoke": {**invoke_one, "timeout_seconds": 600}})
        world.handle = lambda event: world.clock.pass_seconds(500)
        for _ in range(2):
            alice.send("slow", "x")
        world.settle()
        assert len(world.batches) == 2
        assert counted
        assert not any(counted)


class TestManySlow:
    def become_slow(self, world: World, count: int) -> None:
        slow = TestTopic(world.client("alice"), "slow")
        for number in range(count):
            url(slow, f"web{number:02d}")
        hold_to_be_fast(world)
        world.endpoint = lambda url: world.clock.pass_seconds(14)
        slow.publish("slow")
        world.endpoint = lambda url: None

    def passed_on(self, world: World, topic: TestTopic) -> bool:
        """Whether push passes a message on whose subscription has been fast until now."""
        hold_to_be_fast(world)
        world.invoked.clear()
        topic.try_publish([{"body": "x"}])
        world.run_stream("fan_out")
        world.run(*world.invoked.popleft())
        return [role for role, _ in world.invoked] == ["push_slow"]

    @pytest.mark.parametrize(("count", "all_slow"), [(24, False), (25, True)])
    def test_after_25_in_an_hour_all_of_the_account_is_slow(
        self, world: World, topic: TestTopic, count: int, all_slow: bool
    ) -> None:
        bobs = TestTopic(world.client("bob"), "others")
        for each in (topic, bobs):
            url(each, "quick")
        assert not self.passed_on(world, topic)
        self.become_slow(world, count)
        world.clock.pass_seconds(61)
        assert self.passed_on(world, topic) is all_slow
        assert not self.passed_on(world, bobs)
        world.clock.pass_seconds(shares.HOUR_SECONDS + 300)
        assert not self.passed_on(world, topic)
