"""Every operation of SQS on a service that runs: by boto3, and as an older one sent it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.dialects.query import error, play, sign, tree

from cirrusmq_local.testing import Reply

RECORDED = json.loads(Path(__file__).with_name("sqs_query_calls.json").read_text("utf-8"))
UNSUPPORTED = "AWS.SimpleQueueService.UnsupportedOperation"
"""Also of a task that ended before it was cancelled: on a service that runs either comes first."""


@pytest.fixture
def url(running_sqs: Any, name: str) -> Iterator[str]:
    made: str = running_sqs.create_queue(QueueName=name)["QueueUrl"]
    yield made
    running_sqs.delete_queue(QueueUrl=made)


def test_every_call_on_queues(running_sqs: Any, url: str, name: str) -> None:
    sqs = running_sqs
    assert sqs.get_queue_url(QueueName=name)["QueueUrl"] == url
    assert sqs.list_queues(QueueNamePrefix=name)["QueueUrls"] == [url]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "7"})
    shown = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert shown["VisibilityTimeout"] == "7"
    sqs.tag_queue(QueueUrl=url, Tags={"team": "shop", "tier": "1"})
    sqs.untag_queue(QueueUrl=url, TagKeys=["tier"])
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "shop"}
    with pytest.raises(sqs.exceptions.UnsupportedOperation):
        sqs.add_permission(QueueUrl=url, Label="l", AWSAccountIds=["1"], Actions=["*"])
    with pytest.raises(sqs.exceptions.UnsupportedOperation):
        sqs.remove_permission(QueueUrl=url, Label="l")


def test_every_call_on_messages(running_sqs: Any, url: str) -> None:
    sqs = running_sqs
    sqs.send_message(QueueUrl=url, MessageBody="0")
    entries = [{"Id": f"m{n}", "MessageBody": str(n)} for n in (1, 2)]
    assert len(sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == 2
    handles: dict[str, str] = {}
    while len(handles) < 3:
        asked = {"MaxNumberOfMessages": 10, "WaitTimeSeconds": 5, "VisibilityTimeout": 600}
        for each in sqs.receive_message(QueueUrl=url, **asked).get("Messages", []):
            handles[each["Body"]] = each["ReceiptHandle"]
    held = {"ReceiptHandle": handles["0"], "VisibilityTimeout": 900}
    sqs.change_message_visibility(QueueUrl=url, **held)
    batch = sqs.change_message_visibility_batch(
        QueueUrl=url, Entries=[{"Id": "a", **held}, {**held, "Id": "b", "ReceiptHandle": "odd"}]
    )
    assert [each["Id"] for each in batch["Successful"]] == ["a"]
    assert [each["Code"] for each in batch["Failed"]] == ["ReceiptHandleIsInvalid"]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=handles["0"])
    deleted = sqs.delete_message_batch(
        QueueUrl=url, Entries=[{"Id": n, "ReceiptHandle": handles[n]} for n in "12"]
    )
    assert [each["Id"] for each in deleted["Successful"]] == ["1", "2"]
    sqs.send_message(QueueUrl=url, MessageBody="purged")
    sqs.purge_queue(QueueUrl=url)
    assert "Messages" not in sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1)


def test_every_call_on_tasks(running_sqs: Any, url: str, name: str) -> None:
    sqs = running_sqs
    source = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    arn = source["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    user = sqs.create_queue(QueueName=f"{name}-user", Attributes={"RedrivePolicy": policy})
    assert sqs.list_dead_letter_source_queues(QueueUrl=url)["queueUrls"] == [user["QueueUrl"]]
    handle = sqs.start_message_move_task(SourceArn=arn)["TaskHandle"]
    expected = "CANCELLED"
    try:
        sqs.cancel_message_move_task(TaskHandle=handle)
    except sqs.exceptions.UnsupportedOperation:
        expected = "COMPLETED"
    (task,) = sqs.list_message_move_tasks(SourceArn=arn)["Results"]
    assert (task["Status"], task["SourceArn"]) == (expected, arn)
    sqs.delete_queue(QueueUrl=user["QueueUrl"])


def test_every_call_of_the_query_protocol(running: dict[str, Any], name: str) -> None:
    """As they were recorded, but for the names of account and queues."""
    key, at = running["signing_key"], running["dialect_url"] + "/"

    def renamed(body: str) -> str:
        body = body.replace("shop%2F", f"{running['account']}%2F")
        body = body.replace("%3Ashop%3A", f"%3A{running['account']}%3A")
        return re.sub(r"(QueueName=|%2F|%3A)(dead|orders)\b", rf"\g<1>{name}-\2", body)

    def post(body: str, _: str) -> Reply:
        content = renamed(body).encode()
        headers = sign(key["access_key_id"], key["secret"], at, content)
        reply = httpx.post(at, content=content, headers=headers, timeout=60)
        return Reply(reply.status_code, {"Content-Type": reply.headers["content-type"]}, reply.text)

    replies = play(RECORDED["calls"], post)
    refused = {each: error(reply) for each, reply in replies.items() if reply.status != 200}
    assert refused.pop("cancel_message_move_task", UNSUPPORTED) == UNSUPPORTED
    assert refused == {"add_permission": UNSUPPORTED, "remove_permission": UNSUPPORTED}
    assert tree(replies["receive_message"]).tag.endswith("ReceiveMessageResponse")
