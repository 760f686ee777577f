"""An account's share of what posts to slow URLs, and of what calls functions."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from msgspec.structs import replace
from tests.service.topics import Schedules, TestTopic, hold_to_be_fast

from cirrusmq.access import running, shares
from cirrusmq.base.errors import Unavailable
from cirrusmq_local.stack.recovery import release_posts
from cirrusmq_local.testing import Client, Subscriber, World

POOL = 8
"""Invocations that run at once."""
QUARTER, ALONE = 2, 6
"""Those of an account: beside another one, and alone."""


@pytest.fixture
def world() -> World:
    made = World()
    settings = replace(made.core.settings, slow_pushes=POOL, workers=POOL)
    made.core = replace(made.core, settings=settings)
    return made


def fill(world: World, account: str, pool: str, seconds: int = 60, count: int = ALONE) -> None:
    """Have as much run for an account as may while it is alone, or this many."""
    end = world.clock.now_ms() // 1_000 + seconds
    running.add(world.core, running.pool_key(pool, account), end, count)


def counts(world: World) -> list[tuple[str, int]]:
    """What is counted as running now, by pool."""
    now_ms = world.clock.now_ms()
    return [
        (item["pk"]["S"].removeprefix("T#*"), sum(counted.values()))
        for item in world.items("usage")
        if item["pk"]["S"].startswith("T#*")
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


def running_now(world: World, count: int) -> contextlib.ExitStack:
    """As many invocations of alice's, which all are admitted."""
    held = contextlib.ExitStack()
    for _ in range(count):
        assert held.enter_context(shares.posting(world.core, "alice", 60_000)).admitted
    return held


def admitted(world: World, account: str = "alice") -> bool:
    """Whether one more invocation is."""
    with shares.posting(world.core, account, 60_000) as share:
        return share.admitted


