"""Figures for alarms and the dashboard: log lines that CloudWatch reads as metrics."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.service.conftest import MakeQueue
from tests.service.half import Producers
from tests.service.topics import Schedules, TestTopic

from cirrusmq_local.testing import Subscriber, World


class Figures:
    """The figures that the functions logged since the last look."""

    def __init__(self, world: World, capsys: pytest.CaptureFixture[str]) -> None:
        self.world = world
        self.capsys = capsys

    def told(self, role: str) -> dict[str, float]:
        """The figures of one run of a function, or of a reader of the stream."""
        self.capsys.readouterr()
        if role == "sweep":
            self.world.run(role)
        else:
            self.world.run_stream(role)
        found: dict[str, float] = {}
        for line in self.capsys.readouterr().out.splitlines():
            told: dict[str, Any] = json.loads(line)
            (described,) = told["_aws"]["CloudWatchMetrics"]
            assert described["Namespace"] == "CirrusMQ/test"
            assert described["Dimensions"] in ([], [[]])
            for metric in described["Metrics"]:
                (value,) = told[metric["Name"]]
                found[metric["Name"]] = value
        return found


@pytest.fixture
def figures(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Figures:
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "CirrusMQ/test")
    return Figures(world, capsys)


def test_nothing_waits_and_nothing_is_stuck_in_an_empty_deployment(figures: Figures) -> None:
    expected = {"StuckSchedules": 0, "OldestMessageAge": 0, "SweepBehind": 0}
    assert figures.told("sweep") == expected


def test_half_messages_that_nobody_decided_are_counted_once(
    world: World, topic: TestTopic, figures: Figures
) -> None:
    producers = Producers(topic)
    for body in ("a", "b"):
        producers.prepare(body, check_after_seconds=1, max_checks=1)
    world.clock.pass_seconds(1)
    assert len(producers.receive(visibility_timeout_seconds=1)) == 2
    world.clock.pass_seconds(2)

    assert figures.told("sweep")["UndecidedHalfMessages"] == 2
    assert "UndecidedHalfMessages" not in figures.told("sweep")


def test_the_age_is_that_of_the_oldest_message_which_nobody_took(
    world: World, make_queue: MakeQueue, figures: Figures
) -> None:
    first, second = make_queue("first"), make_queue("second")
    first.send("old")
    world.clock.pass_seconds(100)
    second.send("younger")
    first.send("younger still")
    world.clock.pass_seconds(10)
    world.settle()
    assert figures.told("sweep")["OldestMessageAge"] == 110
    first.act("delete", *first.receive_all())
    assert figures.told("sweep")["OldestMessageAge"] == 10


@pytest.mark.parametrize("ordered", [False, True])
def test_what_is_held_or_purged_or_delayed_does_not_wait(
    world: World, make_queue: MakeQueue, figures: Figures, ordered: bool
) -> None:
    queue = make_queue("orders", ordered=ordered)
    fields = {"group": "a"} if ordered else {}
    queue.try_send([{"body": "x", **fields}])
    world.clock.pass_seconds(5)
    world.settle()
    assert figures.told("sweep")["OldestMessageAge"] == 5
    held = queue.receive()
    assert figures.told("sweep")["OldestMessageAge"] == 0
    queue.act("give-back", *held)
    assert figures.told("sweep")["OldestMessageAge"] == 5
    assert queue.client.post(f"{queue.path}/purge").status in (200, 202)
    world.clock.pass_seconds(5)
    assert figures.told("sweep")["OldestMessageAge"] == 0


def test_receivers_and_pull_subscriptions_are_looked_at_too(
    world: World, make_queue: MakeQueue, topic: TestTopic, figures: Figures
) -> None:
    queue = make_queue("orders")
    queue.client.put(f"{queue.path}/receivers/audit")
    queue.send("x")
    world.settle()
    world.clock.pass_seconds(7)
    queue.act("delete", *queue.receive_all())
    world.settle()
    assert figures.told("sweep")["OldestMessageAge"] == 7
    queue.receive_all(receiver="audit")
    pull = topic.subscribe("pull", "pull")
    topic.publish("y")
    world.settle()
    world.clock.pass_seconds(3)
    assert figures.told("sweep")["OldestMessageAge"] == 3
    pull.receive()
    assert figures.told("sweep")["OldestMessageAge"] == 0


def test_dead_letters_are_told_when_they_are_counted(
    world: World, make_queue: MakeQueue, figures: Figures
) -> None:
    make_queue("dead")
    queue = make_queue("orders", dead_letter={"queue": "dead", "max_receives": 5})
    queue.send("a", "b", "c")
    assert figures.told("meter") == {}
    queue.act("dead-letter", *queue.receive_all()[:2])
    assert figures.told("meter") == {"DeadLetters": 2}
    assert figures.told("meter") == {}


def test_a_retry_that_nobody_is_at_is_stuck_until_it_is_started_anew(
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
    assert figures.told("sweep")["StuckSchedules"] == 0
    world.clock.pass_seconds(3_600)
    assert figures.told("sweep")["StuckSchedules"] == 1
    subscriber.up()
    schedules.run_out()
    assert subscriber.times("x")
    assert figures.told("sweep")["StuckSchedules"] == 0
