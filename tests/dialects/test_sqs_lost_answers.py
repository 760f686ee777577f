"""Connections that break in the middle of calls of SQS, and an SDK that repeats them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from botocore.config import Config
from tests.dialects.conftest import running_client
from tests.dialects.cutter import Cutter


@pytest.fixture
def cut_sqs(running: dict[str, Any], cutter: Cutter) -> Any:
    """boto3 behind it, with the repeats that it makes by default."""
    repeats = Config(retries={"mode": "standard"})
    return running_client(running, endpoint_url=cutter.url, config=repeats)


def drain(sqs: Any, url: str) -> list[str]:
    found: list[str] = []
    while some := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get(
        "Messages"
    ):
        found += [each["Body"] for each in some]
    return found


@pytest.mark.parametrize("passes", [0, 20, 300])
def test_a_broken_off_request_stores_nothing_and_is_repeated(
    cutter: Cutter, cut_sqs: Any, running_sqs: Any, passes: int
) -> None:
    url = running_sqs.create_queue(QueueName=f"q-{uuid.uuid4().hex}")["QueueUrl"]
    cutter.passes = passes
    cut_sqs.send_message(QueueUrl=url, MessageBody="once")
    assert cutter.requests >= 2
    assert drain(running_sqs, url) == ["once"]


def test_a_send_with_a_lost_answer_is_repeated_and_stored_again_as_in_sqs(
    cutter: Cutter, cut_sqs: Any, running_sqs: Any
) -> None:
    url = running_sqs.create_queue(QueueName=f"q-{uuid.uuid4().hex}")["QueueUrl"]
    cutter.loses = 1
    cut_sqs.send_message(QueueUrl=url, MessageBody="twice")
    assert drain(running_sqs, url) == ["twice", "twice"]


def test_with_a_deduplication_id_it_is_stored_once(
    cutter: Cutter, cut_sqs: Any, running_sqs: Any
) -> None:
    url = running_sqs.create_queue(
        QueueName=f"q-{uuid.uuid4().hex}.fifo", Attributes={"FifoQueue": "true"}
    )["QueueUrl"]
    cutter.loses = 1
    cut_sqs.send_message(
        QueueUrl=url, MessageBody="once", MessageGroupId="a", MessageDeduplicationId="1"
    )
    assert drain(running_sqs, url) == ["once"]
