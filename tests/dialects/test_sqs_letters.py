"""Behaviours of SQS around receives by boto3: traces, lost answers, counts, and the 12 hours."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from tests.dialects.conftest import Key
from tests.dialects.test_sqs_messages import receive, receive_all
from tests.dialects.test_sqs_queues import attributes, redrive_policy
from tests.dialects.test_sqs_refusals import act

from cirrusmq_local.testing import Client, World

FIFO = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
TRACE = "Root=1-3152b799-8954dae64eda91bc9a23a7e8;Parent=7fa8c0f79203be72;Sampled=1"


@pytest.fixture
def fifo(sqs: Any) -> str:
    made: str = sqs.create_queue(QueueName="orders.fifo", Attributes=FIFO)["QueueUrl"]
    return made


def own_trace(value: str) -> dict[str, Any]:
    """The system attribute by which a sender gives a trace itself."""
    return {"AWSTraceHeader": {"DataType": "String", "StringValue": value}}


@pytest.mark.parametrize(
    ("header", "given", "expected"),
    [
        (TRACE, {}, TRACE),
        (TRACE, own_trace("Root=1-2-3"), "Root=1-2-3"),
        (f"Self=1-67891234-abc;{TRACE}", {}, TRACE),
        ("Root=1-67891234-0123456789abcdef01234567", {}, None),
        ("\x7f" * 10, {}, None),
        ("x" * 2_000, {}, None),
        (None, own_trace("Root=1-2-3"), "Root=1-2-3"),
        (None, {}, None),
    ],
)
def test_the_header_of_a_trace_is_an_attribute_of_its_messages(
    sqs: Any, url: str, header: str | None, given: dict[str, Any], expected: str | None
) -> None:
    if header is not None:
        sqs.meta.events.register(
            "before-sign.sqs",
            lambda request, **_: request.headers.add_header("X-Amzn-Trace-Id", header),
        )
    more = {"MessageSystemAttributes": given} if given else {}

    sent = sqs.send_message(QueueUrl=url, MessageBody="a", **more)
    entry = {"Id": "1", "MessageBody": "b", **more}
    (batched,) = sqs.send_message_batch(QueueUrl=url, Entries=[entry])["Successful"]

    found = receive_all(sqs, url, MessageSystemAttributeNames=["AWSTraceHeader"])
    assert [each.get("Attributes", {}).get("AWSTraceHeader") for each in found] == [expected] * 2
    # The digest is of what the sender gave itself: SDKs check it.
    for answer in (sent, batched):
        assert ("MD5OfMessageSystemAttributes" in answer) == bool(given)


def test_a_repeated_receive_has_the_messages_of_the_first_one(
    world: World, sqs: Any, fifo: str
) -> None:
    for number in range(6):
        sqs.send_message(QueueUrl=fifo, MessageBody=str(number), MessageGroupId=str(number % 3))

    first = receive(sqs, fifo, 2, ReceiveRequestAttemptId="lost")
    again = receive(sqs, fifo, 2, ReceiveRequestAttemptId="lost")
    other = receive(sqs, fifo, 2, ReceiveRequestAttemptId="another")

    assert first
    assert [each["ReceiptHandle"] for each in again] == [each["ReceiptHandle"] for each in first]
    assert [each["MessageId"] for each in again] == [each["MessageId"] for each in first]
    assert not {each["MessageId"] for each in other} & {each["MessageId"] for each in first}
    for each in first:
        sqs.delete_message(QueueUrl=fifo, ReceiptHandle=each["ReceiptHandle"])
    later = receive(sqs, fifo, 2, ReceiveRequestAttemptId="lost")
    assert not {each["MessageId"] for each in later} & {each["MessageId"] for each in first}


@pytest.mark.parametrize("seconds", [1, 20, 59])
def test_a_receive_is_repeated_within_a_minute(
    world: World, sqs: Any, fifo: str, seconds: int
) -> None:
    for begin in (0, 30, 17):
        world.clock.pass_seconds(begin)
        body = f"{seconds}-{begin}"
        sqs.send_message(QueueUrl=fifo, MessageBody=body, MessageGroupId=body)
        given: dict[str, Any] = {"ReceiveRequestAttemptId": body, "VisibilityTimeout": 600}

        (first,) = receive(sqs, fifo, **given)
        world.clock.pass_seconds(seconds)
        (again,) = receive(sqs, fifo, **given)

        assert again["ReceiptHandle"] == first["ReceiptHandle"]
        sqs.delete_message(QueueUrl=fifo, ReceiptHandle=again["ReceiptHandle"])


def test_an_attempt_of_a_standard_queue_has_no_effect(sqs: Any, url: str) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="x")
    assert len(receive(sqs, url, ReceiveRequestAttemptId="1")) == 1
    assert receive(sqs, url, ReceiveRequestAttemptId="1") == []


@pytest.mark.parametrize("attempt", ["", "x" * 129, "a b"])
def test_an_invalid_attempt_is_refused(
    world: World, sqs: Any, key: Key, fifo: str, attempt: str
) -> None:
    with pytest.raises(ClientError, match="InvalidParameterValue"):
        receive(sqs, fifo, ReceiveRequestAttemptId=attempt)
    members = {"QueueUrl": fifo, "ReceiveRequestAttemptId": 5}
    assert act(world, key, "ReceiveMessage", members).status == 400


@pytest.mark.parametrize("fifo_queue", [False, True])
def test_the_count_of_receives_goes_on_in_the_dead_letter_queue(
    world: World, sqs: Any, shop: Client, fifo_queue: bool
) -> None:
    end, more = (".fifo", FIFO) if fifo_queue else ("", {})
    group = {"MessageGroupId": "a"} if fifo_queue else {}
    dead = sqs.create_queue(QueueName=f"dead{end}", Attributes=more)["QueueUrl"]
    policy = redrive_policy(f"dead{end}", 2)
    url = sqs.create_queue(QueueName=f"q{end}", Attributes={**more, **policy})["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="x", **group)
    counts = []
    for queue in (url, url, url, dead, dead):
        found = receive(sqs, queue, AttributeNames=["ApproximateReceiveCount"])
        counts += [each["Attributes"]["ApproximateReceiveCount"] for each in found]
        world.settle()
        world.clock.pass_seconds(31)
    assert counts == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("held", "given"),
    [
        ({}, {"FifoThroughputLimit": "perMessageGroupId"}),
        ({}, {"FifoThroughputLimit": "perMessageGroupId", "DeduplicationScope": "queue"}),
        (
            {"FifoThroughputLimit": "perMessageGroupId", "DeduplicationScope": "messageGroup"},
            {"DeduplicationScope": "queue"},
        ),
    ],
)
def test_a_limit_of_groups_needs_their_scope(
    sqs: Any, held: dict[str, str], given: dict[str, str]
) -> None:
    url = sqs.create_queue(QueueName="o.fifo", Attributes={**FIFO, **held})["QueueUrl"]
    before = attributes(sqs, url)
    with pytest.raises(sqs.exceptions.InvalidAttributeValue, match="FifoThroughputLimit"):
        sqs.set_queue_attributes(QueueUrl=url, Attributes=given)
    if not held:
        with pytest.raises(sqs.exceptions.InvalidAttributeValue, match="FifoThroughputLimit"):
            sqs.create_queue(QueueName="new.fifo", Attributes={**FIFO, **given})
    assert attributes(sqs, url) == before
    both = {"FifoThroughputLimit": "perMessageGroupId", "DeduplicationScope": "messageGroup"}
    sqs.set_queue_attributes(QueueUrl=url, Attributes=both)
    assert json.dumps(both, sort_keys=True) == json.dumps(
        attributes(sqs, url, *both), sort_keys=True
    )


def test_a_message_is_hidden_for_12_hours_in_all(world: World, sqs: Any, url: str) -> None:
    for body in "ab":
        sqs.send_message(QueueUrl=url, MessageBody=body)
    first, second = receive(sqs, url)
    hold = {"QueueUrl": url, "ReceiptHandle": first["ReceiptHandle"]}
    sqs.change_message_visibility(**hold, VisibilityTimeout=40_000)
    world.clock.pass_seconds(4_000)
    sqs.change_message_visibility(**hold, VisibilityTimeout=39_000)
    told = (
        "Value 39300 for parameter VisibilityTimeout is invalid. Reason: Total .*beyond the limit"
    )
    with pytest.raises(ClientError, match=rf"\(InvalidParameterValue\) .*: {told}"):
        sqs.change_message_visibility(**hold, VisibilityTimeout=39_300)
    entries = [
        {"Id": "fits", "ReceiptHandle": first["ReceiptHandle"], "VisibilityTimeout": 10},
        {"Id": "long", "ReceiptHandle": first["ReceiptHandle"], "VisibilityTimeout": 40_000},
    ]
    batch = sqs.change_message_visibility_batch(QueueUrl=url, Entries=entries)
    assert [each["Id"] for each in batch["Successful"]] == ["fits"]
    assert [(each["Id"], each["Code"]) for each in batch["Failed"]] == [
        ("long", "InvalidParameterValue")
    ]
    assert second["Body"] != first["Body"]
