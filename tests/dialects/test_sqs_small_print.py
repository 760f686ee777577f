"""Smaller behaviours of SQS and SNS on which programs lean: each was found to differ here once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.dialects.conftest import REGION
from tests.dialects.sns_calls import make_queue
from tests.dialects.test_sns_topics import code
from tests.dialects.test_sqs_queues import redrive_policy

from cirrusmq_local.testing import World


def take(sqs: Any, url: str, **given: Any) -> dict[str, Any]:
    (message,) = sqs.receive_message(QueueUrl=url, **given)["Messages"]
    return dict(message)


@pytest.mark.parametrize("listed", [{"StringListValues": ["x"]}, {"BinaryListValues": [b"x"]}])
def test_lists_of_values_are_refused_and_not_dropped(
    sqs: Any, listed: dict[str, Any], url: str
) -> None:
    attributes = {"a": {"DataType": "String", "StringValue": "x", **listed}}
    given = {"MessageBody": "a", "MessageAttributes": attributes}

    assert code(sqs.send_message, QueueUrl=url, **given) == "InvalidParameterValue"
    batch = sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": "1", **given}])

    assert [each["Code"] for each in batch["Failed"]] == ["InvalidParameterValue"]


def test_a_trace_header_is_a_string(sqs: Any) -> None:
    header = {"AWSTraceHeader": {"DataType": "Number", "StringValue": "1"}}
    given = {"QueueUrl": make_queue(sqs), "MessageBody": "a", "MessageSystemAttributes": header}

    assert code(sqs.send_message, **given) == "InvalidParameterValue"


def test_a_handle_of_another_queue_is_invalid_and_ends_nothing(sqs: Any) -> None:
    url, other = make_queue(sqs), make_queue(sqs, "others")
    sqs.send_message(QueueUrl=url, MessageBody="a")
    handle = take(sqs, url)["ReceiptHandle"]
    wrong, wrong_handle = {"QueueUrl": other, "ReceiptHandle": handle}, "ReceiptHandleIsInvalid"

    assert code(sqs.delete_message, **wrong) == wrong_handle
    assert code(sqs.change_message_visibility, VisibilityTimeout=1, **wrong) == wrong_handle
    entries = [{"Id": "1", "ReceiptHandle": handle}, {"Id": "2", "ReceiptHandle": "none"}]
    failed = sqs.delete_message_batch(QueueUrl=other, Entries=entries)["Failed"]

    assert [each["Code"] for each in failed] == [wrong_handle] * 2
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
    handle = take(sqs, url)["ReceiptHandle"]
    sqs.delete_queue(QueueUrl=url)
    again = make_queue(sqs)
    assert code(sqs.delete_message, QueueUrl=again, ReceiptHandle=handle) == wrong_handle


def test_empty_lists_of_sources_and_tasks_are_there(sqs: Any) -> None:
    dead = make_queue(sqs, "dead")
    make_queue(sqs, **redrive_policy("dead", 2))
    arn = f"arn:aws:sqs:{REGION}:shop:dead"

    sources = sqs.list_dead_letter_source_queues(QueueUrl=make_queue(sqs, "free"))
    tasks = sqs.list_message_move_tasks(SourceArn=arn)

    assert sources["queueUrls"] == []
    assert tasks["Results"] == []
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"]


@pytest.mark.parametrize("fifo", [False, True])
def test_a_dead_letter_of_a_standard_queue_keeps_the_time_of_its_send(
    world: World, sqs: Any, fifo: bool
) -> None:
    end, kind = (".fifo", {"FifoQueue": "true"}) if fifo else ("", {})
    dead = make_queue(sqs, f"dead{end}", **kind)
    redrive = redrive_policy(f"dead{end}", 1)
    url = make_queue(sqs, f"orders{end}", VisibilityTimeout="1", **redrive, **kind)
    ids = {"MessageGroupId": "g", "MessageDeduplicationId": "d"} if fifo else {}
    sqs.send_message(QueueUrl=url, MessageBody="a", **ids)
    names = {"MessageSystemAttributeNames": ["SentTimestamp"]}
    sent = int(take(sqs, url, **names)["Attributes"]["SentTimestamp"])
    world.clock.pass_seconds(2)
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    world.settle()

    shown = int(take(sqs, dead, **names)["Attributes"]["SentTimestamp"])

    assert shown == sent + (2_000 if fifo else 0)


def test_an_extension_of_a_groups_first_message_holds_the_others_back(
    world: World, sqs: Any
) -> None:
    url = make_queue(sqs, "orders.fifo", FifoQueue="true", VisibilityTimeout="10")
    for number in "012":
        ids = {"MessageGroupId": "g", "MessageDeduplicationId": number}
        sqs.send_message(QueueUrl=url, MessageBody=number, **ids)
    first, *_ = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=3)["Messages"]
    handle = first["ReceiptHandle"]
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=15)

    world.clock.pass_seconds(12)
    assert "Messages" not in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=3)
    world.clock.pass_seconds(4)
    again = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=3)["Messages"]

    assert [each["Body"] for each in again] == ["0", "1", "2"]


def test_a_statement_is_added_to_the_policy_of_a_topic(sns: Any, arn: str) -> None:
    policy = json.loads(sns.get_topic_attributes(TopicArn=arn)["Attributes"]["Policy"])
    (own,) = policy["Statement"]
    assert (own["Effect"], own["Resource"]) == ("Allow", arn)
    more = {**own, "Sid": "more", "Principal": {"AWS": "shop"}, "Action": "sns:Publish"}
    policy["Statement"].append({name: more[name] for name in more if name != "Condition"})

    text = json.dumps(policy)
    sns.set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue=text)

    assert sns.get_topic_attributes(TopicArn=arn)["Attributes"]["Policy"] == text
    sns.create_topic(Name="drinks")
    sns.set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue="")
    shown = json.loads(sns.get_topic_attributes(TopicArn=arn)["Attributes"]["Policy"])
    assert shown["Statement"] == [own]
