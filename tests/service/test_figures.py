"""Figures for alarms and the dashboard: log lines that CloudWatch reads as metrics."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.half import Producers
from tests.service.topics import Schedules, TestTopic

from cirrusmq.runtime.store import Store
from cirrusmq_lambda import figures as declared
from cirrusmq_lambda import latencies
from cirrusmq_local.testing import Subscriber, World

STUCK, OLDEST, BEHIND, UNDECIDED = (
    figure.name for figure in (declared.STUCK, declared.OLDEST, declared.BEHIND, declared.UNDECIDED)
)
KEPT, KEPT_BYTES, BACKLOG, LEFT_OUT = (
    figure.name
    for figure in (declared.KEPT, declared.KEPT_BYTES, declared.BACKLOG, declared.LEFT_OUT)
)
SENT, RECEIVED, DEAD_LETTERED, DELIVERED = (
    declared.HAPPENED[kind].name for kind in ("sent", "received", "dead_lettered", "delivered")
)

UNLAWFUL = declared.UNLAWFUL.name
SPREAD = {figure.name for figure in declared.TOLD if figure.spread}


class Figures:
    """The figures that the functions logged since the last look."""

    def __init__(self, world: World, capsys: pytest.CaptureFixture[str]) -> None:
        self.world = world
        self.capsys = capsys
        self.units: dict[str, str] = {}
        self.spread: dict[str, list[float]] = {}
        """Values of figures that have many."""

    def told(self, role: str) -> dict[str, float]:
        """The figures of one run of a function, or of a reader of the stream."""
        self.capsys.readouterr()
        if role == "sweep":
            self.world.run(role)
        else:
            self.world.run_stream(role)
        return self.logged()

    def logged(self) -> dict[str, float]:
        """The figures since the last look; one with dimensions has their values before its name."""
        found: dict[str, float] = {}
        for line in self.capsys.readouterr().out.splitlines():
            told: dict[str, Any] = json.loads(line)
            if "_aws" not in told:
                continue
            (described,) = told["_aws"]["CloudWatchMetrics"]
            assert described["Namespace"] == "CirrusMQ/test"
            (dimensions,) = described["Dimensions"]
            of = "/".join(told[name] for name in dimensions)
            for metric in described["Metrics"]:
                self.units[metric["Name"]] = metric["Unit"]
                if metric["Name"] in SPREAD:
                    self.spread.setdefault(metric["Name"], []).extend(told[metric["Name"]])
                    continue
                (value,) = told[metric["Name"]]
                found[f"{of} {metric['Name']}".strip()] = value
        return found


@pytest.fixture
def figures(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Figures:
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "CirrusMQ/test")
    # As in the deployment, where it is what logs are by.
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "cirrusmq")
    return Figures(world, capsys)


def test_nothing_waits_and_nothing_is_stuck_in_an_empty_deployment(figures: Figures) -> None:
    """CloudWatch asks for each metric by the hour in which it is told something, a 0 too."""
    assert figures.told("sweep") == {}


def test_undecided_half_messages_are_counted_once(
    world: World, topic: TestTopic, figures: Figures
) -> None:
    producers = Producers(topic)
    for body in ("a", "b"):
        producers.prepare(body, check_after_seconds=1, max_checks=1)
    world.clock.pass_seconds(1)
    assert len(producers.receive(visibility_timeout_seconds=1)) == 2
    world.clock.pass_seconds(2)

    assert figures.told("sweep")[UNDECIDED] == 2
    assert UNDECIDED not in figures.told("sweep")


@pytest.mark.writes_by_hand
def test_an_unlawful_write_is_counted_and_named(
    world: World, queue: TestQueue, figures: Figures, caplog: pytest.LogCaptureFixture
) -> None:
    queue.send("a")
    assert UNLAWFUL not in figures.told("meter")
    (parcel,) = [each for each in world.items() if each["pk"]["S"].startswith("Q#")]

    for visible_ms in (0, -1):  # deleted without a receipt, and then moved
        parcel["v"]["L"][0]["N"] = str(visible_ms)
        world.engine.execute("PutItem", {"TableName": world.tables.messages, "Item": parcel})

    assert figures.told("meter")[UNLAWFUL] == 2
    assert parcel["sk"]["S"] in caplog.text
    assert "from free to deleted" in caplog.text


def test_the_oldest_untaken_message_gives_the_age(
    world: World, make_queue: MakeQueue, figures: Figures
) -> None:
    first, second = make_queue("first"), make_queue("second")
    first.send("old")
    world.clock.pass_seconds(100)
    second.send("younger")
    first.send("younger still")
    world.clock.pass_seconds(10)
    world.settle()
    assert figures.told("sweep")[OLDEST] == 110
    first.act("delete", *first.receive_all())
    assert figures.told("sweep")[OLDEST] == 10


@pytest.mark.parametrize("ordered", [False, True])
def test_held_purged_and_delayed_messages_do_not_wait(
    world: World, make_queue: MakeQueue, figures: Figures, ordered: bool
) -> None:
    queue = make_queue("orders", ordered=ordered)
    fields = {"group": "a"} if ordered else {}
    queue.try_send([{"body": "x", **fields}])
    world.clock.pass_seconds(5)
    world.settle()
    assert figures.told("sweep")[OLDEST] == 5
    held = queue.receive()
    assert OLDEST not in figures.told("sweep")
    queue.act("give-back", *held)
    assert figures.told("sweep")[OLDEST] == 5
    assert queue.client.post(f"{queue.path}/purge").status in (200, 202)
    world.clock.pass_seconds(5)
    assert OLDEST not in figures.told("sweep")


def test_receivers_and_pull_subscriptions_are_looked_at_too(
    world: World, queue: TestQueue, topic: TestTopic, figures: Figures
) -> None:
    queue.client.put(f"{queue.path}/receivers/audit")
    queue.send("x")
    world.settle()
    world.clock.pass_seconds(7)
    queue.act("delete", *queue.receive_all())
    world.settle()
    assert figures.told("sweep")[OLDEST] == 7
    queue.receive_all(receiver="audit")
    pull = topic.subscribe("pull", "pull")
    topic.publish("y")
    world.settle()
    world.clock.pass_seconds(3)
    assert figures.told("sweep")[OLDEST] == 3
    pull.receive()
    assert OLDEST not in figures.told("sweep")


def test_dead_letters_are_told_when_they_are_counted(
    make_queue: MakeQueue, figures: Figures
) -> None:
    make_queue("dead")
    queue = make_queue("orders", dead_letter={"queue": "dead", "max_receives": 5})
    queue.send("a", "b", "c")
    assert figures.told("meter") == {SENT: 3}
    queue.act("dead-letter", *queue.receive_all()[:2])
    assert figures.told("meter") == {RECEIVED: 3, DEAD_LETTERED: 2}
    assert figures.told("meter") == {}


def test_an_abandoned_retry_is_stuck_until_it_is_started_anew(
    world: World,
    topic: TestTopic,
    subscriber: Subscriber,
    schedules: Schedules,
    figures: Figures,
) -> None:
    topic.subscribe("web", "http", retry={"policy": "backoff"})
    subscriber.down()
    topic.publish("x")
    world.settle()
    assert STUCK not in figures.told("sweep")
    world.clock.pass_seconds(3_600)
    assert figures.told("sweep")[STUCK] == 1
    subscriber.up()
    schedules.run_out()
    assert subscriber.times("x")
    assert STUCK not in figures.told("sweep")


def test_the_largest_backlogs_have_a_metric_each_and_the_others_are_counted(
    world: World, make_queue: MakeQueue, figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(("small", "large", "middle")):
        make_queue(name).send(*["hello"] * (2 + number * 5 % 3))
    world.settle()
    sums = {KEPT: 9, KEPT_BYTES: 45}
    assert figures.told("sweep").items() >= (sums | {LEFT_OUT: 3}).items()
    monkeypatch.setenv("MEASURED_BACKLOGS", "2")
    told = figures.told("sweep")
    assert told.items() >= (sums | {LEFT_OUT: 1}).items()
    assert {name: value for name, value in told.items() if BACKLOG in name} == {
        f"alice/queue/large {BACKLOG}": 4,
        f"alice/queue/middle {BACKLOG}": 3,
    }
    assert world.client("alice").delete("/queues/large").status == 204
    assert f"alice/queue/large {BACKLOG}" not in figures.told("sweep")


@pytest.fixture
def posted_twice(
    world: World, topic: TestTopic, subscriber: Subscriber, schedules: Schedules, figures: Figures
) -> Figures:
    """The figures of a message that a URL takes at the second post, after a lag of 3 s."""
    topic.subscribe("web", "http", retry={"policy": "backoff"})
    subscriber.down()
    assert topic.try_publish([{"body": "x"}]).status == 201
    world.clock.pass_seconds(3)
    world.settle()
    subscriber.up()
    schedules.run_out()
    assert len(subscriber.times("x")) == 2
    return figures


def test_posts_are_counted_apart_from_deliveries(posted_twice: Figures) -> None:
    told = posted_twice.logged()
    assert {declared.ATTEMPTS.name: 1, DELIVERED: 1}.items() <= told.items()


def test_every_figure_has_its_declared_unit_and_name(
    world: World, make_queue: MakeQueue, figures: Figures
) -> None:
    make_queue("orders").send("x")
    figures.told("meter")
    figures.told("sweep")
    world.clock.pass_seconds(10)
    world.settle()
    figures.told("sweep")
    assert len(figures.units) == 5
    known = {figure.name: figure.unit for figure in declared.TOLD}
    assert figures.units.items() <= known.items()
    assert {unit for name, unit in known.items() if name.endswith("_seconds")} == {"Seconds"}


def test_without_a_receiver_of_figures_nothing_is_read_for_them(world: World) -> None:
    world.run("sweep")
    without = world.units(lambda: world.run("sweep"))[1]
    declared.send_to(lambda values: None)
    try:
        reads = world.units(lambda: world.run("sweep"))[1]
    finally:
        declared.send_to(None)
    assert reads - without == 8  # half a unit for each shard of the counters


def test_how_long_messages_waited_is_told_by_the_meter(
    world: World, queue: TestQueue, figures: Figures
) -> None:
    """From when a message could be had to its first receive; a second receive says nothing."""
    queue.try_send([{"body": "now"}, {"body": "later", "delay_seconds": 10}])
    world.clock.pass_seconds(4)
    held = queue.receive()
    world.clock.pass_seconds(6.5)
    queue.act("give-back", *held)
    world.clock.pass_seconds(1)
    assert len(queue.receive_all()) == 2
    figures.told("meter")
    assert sorted(figures.spread[declared.WAITED.name]) == [1.5, 4.0]
    assert declared.POSTED.name not in figures.spread


def test_how_long_a_publish_took_to_its_first_post_is_told(posted_twice: Figures) -> None:
    posted_twice.logged()
    (waited,) = posted_twice.spread[declared.POSTED.name]
    assert waited == pytest.approx(3, abs=0.1)


def test_of_many_values_as_many_are_told_as_a_line_holds_spread_alike(
    figures: Figures,
) -> None:
    declared.tell({declared.WAITED: [float(n) for n in range(1_000, 0, -1)]})
    figures.logged()
    told = figures.spread[declared.WAITED.name]
    assert len(told) == declared.MAX_VALUES
    assert told == sorted(told)
    assert (told[0], told[-1]) == (11.0, 991.0)
    assert told[25] == pytest.approx(500, abs=20)


SLOW_SECONDS = 0.05
"""Of each call of the store."""


@pytest.fixture
def slow_store(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latencies, "_receives", latencies.Latencies())
    call = Store._call

    def slowly(*given: Any) -> Any:
        world.clock.pass_seconds(SLOW_SECONDS)
        return call(*given)

    monkeypatch.setattr(Store, "_call", slowly)


def receives_told(world: World, figures: Figures) -> list[float]:
    figures.spread.clear()
    figures.logged()
    return figures.spread.get(declared.RECEIVE.name, [])


@pytest.mark.usefixtures("slow_store")
def test_how_long_a_receive_took_is_told_without_its_wait(
    world: World, make_queue: MakeQueue, figures: Figures
) -> None:
    """Of a call of 20 s: what came before the wait, and its last look."""
    queue = make_queue("orders", partitions=1)
    begun_ms = world.clock.now_ms()
    assert queue.receive(wait_seconds=20) == []
    took_ms = world.clock.now_ms() - begun_ms
    assert took_ms > 19_000
    assert receives_told(world, figures) == []
    world.clock.pass_seconds(60)
    queue.receive()

    waited, at_once = sorted(receives_told(world, figures), reverse=True)

    assert SLOW_SECONDS <= at_once <= 4 * SLOW_SECONDS
    assert SLOW_SECONDS <= waited <= 8 * SLOW_SECONDS


@pytest.mark.usefixtures("slow_store")
def test_a_message_ending_a_wait_has_its_claim_counted(
    world: World, make_queue: MakeQueue, figures: Figures
) -> None:
    queue = make_queue("orders", partitions=1, delay_seconds=5)
    queue.send("late")
    begun_ms = world.clock.now_ms()
    (message,) = queue.receive(wait_seconds=20)
    assert 4_000 < world.clock.now_ms() - begun_ms < 10_000
    world.clock.pass_seconds(60)
    queue.receive()
    assert message
    assert max(receives_told(world, figures)) <= 8 * SLOW_SECONDS


def test_fifty_receives_are_a_line(
    world: World, make_queue: MakeQueue, figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latencies, "_receives", latencies.Latencies())
    queue = make_queue("orders", partitions=1)
    for _ in range(declared.MAX_VALUES - 1):
        queue.receive()
    assert receives_told(world, figures) == []
    queue.receive()
    assert len(receives_told(world, figures)) == declared.MAX_VALUES == latencies.MAX_VALUES
