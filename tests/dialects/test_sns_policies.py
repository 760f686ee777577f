"""Policies of SNS by boto3: how URLs are tried again, who may do what, where dead letters go."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.dialects.conftest import REGION
from tests.dialects.sns_calls import change, shown, subscribe
from tests.dialects.test_sns_notifications import HOOK, QUEUE
from tests.dialects.test_sns_topics import code

from cirrusmq_dialects.sns.delivery_policies import read_of_subscription
from cirrusmq_local.testing import Client

RETRY = {
    "numRetries": 6,
    "numNoDelayRetries": 1,
    "numMinDelayRetries": 1,
    "numMaxDelayRetries": 1,
    "minDelayTarget": 10,
    "maxDelayTarget": 100,
    "backoffFunction": "linear",
}


def native(shop: Client) -> dict[str, Any]:
    (found,) = shop.get("/topics/drinks/subscriptions").json["subscriptions"]
    return dict(found)


def test_a_delivery_policy_is_a_ladder_and_a_rate(sns: Any, shop: Client, arn: str) -> None:
    policy = json.dumps(
        {"healthyRetryPolicy": RETRY, "throttlePolicy": {"maxReceivesPerSecond": 7}}
    )
    made = subscribe(sns, arn, HOOK, DeliveryPolicy=policy)
    assert shown(sns, made)["DeliveryPolicy"] == policy
    found = native(shop)
    assert found["retry"] == {"policy": "custom", "waits": [0.01, 10, 10, 55, 100, 100]}
    assert found["rate"] == 7
    assert subscribe(sns, arn, HOOK, DeliveryPolicy=policy) == made


@pytest.mark.parametrize(
    ("function", "waits"),
    [
        ("linear", [10, 32.5, 55, 77.5, 100]),
        ("arithmetic", [10, 24.062, 43.75, 69.062, 100]),
        ("geometric", [10, 17.783, 31.623, 56.234, 100]),
        ("exponential", [10, 16, 28, 52, 100]),
    ],
)
def test_a_back_off_goes_from_the_least_to_the_greatest_wait(
    function: str, waits: list[float]
) -> None:
    between = {
        "numRetries": 5, "minDelayTarget": 10, "maxDelayTarget": 100, "backoffFunction": function,
    }  # fmt: skip
    read = read_of_subscription(json.dumps({"healthyRetryPolicy": between}))
    assert read == {"retry": {"policy": "custom", "waits": waits}, "rate": None}


@pytest.mark.parametrize(
    ("retry", "expected"),
    [
        ({}, {"policy": "custom", "waits": [20.0, 20.0, 20.0]}),
        ({"numRetries": 0}, {"policy": "unordered", "max_retries": 0}),
        ({"numRetries": 1, "maxDelayTarget": 30}, {"policy": "custom", "waits": [20.0]}),
        ({"numRetries": 100}, {"policy": "custom", "waits": [20.0] * 100}),
    ],
)
def test_defaults_and_ends_of_a_retry_policy(
    retry: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert read_of_subscription(json.dumps({"healthyRetryPolicy": retry}))["retry"] == expected


@pytest.mark.parametrize(
    "policy",
    [
        *("[]", "{", '{"odd": 1}', '{"healthyRetryPolicy": {"odd": 1}}'),
        json.dumps({"healthyRetryPolicy": {"numRetries": 101}}),
        json.dumps({"healthyRetryPolicy": {"numRetries": 2, "numMinDelayRetries": 3}}),
        json.dumps({"healthyRetryPolicy": {"minDelayTarget": 21}}),
        json.dumps({"healthyRetryPolicy": {"minDelayTarget": 0}}),
        json.dumps({"healthyRetryPolicy": {"maxDelayTarget": 3_601}}),
        json.dumps({"healthyRetryPolicy": {"backoffFunction": "odd"}}),
        json.dumps({"throttlePolicy": {"maxReceivesPerSecond": 0}}),
        json.dumps({"requestPolicy": {"headerContentType": "application/json"}}),
    ],
)
def test_invalid_delivery_policies_are_refused(sns: Any, arn: str, policy: str) -> None:
    given = {"TopicArn": arn, "Protocol": "https", "Endpoint": HOOK}
    attributes = {"DeliveryPolicy": policy}
    assert code(sns.subscribe, **given, Attributes=attributes) == "InvalidParameter"
    assert sns.list_subscriptions()["Subscriptions"] == []


def test_a_topics_delivery_policy_holds_for_urls_without_one(
    sns: Any, shop: Client, arn: str
) -> None:
    def set_policy(value: str) -> None:
        name = {"AttributeName": "DeliveryPolicy", "AttributeValue": value}
        sns.set_topic_attributes(TopicArn=arn, **name)

    defaults = {"defaultHealthyRetryPolicy": RETRY | {"numRetries": 3}}
    set_policy(json.dumps({"http": defaults}))
    made = subscribe(sns, arn, HOOK)
    assert native(shop)["retry"] == {"policy": "custom", "waits": [0.01, 10, 100]}
    set_policy("")
    assert native(shop)["retry"] is None
    own = json.dumps({"healthyRetryPolicy": {"numRetries": 1}})
    change(sns, made, "DeliveryPolicy", own)
    set_policy(json.dumps({"http": defaults}))
    assert native(shop)["retry"] == {"policy": "custom", "waits": [20]}
    change(sns, made, "DeliveryPolicy", "")
    assert native(shop)["retry"] == {"policy": "custom", "waits": [0.01, 10, 100]}


def test_a_queues_redrive_policy_is_kept(sns: Any, sqs: Any, arn: str) -> None:
    for name in ("orders", "dead"):
        sqs.create_queue(QueueName=name)
    policy = json.dumps({"deadLetterTargetArn": QUEUE.replace("orders", "dead")})
    made = subscribe(sns, arn, RedrivePolicy=policy)
    assert shown(sns, made)["RedrivePolicy"] == policy
    with pytest.raises(sns.exceptions.InvalidParameterException):
        change(sns, made, "RedrivePolicy", '{"deadLetterTargetArn": "a"}')


TOPIC = f"arn:aws:sns:{REGION}:shop:drinks"


def statement(**changes: Any) -> str:
    base = {
        "Sid": "mine",
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": ["SNS:Publish", "SNS:Subscribe"],
        "Resource": TOPIC,
        "Condition": {"StringEquals": {"AWS:SourceOwner": "shop"}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [{**base, **changes}]})


def test_a_topics_policy_is_kept_if_it_matches_the_rights(sns: Any, arn: str) -> None:
    for policy in (
        statement(),
        statement(Principal={"AWS": "arn:aws:iam::123456789012:root"}, Condition={}),
        statement(Resource="*"),
    ):
        sns.set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue=policy)
        assert sns.get_topic_attributes(TopicArn=arn)["Attributes"]["Policy"] == policy
    other = sns.create_topic(Name="foods", Attributes={"Policy": statement(Resource="*")})
    assert "Policy" in sns.get_topic_attributes(TopicArn=other["TopicArn"])["Attributes"]
    sns.set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue="")
    assert "__default_policy_ID" in sns.get_topic_attributes(TopicArn=arn)["Attributes"]["Policy"]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (statement(Effect="Deny"), "mine: Deny"),
        (statement(Principal="*", Condition={}), "needs a Condition"),
        (statement(Principal={"Service": "s3.amazonaws.com"}), "is not the topic's account"),
        (statement(Resource=TOPIC.replace("drinks", "foods")), "another topic"),
        (statement(Action="sqs:SendMessage"), "no policy"),
        ("{}", "no policy"),
    ],
)
def test_a_topics_policy_with_more_rights_is_refused(
    sns: Any, arn: str, policy: str, words: str
) -> None:
    with pytest.raises(sns.exceptions.InvalidParameterException, match=words):
        sns.set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue=policy)
