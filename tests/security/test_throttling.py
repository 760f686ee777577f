"""An account that calls too often is told to wait, and other accounts do not notice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from statistics import mean
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st
from tests.security.contract import CALLS, names_for, set_stage
from tests.stack import Stack, Start

from cirrusmq.access.rate_limit import admit
from cirrusmq.access.throttle import Throttle, fair_share, next_interval
from cirrusmq.base.errors import Throttled, Unavailable
from cirrusmq.runtime.core import Settings
from cirrusmq.storage.sizes import UNIT_BYTES, item_bytes
from cirrusmq_local.engine import EngineError
from cirrusmq_local.testing import Client, World

SEND = {"messages": [{"body": "x"}]}


def limited(world: World, rate: int) -> World:
    """The world as its deployment has it that gives each account this rate."""
    settings = msgspec.structs.replace(world.core.settings, account_requests_per_second=rate)
    world.core = msgspec.structs.replace(world.core, settings=settings, memories={})
    return world


@pytest.fixture
def world() -> World:
    return limited(World(), 5)


def statuses(client: Client, calls: int) -> Counter[int]:
    return Counter(client.get("/queues").status for _ in range(calls))


def counters(world: World) -> list[dict[str, Any]]:
    counted = [item for item in world.items("usage") if item["pk"]["S"].startswith("T#")]
    return [item for item in counted if not item["pk"]["S"].startswith("T#key#")]


class TestOneEnvironment:
    def test_calls_over_the_rate_are_refused_until_the_next_second(self, world: World) -> None:
        alice = world.client("alice")
        for _ in range(4):
            assert statuses(alice, 12) == {200: 5, 429: 7}
            world.clock.pass_seconds(1)

    def test_the_answer_says_when_to_come_again(self, world: World) -> None:
        alice = world.client("alice")
        statuses(alice, 5)

        refused = alice.get("/queues")

        assert (refused.status, refused.code) == (429, "Throttled")
        assert refused.headers["Retry-After"] == "1"
        assert refused.headers["Content-Type"] == "application/problem+json"
        assert "5 calls a second" in refused.json["detail"]

    def test_other_accounts_are_not_concerned(self, world: World) -> None:
        alice, bob = world.client("alice"), world.client("bob")

        assert statuses(alice, 50)[429] == 45
        assert statuses(bob, 5) == {200: 5}

    def test_all_keys_of_an_account_share_its_rate(self, world: World) -> None:
        first, second = world.client("alice"), world.client("alice")

        assert statuses(first, 5) == {200: 5}
        assert statuses(second, 5) == {429: 5}

    def test_calls_with_wrong_keys_use_up_nobodys_rate(self, world: World) -> None:
        alice = world.client("alice")
        key = alice.authorization.partition(":")[0]

        assert statuses(alice, 1) == {200: 1}
        assert statuses(Client(world, f"{key}:wrong"), 30) == {401: 30}
        assert statuses(alice, 4) == {200: 4}

    @pytest.mark.parametrize("call", [c for c in CALLS if c.needs_key], ids=str)
    def test_every_call_is_counted_and_a_refused_one_changes_nothing(self, call: Any) -> None:
        stage = set_stage()
        limited(stage.world, 1)
        assert stage.owner.get("/queues").status == 200
        before = stage.everything()

        reply = stage.make(stage.owner, call, names_for(stage, call))

        assert (reply.status, reply.code) == (429, "Throttled")
        assert "429" in call.described["responses"]
        assert stage.everything() == before

    def test_calls_without_a_key_are_not_counted(self, world: World) -> None:
        nobody = Client(world, "")
        assert Counter(nobody.get("/health").status for _ in range(50)) == {200: 50}


class TestCopies:
    """A publish counts a call for ten copies, which later calls wait for."""

    @staticmethod
    def publisher(world: World, subscriptions: int) -> Client:
        alice = world.client("alice")
        limited(world, 1_000)
        alice.put("/topics/news")
        for number in range(subscriptions):
            alice.put(f"/topics/news/subscriptions/sub{number}", {"protocol": "pull"})
        limited(world, 5)
        return alice

    def test_a_publish_with_few_copies_is_one_call(self, world: World) -> None:
        alice = self.publisher(world, 9)
        assert alice.post("/topics/news/messages", SEND).status == 201
        assert statuses(alice, 5) == {200: 4, 429: 1}

    def test_its_copies_are_worked_off_by_the_rate(self, world: World) -> None:
        """100 copies: 10 calls, of which 4 fit into the same second, 5 into the next one.

        An environment's share follows what it told of the second before, so it is a call less.
        """
        alice = self.publisher(world, 50)
        reply = alice.post("/topics/news/messages", {"messages": [{"body": "x"}] * 2})
        assert reply.status == 201  # it is stored: only what follows waits
        passed = []
        for _ in range(4):
            passed.append(statuses(alice, 20)[200])
            world.clock.pass_seconds(1)
        assert passed[:2] == [0, 0]
        assert passed[2] in (3, 4)
        assert passed[3] in (4, 5)

    def test_a_pause_works_it_off_as_well(self, world: World) -> None:
        alice = self.publisher(world, 50)
        alice.post("/topics/news/messages", {"messages": [{"body": "x"}] * 2})
        world.clock.pass_seconds(30)
        assert statuses(alice, 20) == {200: 5, 429: 15}

    def test_a_publish_by_a_grant_counts_for_the_publisher(self, world: World) -> None:
        alice, bob = self.publisher(world, 50), world.client("bob")
        limited(world, 1_000)
        assert alice.put("/topics/news/grants/bob", {"permission": "publish"}).status == 200
        limited(world, 5)
        assert bob.post("/topics/alice:news/messages", SEND).status == 201
        assert statuses(bob, 5) == {429: 5}
        assert statuses(alice, 5) == {200: 5}

    def test_a_half_message_counts_when_it_is_committed(self, world: World) -> None:
        alice = self.publisher(world, 50)
        half = alice.post("/topics/news/messages", {**SEND, "transaction": {}}).json
        assert statuses(alice, 1) == {200: 1}
        handle = {"handle": half["transaction"]["handle"]}
        assert alice.post("/topics/news/half/commit", handle).status == 200
        assert statuses(alice, 5) == {429: 5}

    def test_other_environments_bear_it_too(self) -> None:
        """What is owed is in the count that an environment reports."""
        throttle = Throttle()
        throttle.turn("alice", 10, 100, lambda: 0.0)
        throttle.take("alice")
        throttle.owe("alice", 500, 6_000)
        ended = throttle.turn("alice", 11, 100, lambda: 0.0)
        assert ended is not None
        assert ended.calls == 501

    def test_a_debt_has_an_end(self) -> None:
        throttle = Throttle()
        throttle.turn("alice", 10, 100, lambda: 0.0)
        throttle.owe("alice", 1_000_000, 6_000)
        throttle.turn("alice", 10 + 61, 100, lambda: 0.0)
        assert throttle.take("alice")


class TestWrongKeys:
    """An address with many wrong keys is refused without a look at the table."""

    @staticmethod
    def reads(world: World, call: Any) -> float:
        before = world.engine.capacity()["read_units"]
        call()
        return float(world.engine.capacity()["read_units"] - before)

    @staticmethod
    def guesses(world: World, number: int) -> Counter[int]:
        clients = [Client(world, f"Bearer CK{each:018d}:guess") for each in range(number)]
        return Counter(client.get("/queues").status for client in clients)

    def test_after_thirty_in_a_minute_none_is_looked_up(self) -> None:
        world = limited(World(), 1_000)
        assert self.reads(world, lambda: self.guesses(world, 30)) > 0
        assert self.reads(world, lambda: self.guesses(world, 500)) == 0
        assert self.guesses(world, 500) == {429: 500}
        reply = Client(world, "Bearer CKx:guess").get("/queues")
        assert (reply.status, reply.code) == (429, "Throttled")
        assert "wrong access keys" in reply.json["detail"]
        assert 1 <= int(reply.headers["Retry-After"]) <= 60
        world.clock.pass_seconds(60)
        assert self.guesses(world, 30) == {401: 30}

    def test_a_good_key_of_the_same_address_goes_on(self) -> None:
        world = limited(World(), 1_000)
        known, new = world.client("alice"), world.client("bob")
        assert statuses(known, 1) == {200: 1}
        self.guesses(world, 100)
        assert statuses(known, 10) == {200: 10}
        assert statuses(new, 1) == {429: 1}, "not known to be good here"
        world.clock.pass_seconds(60)
        assert statuses(new, 1) == {200: 1}

    def test_guesses_at_a_known_id_are_refused_as_well(self) -> None:
        world = limited(World(), 1_000)
        alice = world.client("alice")
        statuses(alice, 1)
        key = alice.authorization.partition(":")[0]
        assert statuses(Client(world, f"{key}:wrong"), 31) == {401: 30, 429: 1}
        assert statuses(alice, 10) == {200: 10}

    def test_an_unknown_id_is_looked_up_once_a_minute(self) -> None:
        world = limited(World(shared_caches=False), 0)
        nobody = Client(world, "Bearer CKnobody:guess")
        assert self.reads(world, lambda: nobody.get("/queues")) > 0
        for _ in range(20):
            world.clock.pass_seconds(2)
            assert self.reads(world, lambda: nobody.get("/queues")) == 0

    def test_malformed_headers_are_not_counted(self) -> None:
        world = limited(World(), 1_000)
        for text in ("", "Bearer", "Basic x:y", "Bearer no-colon"):
            assert statuses(Client(world, text), 40) == {401: 40}
        assert self.guesses(world, 1) == {401: 1}

    def test_without_a_rate_wrong_keys_are_refused_as_wrong_however_many(self) -> None:
        """So it is on one machine."""
        assert self.guesses(World(), 200) == {401: 200}


class TestCost:
    def test_without_a_rate_nothing_is_counted_or_written(self) -> None:
        world = limited(World(), 0)
        alice = world.client("alice")
        statuses(alice, 1)  # the day of the key's use is noted
        for _ in range(3):
            assert world.write_units(lambda: statuses(alice, 500)) == 0
            world.clock.pass_seconds(1)
        assert counters(world) == []

    def test_it_is_one_write_unit_a_second_however_many_calls(self, world: World) -> None:
        alice = world.client("alice")
        statuses(alice, 1)  # the day of the key's use is noted
        assert world.write_units(lambda: statuses(alice, 500)) == 0
        for _ in range(100):
            world.clock.pass_seconds(1)
            assert world.write_units(lambda: statuses(alice, 20)) == 1

    def test_a_minutes_counter_is_one_expiring_item(self, world: World) -> None:
        alice = world.client("alice")
        for _ in range(60):
            statuses(alice, 1)
            world.clock.pass_seconds(1)
        items = counters(world)
        assert 1 <= len(items) <= 2
        for item in items:
            left = int(item["expires_at"]["N"]) - world.clock.now_ms() // 1000
            assert 0 < left <= 120

    def test_the_meter_and_the_sweep_do_not_take_it_for_usage(self, world: World) -> None:
        alice = world.client("alice")
        alice.put("/queues/orders")
        world.clock.pass_seconds(1)
        alice.post("/queues/orders/messages", SEND)
        world.settle()
        world.run("sweep")
        assert alice.get("/queues/orders").json["counts"]["active"] == 1
        records = [item for item in world.items("usage") if item["pk"]["S"].startswith("U#")]
        assert not {"U#", "C#"} & {item["pk"]["S"][:2] for item in counters(world)}
        assert all("records" in item for item in records)


class TestManyEnvironments:
    """Some worlds over one store, each with its own counts, as environments of Lambda."""

    @staticmethod
    def run(world: World, environments: int, calls_each: int, seconds: int) -> list[int]:
        """Calls let through in each second, at times that the environments do not share."""
        chance = random.Random(environments)
        alice = world.client("alice")
        throttles = [Throttle() for _ in range(environments)]
        passed = []
        for _ in range(seconds):
            calls = [number for number in range(environments) for _ in range(calls_each)]
            chance.shuffle(calls)
            let_through = 0
            for number in calls:
                world.core = msgspec.structs.replace(
                    world.core, memories={Throttle: throttles[number]}
                )
                let_through += alice.get("/queues").status == 200
            passed.append(let_through)
            world.clock.pass_seconds(1)
        return passed

    @pytest.mark.few(2)
    @pytest.mark.parametrize(("environments", "calls_each"), [(2, 60), (10, 20), (50, 4), (200, 1)])
    def test_together_they_let_about_the_rate_through(
        self, environments: int, calls_each: int
    ) -> None:
        passed = self.run(limited(World(), 50), environments, calls_each, 12)

        assert all(number <= 50 * environments for number in passed)
        settled = passed[3:]
        assert 40 <= sum(settled) / len(settled) <= 65, passed

    def test_they_let_everything_through_below_the_rate(self) -> None:
        assert self.run(limited(World(), 50), 10, 5, 10) == [50] * 10

    def test_the_rate_is_free_again_when_the_load_is_gone(self) -> None:
        world = limited(World(), 50)
        self.run(world, 10, 40, 4)
        world.clock.pass_seconds(3)
        assert statuses(world.client("alice"), 50) == {200: 50}


@pytest.mark.parametrize("fault", [EngineError("InternalServerError", "x", 500), OSError("x")])
def test_a_failing_counter_refuses_nobody(
    monkeypatch: pytest.MonkeyPatch, world: World, fault: Exception
) -> None:
    alice = world.client("alice")
    break_counter(monkeypatch, world, fault)
    for _ in range(3):
        assert statuses(alice, 5) == {200: 5}
        world.clock.pass_seconds(1)
    assert counters(world) == []


def break_counter(monkeypatch: pytest.MonkeyPatch, world: World, fault: Exception) -> None:
    works = world.engine.execute

    def fail(operation: str, request: Any) -> Any:
        if str(request.get("Key", {}).get("pk", {}).get("S", "")).startswith("T#"):
            raise fault
        return works(operation, request)

    monkeypatch.setattr(world.engine, "execute", fail)


@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "ThrottlingException"])
def test_a_throttled_counter_leaves_a_thousandth_of_the_rate(
    monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    world = limited(World(), 3_000)
    alice = world.client("alice")
    statuses(alice, 1)
    break_counter(monkeypatch, world, EngineError(code, "too busy", 400))

    for _ in range(20):
        world.clock.pass_seconds(1)
        assert statuses(alice, 40) == {200: 3, 429: 37}


def test_another_failure_keeps_the_share_for_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    world = limited(World(), 3_000)
    alice = world.client("alice")
    statuses(alice, 1)
    with monkeypatch.context() as throttled:
        break_counter(throttled, world, EngineError("ThrottlingException", "too busy", 400))
        world.clock.pass_seconds(1)
        statuses(alice, 1)
    break_counter(monkeypatch, world, EngineError("InternalServerError", "x", 500))

    for _ in range(10):
        world.clock.pass_seconds(1)
        assert statuses(alice, 10) == {200: 3, 429: 7}
    # From the first report that failed, which is up to three seconds behind the throttled one.
    for _ in range(3):
        world.clock.pass_seconds(1)
        last = statuses(alice, 10)
    assert last == {200: 10}


@given(st.integers(1, 10_000), st.integers(0, 10_000), st.integers(0, 10**6))
def test_a_share_is_never_more_than_the_rate(rate: int, calls: int, others: int) -> None:
    demand = calls + others
    share = fair_share(rate, calls, demand)
    assert 0 <= share <= rate
    assert share == (rate if demand <= rate else pytest.approx(rate * calls / demand))


@pytest.mark.parametrize(
    ("interval", "reports", "following"),
    [
        (1, 400, 1), (1, 401, 2), (2, 401, 4), (4, 401, 8), (8, 10_000, 8),
        (8, 100, 8), (8, 99, 4), (4, 99, 2), (2, 0, 1), (1, 0, 1), (4, 250, 4),
    ],
)  # fmt: skip
def test_reports_are_as_rare_as_there_are_many(interval: int, reports: int, following: int) -> None:
    assert next_interval(interval, reports) == following


class BusyItem:
    """A counter's item that takes 1,000 writes a second, and a clock."""

    def __init__(self) -> None:
        self.second = 29_900_000 * 60 + 20
        self.written: Counter[int] = Counter()
        self.items: dict[str, dict[str, Any]] = {}

    def now_ms(self) -> int:
        return self.second * 1_000

    def write(self, operation: str, request: Any) -> dict[str, Any]:
        if self.written[self.second] == 1_000:
            error = {"Error": {"Code": "ThrottlingException", "Message": "too busy"}}
            raise Unavailable from ClientError(error, operation)
        self.written[self.second] += 1
        item = self.items.setdefault(request["Key"]["sk"]["S"], {})
        names, values = (request[f"ExpressionAttribute{each}"] for each in ("Names", "Values"))
        for added in request["UpdateExpression"].partition(" ADD ")[2].split(", "):
            name, value = added.split()
            before = int(item.get(names[name], {"N": "0"})["N"])
            item[names[name]] = {"N": str(before + int(values[value]["N"]))}
        return item


