"""Functions of a run: the one in the service asks here, and what it does is judged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cirrusmq_local.verifying import functions
from cirrusmq_local.verifying.function import handle
from cirrusmq_local.verifying.functions import BrokenFunctions, Functions
from cirrusmq_local.verifying.remote import Service


class _Listed(Service):
    """A service that has the function."""

    def ask(self, method: str, path: str, body: object = None, tries: int = 60) -> Any:
        return {"counts": {"active": self.kept}}

    kept = 0


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Functions]:
    monkeypatch.setattr(functions, "DONE_SECONDS", 0)
    monkeypatch.setattr(functions, "GONE_SECONDS", 0)
    monkeypatch.setattr(functions, "_LASTS", (0.0,))
    part = Functions(_Listed("http://127.0.0.1:9", ""), "v", 1)
    part.make_by(part._service)
    yield part
    part.remove()


def _event(part: Functions, *labels: str, count: int = 1) -> dict[str, Any]:
    url = f"http://127.0.0.1:{part._listener.server_port}/"
    system = {"ApproximateReceiveCount": str(count), "SentTimestamp": "0", "SenderId": "acme"}
    return {
        "Records": [
            {
                "messageId": label,
                "receiptHandle": "r",
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


def test_what_is_done_must_be_gone(made: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Listed, "kept", 2)

    assert _told(made) == ["2 messages that its function has done are still there"]


def test_what_is_received_before_is_handed_over_alone(made: Functions) -> None:
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
