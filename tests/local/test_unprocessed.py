"""The queue of what failed: on one machine and in SQS, by the same adapter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest
from moto import mock_aws

from cirrusmq.wiring.adapters import FailureQueue
from cirrusmq_local.cloud.aws import make_session
from cirrusmq_local.cloud.functions import Functions
from cirrusmq_local.cloud.invocation import invoke
from cirrusmq_local.cloud.template import TEMPLATE, Template, load
from cirrusmq_local.cloud.unprocessed import UnprocessedQueue

NOW_MS = 1_795_000_000_000


@pytest.fixture
def template() -> Template:
    return load(TEMPLATE)


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> UnprocessedQueue:
    monkeypatch.setenv("UNPROCESSED_QUEUE", "Unprocessed")
    return UnprocessedQueue(lambda: NOW_MS)


def adapter(queue: UnprocessedQueue) -> FailureQueue:
    functions = Functions({})
    return FailureQueue(make_session(lambda: functions, None, queue))


def test_failures_are_read_and_removed(queue: UnprocessedQueue) -> None:
    for number in range(12):
        queue.put({"number": number})
    reader = adapter(queue)

    first = reader.receive()
    assert [json.loads(each.text) for each in first] == [{"number": n} for n in range(10)]
    assert all(each.is_new for each in first)
    for each in first:
        reader.remove(each.handle)
    assert [json.loads(each.text)["number"] for each in reader.receive()] == [10, 11]
    assert reader.receive() == []  # hidden
    assert [body["number"] for body in queue.bodies()] == [10, 11]


def test_it_is_there_after_a_restart(tmp_path: Path) -> None:
    path, now = tmp_path / "unprocessed.jsonl", [NOW_MS]
    queue = UnprocessedQueue(lambda: now[0], path)
    queue.put({"number": 1})
    queue.put({"number": 2})
    (first, _) = queue.receive()
    queue.remove(first.handle)

    again = UnprocessedQueue(lambda: now[0], path)

    (left,) = again.receive()
    assert json.loads(left.text) == {"number": 2}
    assert not left.is_new
    assert again.receive() == []
    now[0] += 5_000
    assert len(again.receive()) == 1


@pytest.mark.parametrize(("role", "may"), [("sweep", True), ("push", False)])
def test_only_the_sweep_may_read_it(
    queue: UnprocessedQueue, template: Template, role: str, may: bool
) -> None:
    queue.put({})
    reader = adapter(queue)
    function = next(each for each in template.functions if each.folder.name == role)

    def handler(event: Any, context: Any) -> int:
        received = reader.receive()
        for each in received:
            reader.remove(each.handle)
        return len(received)

    if may:
        assert invoke(function, handler, {}, lambda: 0.0) == 1
    else:
        with pytest.raises(Exception, match="not allowed sqs:ReceiveMessage"):
            invoke(function, handler, {}, lambda: 0.0)
    assert len(queue.bodies()) == (0 if may else 1)


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with mock_aws():
        yield boto3.client("sqs")


def test_the_adapter_speaks_to_sqs(sqs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    url = sqs.create_queue(QueueName="unprocessed")["QueueUrl"]
    monkeypatch.setenv("UNPROCESSED_QUEUE", url)
    sqs.send_message(QueueUrl=url, MessageBody='{"number": 1}')
    reader = FailureQueue(botocore.session.get_session())

    (got,) = reader.receive()

    assert (json.loads(got.text), got.is_new) == ({"number": 1}, True)
    assert reader.receive() == []
    reader.remove(got.handle)
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert attributes["ApproximateNumberOfMessages"] == "0"
    assert attributes["ApproximateNumberOfMessagesNotVisible"] == "0"
