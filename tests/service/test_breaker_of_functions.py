"""The breaker of a function: its workers count together, one message is tried, none is given up."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.topics import Schedules, TestTopic

from cirrusmq.base.errors import Unavailable
from cirrusmq.invoking import slots
from cirrusmq.invoking.function_breaker import FunctionBreaker
from cirrusmq.invoking.worker import work
from cirrusmq.maintenance.sweep import sweep
from cirrusmq.model.breaker import Breaker
from cirrusmq.model.invoke import Invoke
from cirrusmq.runtime.core import Called
from cirrusmq_local.testing import World

INVOKE = {"function": "handler", "max_concurrency": 1, "batch": 1, "breaker": {}}
DEAD = {"queue": "dead", "max_receives": 3}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ordered": {"ordered": True},
    "fair": {"fair": True},
    "priorities": {"priorities": 4},
}


class Function:
    """A function that can be down, and keeps what it was called with."""

    def __init__(self, world: World) -> None:
        self._clock = world.clock
        self.down = True
        self.bad: set[str] = set()
        """Bodies at which it always fails."""
        self.calls: list[tuple[int, list[str], bool]] = []
        """When, with which bodies, and whether it was well."""
        self.counts: Counter[str] = Counter()
        world.handle = self

    def __call__(self, event: dict[str, Any]) -> Any:
        bodies = [each["body"] for each in event["Records"]]
        well = not self.down and self.bad.isdisjoint(bodies)
        self.calls.append((self._clock.now_ms(), bodies, well))
        self.counts.update(bodies)
        if not well:
            raise RuntimeError("down")

    @property
    def done(self) -> list[str]:
        return [body for _, bodies, well in self.calls if well for body in bodies]


@pytest.fixture
def function(world: World) -> Function:
    return Function(world)


@pytest.fixture
def schedules(world: World) -> Schedules:
    return Schedules(world, sweeps=True)


def send(queue: TestQueue, count: int, kind: str = "plain", body: str = "order") -> list[str]:
    bodies = [f"{body} {number}" for number in range(count)]
    for number, each in enumerate(bodies):
        group = {"group": f"g{number % 25}"} if kind in ("ordered", "fair") else {}
        level = {"priority": 1 + number % 4} if kind == "priorities" else {}
        queue.send(each, **group, **level)
    return bodies


def make(make_queue: MakeQueue, kind: str = "plain", **attributes: Any) -> TestQueue:
    make_queue("dead")
    shared: dict[str, Any] = {"dead_letter": DEAD, "visibility_timeout_seconds": 600}
    return make_queue(**shared | KINDS[kind] | attributes)


def begin(queue: TestQueue, **invoke: Any) -> None:
    assert queue.patch(invoke=INVOKE | invoke).status == 200


@pytest.fixture
def failing(make_queue: MakeQueue, function: Function) -> TestQueue:
    """A queue of ORDERS, for which its function is called from now on, and is down."""
    queue = make(make_queue)
    assert set(send(queue, 40)) == ORDERS
    begin(queue)
    return queue


ORDERS = {f"order {number}" for number in range(40)}


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", KINDS)
def test_it_opens_and_tries_one_message_ever_more_rarely(
    make_queue: MakeQueue, function: Function, schedules: Schedules, kind: str
) -> None:
    queue = make(make_queue, kind, visibility_timeout_seconds=1, retry=None)
    send(queue, 40, kind)
    begin(queue)
    schedules.pass_seconds(300)

    times = [at_ms for at_ms, _, _ in function.calls]
    gaps = [round((after - before) / 1000) for before, after in pairwise(times)]
    opened = len(gaps) - gaps[::-1].index(1)  # the last wait of a second is the first try's
    assert opened >= 19
    assert gaps[opened - 1 : opened + 7] == [1, 2, 4, 8, 16, 32, 60, 60]
    shown = queue.show()
    assert shown["breaker_state"] == "open"
    assert "down" in shown["breaker_error"]
    assert shown["breaker_open_since"] > shown["created_at"]


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
def test_no_try_counts_and_everything_is_done_when_it_closes(
    make_queue: MakeQueue, function: Function, schedules: Schedules, kind: str
) -> None:
    queue = make(make_queue, kind)
    sent = send(queue, 30, kind)
    begin(queue)
    schedules.pass_seconds(3_600)
    assert len(function.calls) > 60
    assert TestQueue(queue.client, "dead").counts() == {}
    counted = Counter(body for _, bodies, _ in function.calls[:20] for body in bodies)
    assert max(counted.values()) <= 3

    function.down = False
    schedules.pass_seconds(1_300)
    assert Counter(function.done) == Counter(sent)
    assert queue.show()["breaker_state"] == "closed"
    assert queue.counts() == {}


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["ordered", "priorities"])
def test_an_always_failing_message_does_not_keep_it_open(
    make_queue: MakeQueue, function: Function, schedules: Schedules, kind: str
) -> None:
    """The bad ones are first in their group, or have the highest priority."""
    queue = make(make_queue, kind, visibility_timeout_seconds=1, dead_letter=None)
    group = {"group": "bad"} if kind == "ordered" else {"priority": 4}
    for _ in range(2):
        queue.send("bad", **group)
    good = [f"good {number}" for number in range(5)]
    for body in good:
        queue.send(body, **({"group": body} if kind == "ordered" else {}))
    function.bad = {"bad"}
    begin(queue)
    schedules.pass_seconds(60)
    function.down = False
    schedules.pass_seconds(1_800)
    assert set(function.done) == set(good)


@pytest.mark.long
def test_a_group_of_a_topic_has_it_too(
    topic: TestTopic, function: Function, schedules: Schedules
) -> None:
    retry = {"policy": "custom", "waits": [1, 1]}
    group = topic.subscribe("group", "pull", retry=retry, invoke=INVOKE)
    for number in range(60):
        topic.publish(f"order {number}")
    schedules.pass_seconds(1_000)
    shown = group.show()
    assert shown["invoke"]["breaker"] == {"share": 0.5}
    assert (shown["state"], shown["breaker_state"]) == ("delivering", "open")
    assert sum(each > 3 for each in function.counts.values()) < len(function.calls) / 2
    function.down = False
    schedules.pass_seconds(600)
    assert len(set(function.done)) >= 40
    assert group.show()["breaker_state"] == "closed"


HALF = Breaker(0.5)
OPENS = Invoke(function="handler", breaker=HALF)


@pytest.fixture
def place(queue: TestQueue) -> tuple[str, str]:
    return slots.wake_key(queue.show()["id"])


def test_workers_count_together(world: World, place: tuple[str, str]) -> None:
    one, other = FunctionBreaker(world.core, place), FunctionBreaker(world.core, place)
    one.count(HALF, 0, 12, "down")
    other.count(HALF, 0, 7, "down")
    assert not one.is_open(OPENS)
    assert not other.is_open(OPENS)
    one.count(HALF, 0, 1, "down")
    assert not one.is_open(OPENS)  # it knows of its own, and adds them up a second later
    world.clock.pass_seconds(2)
    one.count(HALF, 0, 1, "down")
    assert one.is_open(OPENS)
    world.clock.pass_seconds(2)
    other.count(HALF, 0, 1, "down")
    assert other.is_open(OPENS)
    assert not other.is_open(Invoke(function="handler"))  # the queue has no breaker any more


def test_successes_of_other_workers_keep_it_closed(world: World, place: tuple[str, str]) -> None:
    workers = [FunctionBreaker(world.core, place) for _ in range(8)]
    for worker in workers:
        worker.count(HALF, 10, 0, "")
    world.clock.pass_seconds(2)
    workers[0].count(HALF, 0, 60, "down")
    assert not workers[0].is_open(OPENS)
    world.clock.pass_seconds(2)
    workers[0].count(HALF, 0, 20, "down")
    assert workers[0].is_open(OPENS)


def test_failures_of_an_earlier_minute_do_not_open_it(world: World, place: tuple[str, str]) -> None:
    worker = FunctionBreaker(world.core, place)
    for _ in range(5):
        worker.count(HALF, 0, 19, "down")
        world.clock.pass_seconds(61)
    assert not worker.is_open(OPENS)
    worker.count(HALF, 0, 1, "down")
    item = world.core.store.get(world.core.tables.messages, *place) or {}
    assert sum(name[1:].isdecimal() for name in item) <= 7  # so it stays below a unit


def test_outcomes_count_once_if_their_write_is_repeated(
    world: World, place: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = type(world.core.store).write

    def twice(store: Any, operation: str, request: Any) -> Any:
        write(store, operation, request)
        return write(store, operation, request)

    monkeypatch.setattr(type(world.core.store), "write", twice)
    worker = FunctionBreaker(world.core, place)
    worker.count(HALF, 3, 9, "down")
    assert not worker.is_open(OPENS)
    assert sum(each[1] + each[2] for each in worker.circuit.counts) == 12
    world.clock.pass_seconds(2)
    worker.count(HALF, 0, 8, "down")
    assert worker.is_open(OPENS)


def opened(world: World, place: tuple[str, str]) -> tuple[FunctionBreaker, FunctionBreaker]:
    """Two workers that know of an open breaker whose first try is due."""
    one, other = FunctionBreaker(world.core, place), FunctionBreaker(world.core, place)
    one.count(HALF, 0, 20, "down")
    world.clock.pass_seconds(2)
    other.see(world.core.store.get(world.core.tables.messages, *place) or {})
    assert one.is_open(OPENS)
    assert not other.waits(OPENS)
    return one, other


def test_of_two_workers_one_tries(world: World, place: tuple[str, str]) -> None:
    one, other = opened(world, place)
    assert one.begin_try(90_000)
    assert not other.begin_try(90_000)
    assert other.is_tried
    one.end_try("down")
    assert not other.begin_try(90_000)  # that try is over, and the next one is not due
    assert other.waits(OPENS)
    assert not other.is_tried


def test_a_worker_dead_in_a_try_keeps_others_away_until_its_call_is_over(
    world: World, place: tuple[str, str]
) -> None:
    one, other = opened(world, place)
    assert one.begin_try(90_000)
    world.clock.pass_seconds(80)
    assert not other.begin_try(90_000)
    world.clock.pass_seconds(13)
    assert other.begin_try(90_000)
    one.end_try(None)  # it was not dead, but late
    assert one.is_open(OPENS)
    other.end_try(None)
    assert not other.is_open(OPENS)


def test_a_failing_store_changes_nothing_for_messages(
    world: World, place: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise Unavailable

    monkeypatch.setattr(type(world.core.store), "write", fail)
    worker = FunctionBreaker(world.core, place)
    worker.count(HALF, 0, 30, "down")
    assert not worker.is_open(OPENS)
    assert not worker.begin_try(90_000)
    worker.end_try(None)


def test_several_workers_stop_and_one_message_is_tried_at_a_time(
    make_queue: MakeQueue, function: Function, schedules: Schedules
) -> None:
    queue = make(make_queue)
    sent = send(queue, 120)
    begin(queue, max_concurrency=4, batch=4)
    schedules.pass_seconds(600)
    assert len(function.calls) < 40
    assert {len(bodies) for _, bodies, _ in function.calls[-8:]} == {1}
    function.down = False
    schedules.pass_seconds(1_300)
    assert set(function.done) == set(sent)


def end_calls(world: World, **outcome: Any) -> list[int]:
    """Have every call of a function end so; the times of the calls."""
    called: list[int] = []

    def call(*_: Any) -> Called:
        called.append(world.clock.now_ms())
        return Called(**outcome)

    world.core = replace(world.core, call=call)
    return called


def test_a_refused_call_is_no_outcome(world: World, make_queue: MakeQueue) -> None:
    queue = make(make_queue)
    called = end_calls(world, error="TooManyRequestsException", refused=True)
    send(queue, 30)
    queue.patch(invoke=INVOKE)
    world.clock.pass_seconds(60)
    work(world.core, {"source": queue.show()["id"]}, 200_000)
    assert len(called) >= 25
    assert queue.show()["breaker_state"] == "closed"


@pytest.mark.long
def test_a_try_without_an_answer_does_not_count_either(
    world: World, make_queue: MakeQueue, schedules: Schedules
) -> None:
    queue = make(make_queue)
    called = end_calls(world, error="no answer within 60 s", unknown=True)
    send(queue, 3)
    begin(queue, timeout_seconds=2)
    place = slots.wake_key(queue.show()["id"])
    FunctionBreaker(world.core, place).count(HALF, 0, 20, "down")
    schedules.pass_seconds(3_600)
    assert len(called) > 30
    assert TestQueue(queue.client, "dead").counts() == {}
    assert sum(queue.counts().values()) == 3


def test_a_pause_ends_the_tries_and_resuming_goes_on(
    failing: TestQueue, function: Function, schedules: Schedules
) -> None:
    schedules.pass_seconds(120)
    failing.patch(paused=True)
    schedules.pass_seconds(90)
    calls = len(function.calls)
    schedules.pass_seconds(600)
    assert len(function.calls) == calls
    assert failing.show()["breaker_state"] == "open"
    function.down = False
    failing.patch(paused=False)
    schedules.pass_seconds(1_300)
    assert set(function.done) == ORDERS


def test_taking_it_away_ends_the_wait(
    failing: TestQueue, function: Function, schedules: Schedules
) -> None:
    schedules.pass_seconds(120)
    begin(failing, breaker=None)
    assert "breaker_state" not in failing.show()
    function.down = False
    schedules.pass_seconds(1_300)
    assert set(function.done) == ORDERS


def test_a_rate_holds_beside_it(
    failing: TestQueue, function: Function, schedules: Schedules
) -> None:
    failing.patch(receive_rate=5)
    schedules.pass_seconds(300)
    assert failing.show()["breaker_state"] == "open"
    function.down = False
    schedules.pass_seconds(1_500)
    assert set(function.done) == ORDERS


def test_the_sweep_counts_the_open_breakers(
    world: World, failing: TestQueue, schedules: Schedules
) -> None:
    world.clock.pass_seconds(60)
    assert sweep(world.core, 60_000).open_breakers == 0
    schedules.pass_seconds(120)
    assert sweep(world.core, 60_000).open_breakers == 1
    failing.patch(paused=True)
    world.clock.pass_seconds(60)
    assert sweep(world.core, 60_000).open_breakers == 0


def test_it_costs_a_write_a_second_and_nothing_without_it(
    world: World, make_queue: MakeQueue, function: Function
) -> None:
    function.down = False
    units: dict[str, tuple[float, float]] = {}
    for name, rule in (("without", None), ("with", {})):
        queue = make_queue(name, partitions=1)
        send(queue, 16)
        world.settle()
        queue.patch(invoke=INVOKE | {"breaker": rule})
        world.clock.pass_seconds(60)
        event = {"source": queue.show()["id"]}
        units[name] = world.units(partial(work, world.core, event, 800_000))
    assert units["with"][1] == units["without"][1]
    assert units["with"][0] - units["without"][0] == 2  # at its first outcome, and at its end
