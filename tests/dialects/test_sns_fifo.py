"""FIFO topics of SNS by boto3: groups in order, each message once within five minutes."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from tests.dialects.conftest import REGION
from tests.dialects.sns_calls import make_queue, subscribe
from tests.dialects.test_sns_topics import code

from cirrusmq_local.testing import Client, World

FIFO = {"FifoTopic": "true"}


@pytest.fixture
def arn(sns: Any) -> str:
    made: str = sns.create_topic(Name="drinks.fifo", Attributes=FIFO)["TopicArn"]
    return made


def drain(world: World, sqs: Any, url: str) -> list[dict[str, Any]]:
    """All messages of a queue, each deleted, in the order of their receives."""
    world.settle()
    found: list[dict[str, Any]] = []
    given = {"MaxNumberOfMessages": 10, "MessageSystemAttributeNames": ["All"]}
    while page := sqs.receive_message(QueueUrl=url, **given).get("Messages", []):
        found += page
        for each in page:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
    return found


def test_groups_come_in_order_into_fifo_queues(world: World, sns: Any, sqs: Any, arn: str) -> None:
    url = make_queue(sqs, "orders.fifo")
    subscribe(sns, arn, "orders.fifo", RawMessageDelivery="true")
    for number in range(6):
        world.clock.pass_seconds(0.01)
        sns.publish(
            TopicArn=arn,
            Message=str(number),
            MessageGroupId="ab"[number % 2],
            MessageDeduplicationId=f"d{number}",
        )
    entries = [
        {"Id": f"e{n}", "Message": str(n), "MessageGroupId": "a", "MessageDeduplicationId": f"d{n}"}
        for n in range(6, 9)
    ]
    world.clock.pass_seconds(0.01)
    answer = sns.publish_batch(TopicArn=arn, PublishBatchRequestEntries=entries)
    numbers = [each["SequenceNumber"] for each in answer["Successful"]]
    assert numbers == sorted(set(numbers))
    found = drain(world, sqs, url)
    by_group: dict[str, list[str]] = {"a": [], "b": []}
    for each in found:
        by_group[each["Attributes"]["MessageGroupId"]].append(each["Body"])
        assert each["Attributes"]["MessageDeduplicationId"] == f"d{each['Body']}"
    assert by_group == {"a": [*"024678"], "b": [*"135"]}


def test_a_notification_has_the_sequence_number(world: World, sns: Any, sqs: Any, arn: str) -> None:
    urls = [make_queue(sqs, name) for name in ("orders.fifo", "standard")]
    for name in ("orders.fifo", "standard"):
        subscribe(sns, arn, name)
    sent = []
    for number in range(3):
        world.clock.pass_seconds(0.01)
        given = {"MessageGroupId": "g", "MessageDeduplicationId": str(number)}
        sent.append(sns.publish(TopicArn=arn, Message=str(number), **given))
    numbers = [each["SequenceNumber"] for each in sent]
    assert numbers == sorted(set(numbers))
    assert all(len(each) == 20 and each.isdigit() for each in numbers)
    for url in urls:
        told = [json.loads(each["Body"]) for each in drain(world, sqs, url)]
        assert sorted(each["SequenceNumber"] for each in told) == numbers
        assert {each["TopicArn"] for each in told} == {arn}


def test_a_repetition_within_five_minutes_comes_once(
    world: World, sns: Any, sqs: Any, arn: str
) -> None:
    url = make_queue(sqs, "orders.fifo")
    subscribe(sns, arn, "orders.fifo", RawMessageDelivery="true")
    given = {"TopicArn": arn, "MessageGroupId": "g", "MessageDeduplicationId": "same"}
    first = sns.publish(Message="one", **given)
    assert sns.publish(Message="two", **given)["MessageId"] == first["MessageId"]
    assert [each["Body"] for each in drain(world, sqs, url)] == ["one"]
    world.clock.pass_seconds(301)
    sns.publish(Message="three", **given)
    assert [each["Body"] for each in drain(world, sqs, url)] == ["three"]


def test_the_content_may_be_the_deduplication_id(
    world: World, sns: Any, sqs: Any, arn: str
) -> None:
    url = make_queue(sqs, "orders.fifo")
    subscribe(sns, arn, "orders.fifo", RawMessageDelivery="true")
    given = {"TopicArn": arn, "Message": "tea", "MessageGroupId": "g"}
    with pytest.raises(sns.exceptions.InvalidParameterException, match="ContentBased"):
        sns.publish(**given)
    sns.set_topic_attributes(
        TopicArn=arn, AttributeName="ContentBasedDeduplication", AttributeValue="true"
    )
    shown = sns.get_topic_attributes(TopicArn=arn)["Attributes"]
    assert (shown["FifoTopic"], shown["ContentBasedDeduplication"]) == ("true", "true")
    sns.publish(**given)
    sns.publish(**given)
    (message,) = drain(world, sqs, url)
    digest = hashlib.sha256(b"tea").hexdigest()
    assert message["Attributes"]["MessageDeduplicationId"] == digest


def test_fifo_topics_have_own_rules(sns: Any, sqs: Any, shop: Client, arn: str) -> None:
    for name in ("orders.fifo", "standard"):
        make_queue(sqs, name)
    once = {"TopicArn": arn, "Message": "a"}
    assert code(sns.publish, **once) == "InvalidParameter"
    assert code(sns.publish, **once, MessageDeduplicationId="d") == "InvalidParameter"
    for attributes, name in (({}, "a.fifo"), (FIFO, "a"), ({"FifoTopic": "false"}, "a.fifo")):
        refused = code(sns.create_topic, Name=name, Attributes=attributes)
        assert refused == "InvalidParameter", name
    assert code(sns.create_topic, Name="a.b") == "InvalidParameter"
    assert code(sns.create_topic, Name=".fifo", Attributes=FIFO) == "InvalidParameter"
    for endpoint, protocol in (("https://hooks.example/", "https"), ("a.fifo", "sqs")):
        where = endpoint if protocol == "https" else f"arn:aws:sqs:{REGION}:shop:{endpoint}"
        given = {"TopicArn": arn, "Protocol": protocol, "Endpoint": where}
        assert code(sns.subscribe, **given) == "InvalidParameter"
    assert sns.list_subscriptions()["Subscriptions"] == []
    plain = sns.create_topic(Name="plain")["TopicArn"]
    fifo_queue = f"arn:aws:sqs:{REGION}:shop:orders.fifo"
    with pytest.raises(sns.exceptions.InvalidParameterException, match="standard SNS topics"):
        sns.subscribe(TopicArn=plain, Protocol="sqs", Endpoint=fifo_queue)
    assert (
        code(
            sns.set_topic_attributes,
            TopicArn=arn,
            AttributeName="FifoTopic",
            AttributeValue="false",
        )
        == "InvalidParameter"
    )


def test_a_native_topic_of_the_name_is_one(sns: Any, shop: Client) -> None:
    assert shop.put("/topics/foods.fifo", {}).status == 201
    made = sns.create_topic(Name="foods.fifo", Attributes=FIFO)["TopicArn"]
    assert sns.get_topic_attributes(TopicArn=made)["Attributes"]["FifoTopic"] == "true"


def test_it_is_shown_by_its_names(sns: Any, sqs: Any, shop: Client, arn: str) -> None:
    make_queue(sqs, "orders.fifo")
    made = subscribe(sns, arn, "orders.fifo")
    assert subscribe(sns, arn, "orders.fifo") == made
    assert made.startswith(f"{arn}:")
    shown = sns.get_subscription_attributes(SubscriptionArn=made)["Attributes"]
    assert shown["Endpoint"] == f"arn:aws:sqs:{REGION}:shop:orders.fifo"
    assert sns.create_topic(Name="drinks.fifo", Attributes=FIFO)["TopicArn"] == arn
    assert [each["TopicArn"] for each in sns.list_topics()["Topics"]] == [arn]
    assert shop.get("/topics/drinks.fifo").json["name"] == "drinks.fifo"
    sns.unsubscribe(SubscriptionArn=made)
    sns.delete_topic(TopicArn=arn)
    assert sns.list_topics()["Topics"] == []