class TestAlone:
    """An account has three quarters while no other one has anything at work, and a quarter else."""

    def test_it_has_all_but_a_quarter(self, world: World) -> None:
        with running_now(world, ALONE):
            assert not admitted(world)
        assert counts(world) == []

    def test_beside_another_account_it_has_a_quarter(self, world: World) -> None:
        fill(world, "bob", "posting", count=1)
        with running_now(world, QUARTER):
            assert not admitted(world)

    def test_the_next_account_finds_a_quarter_free(self, world: World) -> None:
        with running_now(world, ALONE), contextlib.ExitStack() as of_bob:
            for _ in range(POOL - ALONE):
                assert of_bob.enter_context(shares.posting(world.core, "bob", 60_000)).admitted
            assert not admitted(world, "bob")
            total = sum(count for _, count in counts(world))
        assert total == POOL

    def test_another_accounts_earlier_work_does_not_count(self, world: World) -> None:
        fill(world, "bob", "posting", seconds=30)
        world.clock.pass_seconds(31)
        with running_now(world, ALONE):
            pass

    def test_the_two_pools_are_apart(self, world: World) -> None:
        fill(world, "bob", "calling")
        with running_now(world, ALONE):
            pass

    def test_one_above_the_quarter_gives_way_until_the_account_is_down_to_it(
        self, world: World
    ) -> None:
        held = [shares.posting(world.core, "alice", 60_000) for _ in range(ALONE)]
        given = [each.__enter__() for each in held]
        assert all(each.may_go_on() for each in given)
        fill(world, "bob", "posting", count=1)
        world.clock.pass_seconds(shares.LOOK_MS / 1_000)
        assert [each.may_go_on() for each in given] == [True] * QUARTER + [False] * 4
        for each in held[:4]:
            each.__exit__(None, None, None)
        world.clock.pass_seconds(shares.LOOK_MS / 1_000)
        assert [each.may_go_on() for each in given[4:]] == [True] * 2

    def test_with_many_accounts_in_an_hour_each_keeps_to_its_quarter(self, world: World) -> None:
        for number in range(shares.MAX_ACCOUNTS):
            fill(world, f"account{number:03d}", "posting", seconds=1)
        world.clock.pass_seconds(2)
        with running_now(world, QUARTER):
            assert not admitted(world)

    def test_a_failed_look_leaves_it_a_quarter(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise Unavailable

        monkeypatch.setattr(running, "read_pool", fail)
        with running_now(world, QUARTER):
            assert not admitted(world)

    def test_looking_costs_half_a_unit_a_second_and_nothing_within_the_quarter(
        self, world: World
    ) -> None:
        with running_now(world, QUARTER) as held:
            assert world.units(lambda: admitted(world)) == (2, 0.5)
            above = held.enter_context(shares.posting(world.core, "alice", 60_000))
            assert world.units(above.may_go_on) == (0, 0)
            world.clock.pass_seconds(shares.LOOK_MS / 1_000)
            assert world.units(above.may_go_on) == (0, 0.5)


class TestGivingWay:
    """An invocation above the quarter ends with the post or the call during which another comes."""

    def bob_comes(self, world: World, pool: str) -> None:
        world.clock.pass_seconds(14)
        fill(world, "bob", pool, seconds=30, count=1)

    def test_posts(self, world: World, topic: TestTopic) -> None:
        url(topic, max_in_flight=1)
        fill(world, "alice", "posting", count=QUARTER)
        world.endpoint = lambda url: self.bob_comes(world, "posting")
        topic.try_publish([{"body": str(number)} for number in range(5)])
        world.settle()
        assert len(world.posts) == 1
        world.endpoint = lambda url: None
        Schedules(world, sweeps=True).pass_seconds(200)
        assert len({body for _, _, body in world.posts}) == len(world.posts) == 5

    def test_rounds_of_an_execution(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        url(topic, max_in_flight=1, retry={"policy": "backoff"})
        subscriber.down()
        topic.try_publish([{"body": "x"}] * 3)
        world.settle()
        subscriber.up()
        before = len(world.posts)
        fill(world, "alice", "posting", 40, count=QUARTER)
        world.endpoint = lambda url: self.bob_comes(world, "posting")
        ((_, state),) = world.executions
        world.clock.pass_seconds(state["wait_seconds"] + 2)
        state = world.run("push_slow", state)
        assert (len(world.posts), state["action"]) == (before + 1, "again")
        state = world.run("push_slow", state)
        assert (len(world.posts), state["action"]) == (before + 1, "wait")

    def test_calls(self, world: World) -> None:
        alice = world.client("alice", admin=True)
        one = {"function": "handler", "batch": 1, "max_concurrency": 1}
        alice.put("/queues/orders", {"invoke": one})
        fill(world, "alice", "calling", count=QUARTER)
        world.handle = lambda event: self.bob_comes(world, "calling")
        for number in range(5):
            alice.send("orders", str(number))
        world.settle()
        assert len(world.batches) == 1
        world.handle = lambda event: None
        Schedules(world, sweeps=True).pass_seconds(200)
        assert sorted(each["body"] for batch in world.batches for each in batch) == list("01234")


def fail_once(topic: TestTopic, subscriber: Subscriber) -> None:
    """Publish a message that its URL refuses, and would take at its retry."""
    url(topic, retry={"policy": "backoff"})
    subscriber.down()
    topic.publish("one")
    subscriber.up()


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
        fail_once(topic, subscriber)
        fill(world, "alice", "posting", 30)
        begun_ms = world.clock.now_ms()
        Schedules(world).pass_seconds(100)  # without a sweep
        assert subscriber.bodies("web") == ["one", "one"]
        assert 30 <= (subscriber.times("one", "web")[1] - begun_ms) / 1_000 <= 30 + 42

    def test_waiting_executions_do_not_pile_up(
        self, world: World, topic: TestTopic, subscriber: Subscriber
    ) -> None:
        """The sweep takes one that is overdue for lost, and starts another."""
        fail_once(topic, subscriber)
        fill(world, "alice", "posting", 900)
        schedules = Schedules(world, sweeps=True)
        schedules.pass_seconds(890)
        assert len(schedules.running) <= 2
        schedules.pass_seconds(60)
        assert subscriber.bodies("web") == ["one", "one"]

    def test_a_successor_is_not_one_above_the_share(
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

    def test_a_dead_invocation_is_counted_to_its_end_and_no_longer(self, world: World) -> None:
        died = [shares.posting(world.core, "alice", 120_000) for _ in range(ALONE)]
        assert all(each.__enter__().admitted for each in died)

        assert not admitted(world)
        world.clock.pass_seconds(121)
        assert admitted(world)

    def test_work_of_a_killed_stack_is_forgotten_when_it_starts_again(
        self, world: World, topic: TestTopic
    ) -> None:
        url(topic)
        for account in ("alice", "local"):
            fill(world, account, "posting")
            fill(world, account, "calling", 900)
        release_posts(world.core, "local")
        assert counts(world) == []

    def test_a_failed_count_turns_nobody_away(
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

    def test_a_successor_is_not_one_above_the_share(self, world: World, alice: Client) -> None:
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
