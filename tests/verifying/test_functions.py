"""Functions of a run: the one in the service asks here, and what it does is judged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from cirrusmq_local.judging.pausers import PAUSE
from cirrusmq_local.verifying import functions
from cirrusmq_local.verifying.function import handle
from cirrusmq_local.verifying.function_parts import (
    FairFunctions,
    OrderedFunctions,
    PausedFunctions,
)
from cirrusmq_local.verifying.functions import BrokenFunctions, Functions
from cirrusmq_local.verifying.notifications import Notifications
from cirrusmq_local.verifying.remote import Service
from cirrusmq_local.verifying.scoped_keys import _CALLS, ScopedKeys, _Key


class _Listed(Service):
    """A service that has the function."""

    def ask(self, method: str, path: str, body: object = None, tries: int = 60) -> Any:
        return {"counts": {"active": self.kept}}

    kept = 0


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Functions]:
    for name in ("DONE_SECONDS", "LOST_SECONDS", "GONE_SECONDS"):
        monkeypatch.setattr(functions, name, 0)
    monkeypatch.setattr(Functions, "lasts", (0.0,))
    part = Functions(_Listed("http://127.0.0.1:9", ""), "v", 1)
    part.make_by(part._service, part._service)
    yield part
    part.remove()


def _event(part: Functions, *labels: str, count: int = 1) -> dict[str, Any]:
    url = f"http://127.0.0.1:{part._listener.server_port}/"
    system = {"ApproximateReceiveCount": str(count), "SentTimestamp": "0", "SenderId": "acme"}
    return {
        "Records": [
            {
                "messageId": label,
                "receiptHandle": f"receipt of {label}",
                "body": f"{label} {url}",
                "attributes": system,
            }
            for label in labels
        ]
    }


def _told(part: Functions) -> list[str]:
    part.drain()
    part.judge()
    return [each.promise for _, each in part.posted.violations]


def test_the_function_asks_the_run(made: Functions) -> None:
    made._sent = {"a", "b", "c"}

    answer = handle(_event(made, "a", "b"), None)

    failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
    assert made._done == {"a", "b"} - failed
    lost = _told(made)
    assert "lost: c was never done by its function" in lost
    assert len(lost) == 1 + len(failed)
    assert made.posted.judged == {"functions": 1}


def test_done_messages_must_be_gone(made: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Listed, "kept", 2)

    assert _told(made) == ["2 messages that its function has done are still there"]


def test_redelivered_messages_are_handed_over_alone(made: Functions) -> None:
    handle(_event(made, "a", "b", count=2), None)

    assert _told(made) == ["what was received before is not handed over alone"]


def test_a_fault_of_the_machine_leaves_the_losses_alone(made: Functions) -> None:
    made.disturbed, made._sent = True, {"a"}
    handle(_event(made, "b", "c", count=2), None)

    assert _told(made) == ["lost: a was never done by its function"]


def test_messages_of_others_are_not_posted_anywhere(made: Functions) -> None:
    event = _event(made, "a")
    event["Records"][0]["body"] = "a http://example.com/"

    with pytest.raises(ValueError, match="not of a run"):
        handle(event, None)


def test_a_function_with_a_breaker_fails_at_all_before_it_is_well() -> None:
    part = BrokenFunctions(_Listed("http://127.0.0.1:9", ""), "v", 1)
    part._well_at = float("inf")

    told = part.answer(json.loads(json.dumps(_event(part, "a", "b"))))

    assert [each["itemIdentifier"] for each in told["batchItemFailures"]] == ["a", "b"]
    part.remove()


def test_behind_a_failure_the_group_is_left_untried(monkeypatch: pytest.MonkeyPatch) -> None:
    part = OrderedFunctions(_Listed("http://127.0.0.1:9", ""), "v", 1)
    event = _event(part, "red1", "blue1", "red2", "blue2")
    for record in event["Records"]:
        record["attributes"] = record["attributes"] | {"MessageGroupId": record["messageId"][:-1]}
    monkeypatch.setattr(part, "_fails", lambda message_id: message_id == "red1")

    told = part.answer(json.loads(json.dumps(event)))

    assert told["batchItemFailures"] == [
        {"itemIdentifier": "red1"},
        {"itemIdentifier": "red2", "tried": False},
    ]
    part.remove()


@pytest.mark.parametrize(("count", "kept"), [(13, True), (14, False)])
def test_a_group_gets_no_more_than_its_rate(count: int, kept: bool) -> None:
    part = FairFunctions(_Listed("http://127.0.0.1:9", ""), "v", 1)
    part.make_by(part._service, part._service)
    event = _event(part, *(f"m{number}" for number in range(count)))
    for record in event["Records"]:
        record["attributes"] = record["attributes"] | {"MessageGroupId": "loud"}

    part.answer(event)
    part.judge()

    told = [each.promise for name, each in part.posted.violations if name == "fair"]
    text = f"{count} were received of loud by orders in 10000 ms, at most 13 may be"
    assert told == ([] if kept else [text])
    part.remove()


def test_a_call_during_a_pause_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    part = PausedFunctions(_Listed("http://127.0.0.1:9", ""), "v", 1)
    part.make_by(part._service, part._service)
    history, now_ms = part.remote.history, part.remote.stage.now_ms()
    pause = history.begin("pauser", PAUSE, "orders", {}, now_ms - 60_000)
    history.end(pause, "answered", None, now_ms - 60_000)

    part.answer(_event(part, "a"))

    monkeypatch.setattr(functions, "DONE_SECONDS", 0)
    assert "hand over while it was paused" in _told(part)
    assert part.posted.judged["paused"] == 1
    part.remove()


@pytest.mark.parametrize(
    ("queue", "body", "told"),
    [
        ("orders", {"Type": "Notification", "TopicArn": "arn", "Message": "published.1"}, ""),
        ("dead", "published.1", "published.1 of dead is not shown as a notification"),
        ("logged", {"Message": "published.1"}, "published.1 of logged is not shown as"),
        ("orders", "sent.1", ""),
        ("dead", {"Type": "Notification", "TopicArn": "arn", "Message": "sent.1"}, "is shown as"),
    ],
)
def test_a_publish_arrives_as_a_notification(queue: str, body: Any, told: str) -> None:
    part = Notifications(_Listed("http://127.0.0.1:9", ""), "v", 1)
    part._arn, part._published = "arn", {"published.1"}
    call = part.remote.history.begin("receiver", "sqs receive", queue, {}, 0)

    part._look(queue, body if isinstance(body, str) else json.dumps(body), call)
    part.judge()

    found = [each.promise for name, each in part.posted.violations if name == "dialects"]
    assert [told in each for each in found] == ([True] if told else [])
    if queue == "logged":
        assert "lost: published.1 never came to orders" in [
            each.promise for _, each in part.posted.violations
        ]


@pytest.mark.parametrize(
    ("status", "told"),
    [(200, "and is not allowed"), (403, "and is allowed"), (503, "")],
)
def test_a_key_obeys_its_scope(status: int, told: str) -> None:
    """A service that answers all calls in one way is found out, if it is not out of order."""
    part = ScopedKeys(_Listed("http://127.0.0.1:9", ""), "v", 1)
    answers = httpx.MockTransport(lambda request: httpx.Response(status, json={}))
    service = Service("http://test", "")
    service._held.client = httpx.Client(base_url="http://test", transport=answers)
    key = _Key("send orders", {"orders": "send"}, service)

    for call in _CALLS:
        for queue in ("orders", "other"):
            part._try(key, call, queue)
    part.judge()

    found = [each.promise for _, each in part.posted.violations]
    assert bool(found) is bool(told)
    assert all(told in each for each in found)
    assert {*part.posted.judged} == {"keys", "access"}


def test_notifications_need_an_endpoint() -> None:
    part = Notifications(_Listed("http://127.0.0.1:9", ""), "v", 1)

    with pytest.raises(ValueError, match="is not known"):
        part.make_by(part._service, part._service)
    part.remove()
