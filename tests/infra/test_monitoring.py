"""The dashboards for Grafana: made of one declaration, and of figures that are told."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cirrusmq_lambda import figures
from cirrusmq_local.stack.metrics import MAX_RESOURCES, ONE_MACHINE, Metrics
from cirrusmq_local.testing import World
from monitoring.__main__ import made

SHOWN_BY_AWS = {"Latency", "ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits"}


@pytest.fixture(scope="module")
def scraped() -> Iterator[set[str]]:
    """The metrics that a service of one machine shows, those without a sample among them."""
    world = World()
    metrics = Metrics(world.engine.capacity)
    figures.send_to(metrics.tell)
    try:
        alice = world.client("alice")
        alice.put("/queues/orders")
        alice.send("orders", "x")
        world.settle()
        world.run("sweep")
        metrics.note_call("send", 201, 0.02)
        text, _ = metrics.render("")
        yield set(re.findall("^# TYPE (\\w+) ", text.decode(), re.MULTILINE))
    finally:
        figures.send_to(None)


def targets(dashboard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for panel in dashboard["panels"]:
        yield from panel["targets"]


def test_the_files_are_as_they_are_made(root: Path) -> None:
    for name, text in made().items():
        held = (root / "infra/monitoring" / name).read_text()
        assert held == text, "python -m infra.monitoring"


def test_each_metric_asked_of_prometheus_is_in_the_answer(scraped: set[str]) -> None:
    asked = {
        name
        for target in targets(json.loads(made()["grafana-prometheus.json"]))
        for name in re.findall(r"cirrusmq_\w+", target["expr"].replace("_bucket", ""))
    }
    assert len(asked) > 15
    assert asked <= scraped


def test_each_metric_asked_of_cloudwatch_is_told_or_is_of_aws() -> None:
    told = {figure.name for figure in (*figures.TOLD, *figures.LOGGED)}
    asked: set[str] = set()
    for target in targets(json.loads(made()["grafana-cloudwatch.json"])):
        if "metricName" in target:
            asked.add(target["metricName"])
        else:
            asked.update(re.findall(r'MetricName="(\w+)"', target["expression"]))
    assert asked - told == SHOWN_BY_AWS
    assert told - asked == set(), "a figure that no panel shows"


def test_both_have_the_same_panels_over_chosen_sources() -> None:
    dashboards = [json.loads(text) for text in made().values()]
    titles = [[panel["title"] for panel in each["panels"]] for each in dashboards]
    assert titles[0] == titles[1]
    for each in dashboards:
        variables = {held["name"]: held["type"] for held in each["templating"]["list"]}
        assert variables["source"] == "datasource"
        used = set(re.findall(r"\$\{?(\w+)", json.dumps(each))) - {"__rate_interval"}
        assert used == variables.keys()
        places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in each["panels"]}
        assert len(places) == len(each["panels"])


def test_the_same_names_are_told_on_one_machine_and_in_an_account(scraped: set[str]) -> None:
    own = {name for name in scraped if name.startswith("cirrusmq_")}
    told = {figure.name for figure in (*figures.TOLD, *figures.LOGGED)}
    assert own - told == {figure.name for figure in ONE_MACHINE}
    assert told <= own


def test_the_manual_lists_every_figure_and_no_other(root: Path) -> None:
    text = (root / "infra/manual/monitoring.md").read_text()
    rows = "\n".join(line for line in text.splitlines() if line.startswith("| "))
    declared = {figure.name for figure in (*figures.TOLD, *figures.LOGGED, *ONE_MACHINE)}
    assert set(re.findall(r"`(cirrusmq_\w+)`", rows)) == declared
    assert f"The first {MAX_RESOURCES:,} of these" in text
