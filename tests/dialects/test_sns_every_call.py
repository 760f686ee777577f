"""Every operation of SNS on a service that runs, by boto3."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from tests.dialects.conftest import REGION, running_client
from tests.dialects.programs import run_example
from tests.stack import environment

RAW = {"RawMessageDelivery": "true"}


@pytest.fixture
def sns(running: dict[str, Any]) -> Any:
    """boto3's client of SNS."""
    return running_client(running, "sns")


@pytest.fixture
def arn(sns: Any, name: str) -> Iterator[str]:
    made: str = sns.create_topic(Name=name)["TopicArn"]
    yield made
    sns.delete_topic(TopicArn=made)


@pytest.fixture
def queue(running_sqs: Any, sns: Any, arn: str, name: str) -> Iterator[tuple[str, str]]:
    """The URL and the ARN of a queue, which ends behind its subscriptions."""
    url = running_sqs.create_queue(QueueName=name)["QueueUrl"]
    given = {"QueueUrl": url, "AttributeNames": ["QueueArn"]}
    yield url, running_sqs.get_queue_attributes(**given)["Attributes"]["QueueArn"]
    for each in sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]:
        sns.unsubscribe(SubscriptionArn=each["SubscriptionArn"])
    running_sqs.delete_queue(QueueUrl=url)


def refused(call: Callable[..., Any], **given: Any) -> None:
    with pytest.raises(ClientError) as error:
        call(**given)
    assert error.value.response["Error"]["Code"] == "InvalidParameter"


def test_every_call_on_topics(sns: Any, arn: str, name: str) -> None:
    assert sns.create_topic(Name=name)["TopicArn"] == arn
    pages = sns.get_paginator("list_topics").paginate()
    assert arn in [each["TopicArn"] for page in pages for each in page["Topics"]]
    assert arn in [each["TopicArn"] for each in sns.list_topics()["Topics"]]
    sns.set_topic_attributes(TopicArn=arn, AttributeName="DisplayName", AttributeValue="a")
    assert sns.get_topic_attributes(TopicArn=arn)["Attributes"]["DisplayName"] == "a"
    tags = [{"Key": "a", "Value": "b"}]
    sns.tag_resource(ResourceArn=arn, Tags=tags)
    assert sns.list_tags_for_resource(ResourceArn=arn)["Tags"] == tags
    sns.untag_resource(ResourceArn=arn, TagKeys=["a"])
    assert sns.list_tags_for_resource(ResourceArn=arn)["Tags"] == []
    sns.delete_topic(TopicArn=arn)
    sns.delete_topic(TopicArn=arn)


def test_every_call_on_subscriptions(sns: Any, arn: str, queue: tuple[str, str]) -> None:
    given = {"TopicArn": arn, "Protocol": "sqs", "Endpoint": queue[1], "Attributes": RAW}
    made = sns.subscribe(**given)["SubscriptionArn"]
    assert sns.subscribe(**given)["SubscriptionArn"] == made
    policy = json.dumps({"kind": ["tea"]})
    sns.set_subscription_attributes(
        SubscriptionArn=made, AttributeName="FilterPolicy", AttributeValue=policy
    )
    shown = sns.get_subscription_attributes(SubscriptionArn=made)["Attributes"]
    assert (shown["Endpoint"], shown["FilterPolicy"]) == (queue[1], policy)
    (listed,) = sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]
    assert listed["SubscriptionArn"] == made
    assert sns.list_subscriptions()["Subscriptions"]
    refused(sns.confirm_subscription, TopicArn=arn, Token="shop.wrong")
    sns.unsubscribe(SubscriptionArn=made)
    assert sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"] == []


def test_every_publishing_call_works(
    sns: Any, running_sqs: Any, arn: str, queue: tuple[str, str]
) -> None:
    sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue[1], Attributes=RAW)
    cups = {"cups": {"DataType": "Number", "StringValue": "2"}}
    assert sns.publish(TopicArn=arn, Message="tea", MessageAttributes=cups)["MessageId"]
    entries = [{"Id": each, "Message": each} for each in ("a", "b")]
    answer = sns.publish_batch(TopicArn=arn, PublishBatchRequestEntries=entries)
    assert len(answer["Successful"]) == 2
    found: dict[str, Any] = {}
    while len(found) < 3:
        received = running_sqs.receive_message(
            QueueUrl=queue[0], WaitTimeSeconds=5, MessageAttributeNames=["All"]
        )
        for message in received.get("Messages", []):
            found[message["Body"]] = message.get("MessageAttributes")
            running_sqs.delete_message(QueueUrl=queue[0], ReceiptHandle=message["ReceiptHandle"])
    assert found == {"tea": cups, "a": None, "b": None}


def test_calls_without_a_place_here_are_refused(sns: Any, arn: str) -> None:
    refused(sns.add_permission, TopicArn=arn, Label="l", AWSAccountId=["1"], ActionName=["Publish"])
    refused(sns.remove_permission, TopicArn=arn, Label="l")
    refused(sns.get_data_protection_policy, ResourceArn=arn)
    refused(sns.put_data_protection_policy, ResourceArn=arn, DataProtectionPolicy="{}")
    phone = {"PhoneNumber": "+491"}
    refused(sns.check_if_phone_number_is_opted_out, phoneNumber="+491")
    refused(sns.create_sms_sandbox_phone_number, **phone)
    refused(sns.delete_sms_sandbox_phone_number, **phone)
    refused(sns.verify_sms_sandbox_phone_number, **phone, OneTimePassword="12345")
    refused(sns.opt_in_phone_number, phoneNumber="+491")
    refused(sns.set_sms_attributes, attributes={"a": "b"})
    for call in (
        *(sns.get_sms_attributes, sns.get_sms_sandbox_account_status),
        *(sns.list_origination_numbers, sns.list_phone_numbers_opted_out),
        *(sns.list_sms_sandbox_phone_numbers, sns.list_platform_applications),
    ):
        refused(call)
    application, endpoint = {"PlatformApplicationArn": "a"}, {"EndpointArn": "a"}
    refused(sns.create_platform_application, Name="a", Platform="GCM", Attributes={})
    refused(sns.create_platform_endpoint, **application, Token="t")
    refused(sns.delete_endpoint, **endpoint)
    refused(sns.delete_platform_application, **application)
    refused(sns.get_endpoint_attributes, **endpoint)
    refused(sns.get_platform_application_attributes, **application)
    refused(sns.list_endpoints_by_platform_application, **application)
    refused(sns.set_endpoint_attributes, **endpoint, Attributes={"a": "b"})
    refused(sns.set_platform_application_attributes, **application, Attributes={"a": "b"})


def test_the_example_runs_unchanged(running: dict[str, Any], tmp_path: Path) -> None:
    url, key = running["dialect_url"], running["signing_key"]
    env = environment() | {
        "AWS_ENDPOINT_URL_SNS": url,
        "AWS_ENDPOINT_URL_SQS": url,
        "AWS_ACCESS_KEY_ID": key["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": key["secret"],
        "AWS_DEFAULT_REGION": REGION,
    }
    assert run_example("drinks.py", env, tmp_path) == ["got a cup tea"]
