"""Codes that SQS and SNS were seen to answer, for calls that other implementations test."""

from __future__ import annotations

import json
from typing import Any

from tests.dialects.conftest import REGION
from tests.dialects.test_sns_topics import code
from tests.dialects.test_sqs_letters import TRACE

from cirrusmq_local.testing import World

QUEUES, TOPICS = f"arn:aws:sqs:{REGION}:shop:", f"arn:aws:sns:{REGION}:shop:"
VALUE, ID = "InvalidParameterValue", "AWS.SimpleQueueService.InvalidBatchEntryId"


def to(queue: str, **more: object) -> dict[str, str]:
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": f"{QUEUES}{queue}", **more})}


def test_codes_of_sqs(sqs: Any) -> None:
    url = {"QueueUrl": sqs.create_queue(QueueName="orders")["QueueUrl"]}
    fifo = {"QueueUrl": sqs.create_queue(QueueName="f.fifo", Attributes={"FifoQueue": "true"})}
    fifo = {"QueueUrl": fifo["QueueUrl"]["QueueUrl"], "MessageBody": "a", "MessageGroupId": "g"}
    held = {"Id": "", "ReceiptHandle": "a", "VisibilityTimeout": 1, "MessageBody": "a"}
    keys = {
        "send_message_batch": ("Id", "MessageBody"),
        "delete_message_batch": ("Id", "ReceiptHandle"),
        "change_message_visibility_batch": ("Id", "ReceiptHandle", "VisibilityTimeout"),
    }
    for name, members in keys.items():
        entry = {each: held[each] for each in members}
        for odd in ("", "a:b", "x" * 81):
            given = {**url, "Entries": [{**entry, "Id": odd}]}
            assert code(getattr(sqs, name), **given) == ID, (name, odd)
    empty = {"a": {"DataType": "String", "StringValue": ""}}
    for call, expected, given in (
        (sqs.send_message, VALUE, {**url, "MessageBody": "a", "MessageAttributes": empty}),
        (sqs.send_message, VALUE, {**fifo, "MessageDeduplicationId": "d", "DelaySeconds": 2}),
        (sqs.send_message, VALUE, {**fifo, "MessageDeduplicationId": "d" * 129}),
        (sqs.send_message, VALUE, {**fifo, "MessageGroupId": "a b"}),
        (sqs.receive_message, VALUE, {**url, "MaxNumberOfMessages": 11}),
        (sqs.receive_message, VALUE, {**url, "WaitTimeSeconds": 21}),
        (sqs.receive_message, "InvalidAttributeName", {**url, "AttributeNames": ["Odd"]}),
        (sqs.get_queue_attributes, "InvalidAttributeName", {**url, "AttributeNames": ["Odd"]}),
        (sqs.create_queue, VALUE, {"QueueName": "a", "Attributes": to("none", maxReceiveCount=4)}),
        (sqs.create_queue, VALUE, {"QueueName": "a", "Attributes": to("orders")}),
        (sqs.start_message_move_task, "ResourceNotFoundException", {"SourceArn": f"{QUEUES}none"}),
        (sqs.start_message_move_task, VALUE, {"SourceArn": f"{QUEUES}orders"}),
        (sqs.cancel_message_move_task, VALUE, {"TaskHandle": "odd"}),
    ):
        assert code(call, **given) == expected, given
    named = sqs.receive_message(**url, MessageAttributeNames=["AWS.", "..a"])
    assert "Messages" not in named


def test_codes_of_sns(sns: Any, sqs: Any) -> None:
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    topic = {"TopicArn": sns.create_topic(Name="drinks")["TopicArn"]}
    told = {**topic, "Protocol": "sqs", "Endpoint": f"{QUEUES}orders"}
    arn = {"SubscriptionArn": sns.subscribe(**told)["SubscriptionArn"]}
    fifo = {"TopicArn": sns.create_topic(Name="f.fifo", Attributes={"FifoTopic": "true"})}
    fifo = {"TopicArn": fifo["TopicArn"]["TopicArn"]}
    entry = {"Id": "a", "Message": "a"}
    text, twice = {"DataType": "String", "BinaryValue": b"a"}, [{"Key": "a", "Value": "b"}] * 2
    device = f"{TOPICS}endpoint/APNS/abcdef/0f7d5971"
    for call, given in (
        (sns.publish, {"Message": "a"}),
        (sns.publish, {"Message": "a", "TopicArn": "a:b"}),
        (sns.publish, {"Message": "a", "TargetArn": device}),
        (sns.publish, {**topic, "Message": "a", "Subject": ""}),
        (sns.publish, {**topic, "Message": '{"default": 1}', "MessageStructure": "json"}),
        (sns.publish_batch, {**fifo, "PublishBatchRequestEntries": [entry]}),
        (
            sns.publish_batch,
            {**fifo, "PublishBatchRequestEntries": [{**entry, "MessageGroupId": "g"}]},
        ),
        (sns.subscribe, {**topic, "Protocol": "sqs", "Endpoint": url}),
        (sns.subscribe, {**topic, "Protocol": "odd", "Endpoint": url}),
        (sns.confirm_subscription, {"TopicArn": f"{TOPICS}none", "Token": "odd"}),
        (sns.create_topic, {"Name": "a", "Tags": twice}),
        (sns.create_topic, {"Name": "drinks", "Tags": twice[:1]}),
    ):
        assert code(call, **given) == "InvalidParameter", given
    for name, attribute in (("a", text), ("a^", text), (".a", text), ("a..b", text)):
        given = {**topic, "Message": "a", "MessageAttributes": {name: attribute}}
        assert code(sns.publish, **given) == "ParameterValueInvalid"
    for name, value in (
        ("RawMessageDelivery", ""),
        ("Odd", "a"),
        ("RedrivePolicy", '{"deadLetterTargetArn": "odd"}'),
        ("FilterPolicyScope", "Odd"),
        *(("FilterPolicy", f'{{"a": [{each}]}}') for each in ODD_CONDITIONS),
    ):
        given = {**arn, "AttributeName": name, "AttributeValue": value}
        assert code(sns.set_subscription_attributes, **given) == "InvalidParameter", given
    sns.publish(**topic, Message='{"default": "a", "default": "b"}', MessageStructure="json")


ODD_CONDITIONS = (
    *('["a"]', '{"suffix": "a", "prefix": "b"}', '{"odd": true}', '{"suffix": null}'),
    *('{"exists": null}', '{"numeric": []}', '{"numeric": ["<", 9, ">", 1]}'),
    *('{"numeric": [">", 3, "<", 1]}', '{"numeric": ["=", "0"]}', '{"numeric": [">", 2, 3]}'),
)


def test_the_trace_of_a_publish_is_an_attribute_in_queues(world: World, sns: Any, sqs: Any) -> None:
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    topic = sns.create_topic(Name="drinks")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=f"{QUEUES}orders")
    sns.meta.events.register(
        "before-sign.sns", lambda request, **_: request.headers.add_header("X-Amzn-Trace-Id", TRACE)
    )

    sns.publish(TopicArn=topic, Message="a")
    entries = [{"Id": "b", "Message": "b"}]
    sns.publish_batch(TopicArn=topic, PublishBatchRequestEntries=entries)
    world.settle()

    asked = {"MaxNumberOfMessages": 10, "MessageSystemAttributeNames": ["AWSTraceHeader"]}
    found = sqs.receive_message(QueueUrl=url, **asked)["Messages"]
    assert [each["Attributes"] for each in found] == [{"AWSTraceHeader": TRACE}] * 2
    assert "MessageAttributes" not in json.loads(found[0]["Body"])
