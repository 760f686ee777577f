"""URLs of SNS's subscriptions confirm and end them by the addresses that they are sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.dialects.conftest import URL, Key, call, change_settings
from tests.dialects.sns_calls import subscribe
from tests.dialects.test_sns_notifications import HOOK

from cirrusmq_dialects import aws_signature
from cirrusmq_dialects.router import dialect_of
from cirrusmq_local.testing import Reply, World

THREE_DAYS = 259_200


@pytest.fixture(autouse=True)
def confirming(world: World) -> None:
    """URLs must confirm, as a deployment has it."""
    change_settings(world, confirm_endpoints=True)


def posted(world: World) -> tuple[dict[str, str], dict[str, Any]]:
    """Headers and body of the newest post."""
    world.settle()
    _, headers, body = world.posts[-1]
    return headers, json.loads(body)


def opened(world: World, url: str, method: str = "GET") -> Reply:
    """The answer to an address that is opened as a browser does it."""
    assert url.startswith(f"{URL}/?")
    return call(world, method, url, {}, b"")


@pytest.mark.parametrize("raw", ["true", "false"])
def test_a_url_confirms_by_an_address(world: World, sns: Any, arn: str, raw: str) -> None:
    made = subscribe(sns, arn, HOOK, RawMessageDelivery=raw)
    headers, body = posted(world)
    assert headers["x-amz-sns-message-type"] == body["Type"] == "SubscriptionConfirmation"
    assert headers["x-amz-sns-message-id"] == body["MessageId"]
    assert headers["x-amz-sns-topic-arn"] == body["TopicArn"] == arn
    assert "x-amz-sns-subscription-arn" not in headers
    assert {"Message", "Token", "SubscribeURL", "Timestamp"} < body.keys()
    sns.publish(TopicArn=arn, Message="too early")
    world.settle()
    assert len(world.posts) == 1

    reply = opened(world, body["SubscribeURL"])
    assert reply.status == 200
    assert f"<SubscriptionArn>{made}</SubscriptionArn>" in reply.text
    shown = sns.get_subscription_attributes(SubscriptionArn=made)["Attributes"]
    assert shown["PendingConfirmation"] == "false"
    sns.publish(TopicArn=arn, Message="tea")
    world.settle()
    assert b"tea" in world.posts[-1][2]


def test_a_token_is_good_for_three_days(world: World, sns: Any, arn: str) -> None:
    subscribe(sns, arn, HOOK)
    _, body = posted(world)
    world.clock.pass_seconds(THREE_DAYS)
    assert opened(world, body["SubscribeURL"]).status == 400
    other = body["SubscribeURL"].replace("drinks", "foods")
    assert opened(world, other).status == 400
    assert opened(world, f"{URL}/?Action=ConfirmSubscription").status == 400


def test_a_url_ends_its_subscription_by_an_address(world: World, sns: Any, arn: str) -> None:
    made = subscribe(sns, arn, HOOK)
    opened(world, posted(world)[1]["SubscribeURL"])
    sns.publish(TopicArn=arn, Message="tea")
    address = posted(world)[1]["UnsubscribeURL"]
    plain, _, token = address.partition("&Token=")
    for wrong in (plain, f"{plain}&Token=", f"{plain}&Token={token[:-1]}", f"{plain}&Token=ü"):
        reply = opened(world, wrong)
        assert (reply.status, "AuthorizationError" in reply.text) == (403, True)
    assert sns.get_subscription_attributes(SubscriptionArn=made)
    assert opened(world, address).status == 200
    assert sns.list_subscriptions()["Subscriptions"] == []
    assert opened(world, address).status == 403  # to others it is as one that never was


def test_a_signed_confirmation_may_forbid_unsigned_ends(world: World, sns: Any, arn: str) -> None:
    made = subscribe(sns, arn, HOOK)
    token = posted(world)[1]["Token"]
    sns.confirm_subscription(TopicArn=arn, Token=token, AuthenticateOnUnsubscribe="true")
    sns.publish(TopicArn=arn, Message="tea")
    address = posted(world)[1]["UnsubscribeURL"]
    assert "Token" not in address
    assert opened(world, address).status == 403
    sns.unsubscribe(SubscriptionArn=made)
    assert sns.list_subscriptions()["Subscriptions"] == []


def test_a_queue_needs_a_signature_to_end(
    world: World, sns: Any, sqs: Any, arn: str, url: str
) -> None:
    subscribe(sns, arn)
    sns.publish(TopicArn=arn, Message="tea")
    world.settle()
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    assert opened(world, json.loads(message["Body"])["UnsubscribeURL"]).status == 403


def test_other_calls_need_a_signature(world: World, sns: Any, arn: str) -> None:
    assert opened(world, f"{URL}/?Action=ListTopics").status == 403
    for action in ("ConfirmSubscription", "Unsubscribe"):
        reply = opened(world, f"{URL}/?Action={action}&Action=ListTopics")
        assert (reply.status, "AccessDenied" in reply.text) == (403, True)
    assert opened(world, f"{URL}/?Action=Unsubscribe&Version=x").status == 400


def test_a_call_may_be_signed_in_its_query(world: World, key: Key, sns: Any, arn: str) -> None:
    url = sns.generate_presigned_url("list_topics", HttpMethod="GET")
    query = url.partition("?")[2]
    assert aws_signature.IN_QUERY in query
    assert dialect_of("GET", "/", {}, query) == "sns"
    reply = call(world, "GET", url, {}, b"")
    assert (reply.status, arn in reply.text) == (200, True)