def _memory() -> Callable[[type], Any]:
    """What an environment remembers, an object for each class."""
    memories: dict[type, Any] = {}

    def memory(kind: type) -> Any:
        return memories.setdefault(kind, kind())

    return memory


def core_over(
    item: BusyItem, rate: int, memory: Callable[[type], Any], chance: random.Random
) -> Any:
    """An environment whose counter is this item."""
    return SimpleNamespace(
        settings=Settings(account_requests_per_second=rate),
        memory=memory,
        random=chance,
        store=item,
        tables=SimpleNamespace(usage="usage"),
        now_ms=item.now_ms,
    )


class TestThousands:
    """Environments over one item, each of which gets the same calls each second."""

    @staticmethod
    def run(
        environments: int, calls_each: int, rate: int, seconds: int
    ) -> tuple[list[int], list[int], BusyItem]:
        """Calls let through, and reports, in each second."""
        item, chance = BusyItem(), random.Random(environments)
        cores = [core_over(item, rate, _memory(), chance) for _ in range(environments)]
        passed = []
        begun = item.second
        for _ in range(seconds):
            chance.shuffle(cores)
            refused = 0
            for core in cores * calls_each:
                try:
                    admit(core, "alice")
                except Throttled:
                    refused += 1
            passed.append(environments * calls_each - refused)
            item.second += 1
        return passed, [item.written[begun + each] for each in range(seconds)], item

    @pytest.mark.long
    def test_3_500_environments_report_440_times_a_second(self) -> None:
        passed, reports, item = self.run(3_500, 10, 1_000, 50)
        assert passed[0] == 35_000, "nobody knows of the others"
        assert passed[1] < 6_000
        assert passed[2] < 4_500
        assert all(each < 3_000 for each in passed[8:])
        assert mean(passed[20:40]) < 1_250
        assert all(900 < each < 1_100 for each in passed[40:]), passed[40:]
        assert reports[1:5] == [1_000] * 4
        assert 400 < mean(reports[20:]) < 480
        assert max(reports[12:]) < 600
        # A report is one write unit.
        for counted in item.items.values():
            whole = counted | {"pk": {"S": "T#" + "a" * 64}, "sk": {"S": "29900000"}}
            assert item_bytes(whole | {"expires_at": {"N": "1" * 10}}) <= UNIT_BYTES

    @pytest.mark.parametrize(
        ("environments", "reports_each"),
        [(100, 100), pytest.param(1_000, 250, marks=pytest.mark.long)],
    )
    def test_fewer_report_as_often_as_the_item_takes(
        self, environments: int, reports_each: int
    ) -> None:
        passed, reports, _ = self.run(environments, 20, 1_000, 50)
        assert all(800 <= each <= 1_200 for each in passed[30:]), passed
        assert reports_each * 0.7 <= mean(reports[20:]) <= reports_each * 1.1

    def test_below_the_rate_nobody_waits(self) -> None:
        passed, _, _ = self.run(900, 1, 1_000, 30)
        assert passed == [900] * 30

    def test_when_the_load_is_gone_intervals_are_short_again(self) -> None:
        item = BusyItem()
        core = core_over(item, 10, _memory(), random.Random(1))
        item.written[item.second + 1] = 1_000
        for _ in range(60):
            with suppress(Throttled):
                admit(core, "alice")
            item.second += 1
        begun = item.second - 10
        assert [item.written[each] for each in range(begun, item.second)] == [1] * 10


def test_a_running_stack_refuses_only_with_a_given_rate(
    shared_stack: Stack, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = shared_stack.client()
    assert {free.get("/queues").status_code for _ in range(100)} == {200}
    monkeypatch.setenv("ACCOUNT_REQUESTS_PER_SECOND", "10")
    limited = start().client()
    answers = [limited.get("/queues") for _ in range(200)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert 0 < len(refused) < 200
    assert {answer.headers["retry-after"] for answer in refused} == {"1"}
