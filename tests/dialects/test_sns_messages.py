"""Publishing by boto3's client of SNS to queues that boto3's client of SQS receives from."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from tests.dialects.conftest import REGION, MakeKey, client_of
from tests.dialects.sns_calls import change, make_queue, subscribe
from tests.dialects.test_sns_topics import code

from cirrusmq.access.scopes import Listed, Scope
from cirrusmq_local.testing import World


@pytest.fixture
def url(sns: Any, sqs: Any, arn: str) -> str:
    made = make_queue(sqs)
    subscribe(sns, arn, RawMessageDelivery="true")
    return made


def received(world: World, sqs: Any, url: str) -> list[dict[str, Any]]:
    """What waits in the queue, with its attributes."""
    world.settle()
    given = {"MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"]}
    found: list[dict[str, Any]] = sqs.receive_message(QueueUrl=url, **given).get("Messages", [])
    return found


def test_a_message_comes_raw_with_its_attributes(
    world: World, sns: Any, sqs: Any, arn: str, url: str
) -> None:
    attributes = {
        "a.b-c": {"DataType": "String", "StringValue": "x & <y>"},
        "cups": {"DataType": "Number", "StringValue": "2"},
        "list": {"DataType": "String.Array", "StringValue": '["a", 1, true, null]'},
        "bytes": {"DataType": "Binary", "BinaryValue": b"\0\1"},
    }
    answer = sns.publish(
        TopicArn=arn, Message="tea ☕", Subject="a subject", MessageAttributes=attributes
    )
    assert str(uuid.UUID(answer["MessageId"])) == answer["MessageId"]
    (message,) = received(world, sqs, url)
    assert message["Body"] == "tea ☕"
    assert message["MessageAttributes"] == attributes


def test_a_target_is_a_topic_and_a_group_is_kept(
    world: World, sns: Any, sqs: Any, arn: str, url: str
) -> None:
    sns.publish(TargetArn=arn, Message="a", MessageGroupId="g")
    world.settle()
    names = {"MessageSystemAttributeNames": ["MessageGroupId"]}
    (message,) = sqs.receive_message(QueueUrl=url, **names)["Messages"]
    assert message["Attributes"] == {"MessageGroupId": "g"}


def test_a_structure_has_a_default(world: World, sns: Any, sqs: Any, arn: str, url: str) -> None:
    for given in (
        {"default": "a"},
        {"default": "b", "email": "c", "sms": "d"},
        {"default": "x", "sqs": "e", "http": "e", "https": "e"},
    ):
        sns.publish(TopicArn=arn, Message=json.dumps(given), MessageStructure="json")
    bodies = {message["Body"] for message in received(world, sqs, url)}
    assert bodies == {"a", "b", "e"}
    for text in ("{", "[]", "{}", '{"sqs": "a"}', '{"default": 1}', '{"default": "", "x": "y"}'):
        given_text = {"TopicArn": arn, "Message": text, "MessageStructure": "json"}
        assert code(sns.publish, **given_text) == "InvalidParameter", text


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"Message": ""}, "InvalidParameter"),
        ({"Message": "x" * 262_145}, "InvalidParameter"),
        ({"Message": "a", "Subject": "x" * 101}, "InvalidParameter"),
        ({"Message": "a", "Subject": "a\nb"}, "InvalidParameter"),
        ({"Message": "a", "Subject": ""}, "InvalidParameter"),
        ({"Message": "a", "MessageStructure": "xml"}, "InvalidParameter"),
        ({"Message": "a", "MessageDeduplicationId": "d"}, "InvalidParameter"),
        ({"Message": "a", "PhoneNumber": "+491"}, "InvalidParameter"),
    ],
)
def test_invalid_messages_are_refused(
    sns: Any, arn: str, given: dict[str, Any], expected: str
) -> None:
    assert code(sns.publish, TopicArn=arn, **given) == expected


@pytest.mark.parametrize(
    "given",
    [{}, {"TopicArn": "a:b"}, {"TargetArn": f"arn:aws:sns:{REGION}:shop:endpoint/APNS/app/1"}],
)
def test_a_publish_needs_the_arn_of_a_topic(sns: Any, given: dict[str, str]) -> None:
    assert code(sns.publish, Message="a", **given) == "InvalidParameter"


@pytest.mark.parametrize(
    "attribute",
    [
        {"DataType": "", "StringValue": "a"},
        {"DataType": "Number", "StringValue": "two"},
        {"DataType": "String.Array", "StringValue": "a"},
        {"DataType": "String.Array", "StringValue": '[["a"]]'},
    ],
)
def test_invalid_attributes_are_refused(sns: Any, arn: str, attribute: dict[str, str]) -> None:
    given = {"TopicArn": arn, "Message": "a", "MessageAttributes": {"name": attribute}}
    assert code(sns.publish, **given) == "ParameterValueInvalid"


def test_the_largest_message_is_taken(world: World, sns: Any, sqs: Any, arn: str, url: str) -> None:
    sns.publish(TopicArn=arn, Message="x" * 262_144)
    (message,) = received(world, sqs, url)
    assert len(message["Body"]) == 262_144


def test_a_batch_is_published_whole_or_not_at_all(
    world: World, sns: Any, sqs: Any, arn: str, url: str
) -> None:
    """SNS refuses a batch for the content of one message."""
    entries = [{"Id": f"e{number}", "Message": f"m{number}"} for number in range(9)]
    empty: dict[str, Any] = {"StringValue": "", "DataType": "String"}
    for odd, expected in (
        ({"Message": ""}, "InvalidParameter"),
        ({"Message": "{}", "MessageStructure": "json"}, "InvalidParameter"),
        ({"Message": "a", "MessageAttributes": {"a": empty}}, "ParameterValueInvalid"),
    ):
        refused = [*entries, {"Id": "odd", **odd}]
        given = {"TopicArn": arn, "PublishBatchRequestEntries": refused}
        assert code(sns.publish_batch, **given) == expected
    assert received(world, sqs, url) == []

    answer = sns.publish_batch(TopicArn=arn, PublishBatchRequestEntries=entries)

    assert [each["Id"] for each in answer["Successful"]] == [each["Id"] for each in entries]
    assert len({each["MessageId"] for each in answer["Successful"]}) == 9
    assert answer["Failed"] == []
    bodies = {message["Body"] for message in received(world, sqs, url)}
    assert bodies == {each["Message"] for each in entries}


@pytest.mark.parametrize(
    ("ids", "size", "expected"),
    [
        ([], 1, "EmptyBatchRequest"),
        (["a", "a"], 1, "BatchEntryIdsNotDistinct"),
        (["a b"], 1, "InvalidBatchEntryId"),
        ([""], 1, "InvalidBatchEntryId"),
        ([f"e{number}" for number in range(11)], 1, "TooManyEntriesInBatchRequest"),
        (["a", "b"], 131_073, "BatchRequestTooLong"),
        (["a"], 262_145, "BatchRequestTooLong"),
    ],
)
def test_invalid_batches_are_refused(
    sns: Any, arn: str, ids: list[str], size: int, expected: str
) -> None:
    entries = [{"Id": each, "Message": "x" * size} for each in ids]
    refused = code(sns.publish_batch, TopicArn=arn, PublishBatchRequestEntries=entries)
    assert refused == expected


def test_publishing_needs_a_topic_and_the_right_to_send(
    world: World, sns: Any, arn: str, make_key: MakeKey
) -> None:
    missing = arn.replace("drinks", "others")
    assert code(sns.publish, TopicArn=missing, Message="a") == "NotFound"
    narrow = client_of(world, make_key("shop", scope=Scope(send=Listed(topics=("foods",)))), "sns")
    assert code(narrow.publish, TopicArn=arn, Message="a") == "AuthorizationError"
    bob = client_of(world, make_key("bob"), "sns")
    assert code(bob.publish, TopicArn=arn, Message="a") == "AuthorizationError"
    world.client("shop").put("/topics/drinks/grants/bob", {"permission": "publish"})
    assert bob.publish(TopicArn=arn, Message="a")["MessageId"]


@pytest.mark.parametrize(
    ("policy", "passing"),
    [
        ({"event.kind": ["made"]}, ["dotted"]),
        ({"list": ["b"]}, ["array"]),
        ({"list": [{"numeric": [">", 1]}]}, ["array"]),
        ({"list": [{"exists": False}]}, ["dotted", "plain"]),
        ({"bytes": [{"exists": True}]}, []),
        ({"region": [{"prefix": "eu"}]}, ["plain"]),
    ],
)
def test_policies_see_names_and_types_as_they_were_sent(
    world: World,
    sns: Any,
    sqs: Any,
    arn: str,
    url: str,
    policy: dict[str, Any],
    passing: list[str],
) -> None:
    (known,) = sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]
    change(sns, known["SubscriptionArn"], "FilterPolicy", json.dumps(policy))
    text, array = {"DataType": "String"}, {"DataType": "String.Array"}
    for body, attributes in {
        "dotted": {"event.kind": {**text, "StringValue": "made"}},
        "array": {"list": {**array, "StringValue": '["a", "b", 2]'}},
        "plain": {
            "region": {**text, "StringValue": "eu-1"},
            "bytes": {"DataType": "Binary", "BinaryValue": b"\0"},
        },
    }.items():
        sns.publish(TopicArn=arn, Message=body, MessageAttributes=attributes)
    assert sorted(each["Body"] for each in received(world, sqs, url)) == sorted(passing)
