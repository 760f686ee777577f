"""boto3's SQS against the service as its users start it, by another endpoint and key alone."""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path
from typing import Any

import boto3
import pytest
from tests.dialects.conftest import REGION, running_client
from tests.dialects.programs import (
    check_example,
    check_node,
    needs_node,
    run_example,
)
from tests.stack import Start


@pytest.fixture
def url(running_sqs: Any) -> str:
    """A queue that no other test has."""
    made: str = running_sqs.create_queue(QueueName=f"q-{uuid.uuid4().hex}")["QueueUrl"]
    return made


def test_boto3s_resources_work_too(running: dict[str, Any], url: str) -> None:
    key = running["signing_key"]
    queue = boto3.resource(
        "sqs",
        endpoint_url=running["dialect_url"],
        region_name=REGION,
        aws_access_key_id=key["access_key_id"],
        aws_secret_access_key=key["secret"],
    ).Queue(url)
    queue.send_messages(Entries=[{"Id": str(each), "MessageBody": str(each)} for each in range(10)])
    found: list[str] = []
    while len(found) < 10:
        messages = queue.receive_messages(MaxNumberOfMessages=10, WaitTimeSeconds=2)
        found += [message.body for message in messages]
        queue.delete_messages(
            Entries=[{"Id": m.message_id, "ReceiptHandle": m.receipt_handle} for m in messages]
        )
    assert sorted(found) == [str(each) for each in range(10)]


def test_the_key_is_good_after_a_restart_and_the_port_can_be_left_closed(start: Start) -> None:
    first = start()
    held = first.connection()
    first.end()
    second = start("--dialect-port", "0")
    assert "dialect_url" not in second.connection()
    code, out, _ = second.end()
    assert (code, "dialects" in out) == (0, False)
    third = start()
    again = third.connection()
    assert again["signing_key"] == held["signing_key"]
    assert running_client(again).list_queues()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_without_a_free_port_behind_its_own_it_says_so_and_goes_on(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as next_one:
        port = next_one.getsockname()[1]
        up = start("--port", str(port - 1))
        if not up.ready:  # that one is in use as well
            pytest.skip(up.errors())
        assert "dialect_url" not in up.connection()
        assert f"port {port} is in use; take a --dialect-port" in up.end()[2]


@pytest.fixture
def env(running: dict[str, Any]) -> dict[str, str]:
    """The environment of a program no line of which names the service."""
    return {
        **{name: held for name, held in os.environ.items() if "AWS" not in name},
        "AWS_ENDPOINT_URL_SQS": running["dialect_url"],
        "AWS_ACCESS_KEY_ID": running["signing_key"]["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": running["signing_key"]["secret"],
        "AWS_DEFAULT_REGION": REGION,
    }


@pytest.mark.usefixtures("orders")
def test_the_example_runs_with_another_endpoint_and_key_in_its_environment(
    env: dict[str, str], tmp_path: Path
) -> None:
    """As the manual has it."""
    check_example("orders.py", env, tmp_path, ["got 2 coffee", "got 2 tea"])


def test_the_first_steps_of_boto3s_own_guide_run_too(env: dict[str, str], tmp_path: Path) -> None:
    made, listed, sent, failed, *got = run_example("first_steps.py", env, tmp_path)
    assert (made, listed, failed) == ("made 1 first-steps", "listed True", "failed None")
    assert sent.startswith("sent Msg-")
    assert sorted(got) == [
        "got with an author by Ada",
        "got with one as well by Ada",
        "got without one by None",
    ]


@needs_node("@aws-sdk/client-sqs")
def test_the_sdk_for_javascript_works_too(running: dict[str, Any], tmp_path: Path) -> None:
    """It checks the digest of every message."""
    check_node("sqs_client.mjs", running, f"js-{uuid.uuid4().hex}", tmp_path)
