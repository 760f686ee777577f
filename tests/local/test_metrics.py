"""`GET /metrics`: what it shows, to whom, and how much of it."""

from __future__ import annotations

import logging

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from tests.stack import Stack

from cirrusmq.queues.resources import Resource
from cirrusmq_lambda import figures
from cirrusmq_local.stack.metrics import MAX_RESOURCES, Metrics, count_errors

SENT = figures.HAPPENED["sent"]
ORDERS = Resource("alice", "queue", "orders")


@pytest.fixture
def metrics() -> Metrics:
    units = {"Messages": {"read_units": 1.5, "write_units": 3}}
    return Metrics(lambda: {"by_table": units})


def samples(metrics: Metrics) -> list[Sample]:
    return read(metrics.render("")[0].decode())


def read(text: str) -> list[Sample]:
    return [each for family in text_string_to_metric_families(text) for each in family.samples]


def value(found: list[Sample], metric: str, /, **labels: str) -> float | None:
    """The sum of the samples with these labels; None without one."""
    fitting = [
        each.value
        for each in found
        if each.name == metric and labels.items() <= each.labels.items()
    ]
    return sum(fitting) if fitting else None


def test_counters_are_added_up_and_gauges_are_replaced(metrics: Metrics) -> None:
    for number in (2, 3):
        metrics.tell({SENT: {ORDERS: number}, figures.OLDEST: number, figures.UNDECIDED: number})
    found = samples(metrics)
    assert value(found, SENT.name, account="alice", kind="queue", name="orders") == 5
    assert value(found, figures.UNDECIDED.name) == 5
    assert value(found, figures.OLDEST.name) == 3


def test_an_ended_backlog_is_not_shown_any_more(metrics: Metrics) -> None:
    metrics.tell({figures.BACKLOG: {ORDERS: 7}})
    assert value(samples(metrics), figures.BACKLOG.name, name="orders") == 7
    metrics.tell({figures.BACKLOG: {}})
    assert value(samples(metrics), figures.BACKLOG.name) is None


def test_a_negative_step_never_lowers_a_counter(metrics: Metrics) -> None:
    """Prometheus would take that for a new start, and count all of it again."""
    seen = []
    for step in (5, -2, 1, 3):
        metrics.tell({SENT: {ORDERS: step}})
        seen.append(value(samples(metrics), SENT.name))
    assert seen == [5, 5, 5, 7]


def test_more_resources_than_the_most_are_counted_together(metrics: Metrics) -> None:
    for number in range(MAX_RESOURCES + 3):
        metrics.tell({SENT: {Resource("alice", "queue", f"q-{number}"): 1}})
    metrics.tell({SENT: {Resource("alice", "queue", "q-0"): 1}})
    found = samples(metrics)
    assert value(found, SENT.name) == MAX_RESOURCES + 4
    assert value(found, SENT.name, name="(others)") == 3
    assert value(found, SENT.name, name="q-0") == 2
    assert len([each for each in found if each.name == SENT.name]) == MAX_RESOURCES + 1


def test_calls_are_counted_by_function_and_status(metrics: Metrics) -> None:
    for status, seconds in ((201, 0.004), (400, 0.2), (429, 0.2), (503, 40)):
        metrics.note_call("send", status, seconds)
    found = samples(metrics)
    assert value(found, figures.CALLS.name) == 4
    assert value(found, figures.CALLS.name, function="send", status="429") == 1
    assert value(found, figures.REFUSALS.name, function="send") == 1
    below = [
        value(found, "cirrusmq_call_seconds_bucket", le=le) for le in ("0.005", "0.25", "30.0")
    ]
    assert below == [1, 3, 3]
    assert value(found, "cirrusmq_call_seconds_bucket", le="+Inf") == 4
    assert value(found, "cirrusmq_call_seconds_count") == 4
    assert value(found, "cirrusmq_read_units_total", table="Messages") == 1.5


def test_an_error_is_counted_once_below_several_loggers(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "cirrusmq")
    end = count_errors(metrics)
    try:
        for name in ("cirrusmq.maintenance.sweep", "cirrusmq_local.cloud"):
            logging.getLogger(name).error("this is a test of an error")
            logging.getLogger(name).warning("this is none")
    finally:
        end()
    logging.getLogger("cirrusmq").error("nobody counts any more")
    assert value(samples(metrics), figures.ERRORS.name) == 2


def test_open_metrics_are_answered_on_request(metrics: Metrics) -> None:
    text, content_type = metrics.render("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")
    assert metrics.render("*/*")[1].startswith("text/plain")


def test_a_running_service_shows_its_figures_to_an_admin_key(shared_stack: Stack) -> None:
    client = shared_stack.client()
    assert client.put("/queues/measured").status_code in (200, 201)
    sent = client.post("/queues/measured/messages", json={"messages": [{"body": "x"}] * 3})
    assert sent.status_code == 201
    assert client.get("/queues/no-such-queue").status_code == 404
    for name in ("meter", "sweep"):
        assert client.post(f"/local/run/{name}").status_code == 200

    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    found = read(answer.text)
    named = {"account": "local", "kind": "queue", "name": "measured"}
    assert value(found, SENT.name, **named) == 3
    assert value(found, figures.BACKLOG.name, **named) == 3
    assert value(found, figures.CALLS.name, function="send", status="201")
    assert value(found, figures.REFUSALS.name, function="manage")
    assert value(found, "process_cpu_seconds_total")

    def read_units() -> float:
        return float(client.get("/local/capacity").json()["by_table"]["Messages"]["read_units"])

    def scraped() -> float:
        before = read_units()
        client.get("/metrics")
        return read_units() - before

    # What other tests left at work reads meanwhile, now and then; a scrape that reads does always.
    assert 0 in (scraped() for _ in range(20))

    other = client.post("/keys", json={"admin": False}).json()
    user = {"authorization": f"Bearer {other['access_key_id']}:{other['secret']}"}
    with httpx.Client(base_url=shared_stack.url, trust_env=False) as stranger:
        assert stranger.get("/metrics").status_code == 401
        assert stranger.get("/metrics", headers=user).status_code == 403
