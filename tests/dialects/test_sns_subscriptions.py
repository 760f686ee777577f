"""Subscriptions of SNS by boto3, on the service in memory."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

import pytest
from tests.dialects import sns_calls
from tests.dialects.conftest import REGION, MakeKey, change_settings, client_of
from tests.dialects.sns_calls import change, shown
from tests.dialects.test_sns_topics import code

from cirrusmq.access.scopes import Listed, Scope
from cirrusmq_local.testing import Client, World

RAW = {"RawMessageDelivery": "true"}
QUEUE = f"arn:aws:sqs:{REGION}:shop:orders"
HOOK = "https://hooks.example/a?b=c&d"
POLICY = json.dumps({"region": ["eu", {"prefix": "us-"}]})
subscribe = partial(sns_calls.subscribe, RawMessageDelivery="true")


@pytest.fixture
def arn(sns: Any, shop: Client) -> str:
    for name in ("orders", "dead"):
        assert shop.put(f"/queues/{name}", {}).status == 201
    made: str = sns.create_topic(Name="drinks")["TopicArn"]
    return made


def test_a_queue_is_subscribed_once(sns: Any, shop: Client, arn: str) -> None:
    made = subscribe(sns, arn)
    assert re.fullmatch(f"{arn}:[0-9a-f-]{{36}}", made)
    assert subscribe(sns, arn) == made
    other = QUEUE.replace("shop", "123456789012")
    assert (
        sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=other, Attributes=RAW)[
            "SubscriptionArn"
        ]
        == made
    )
    with pytest.raises(sns.exceptions.InvalidParameterException, match="already exists with"):
        subscribe(sns, arn, FilterPolicy=POLICY)
    assert len(shop.get("/topics/drinks/subscriptions").json["subscriptions"]) == 1
    assert shown(sns, made) == {
        "SubscriptionArn": made,
        "TopicArn": arn,
        "Owner": "shop",
        "SubscriptionPrincipal": "arn:aws:iam::shop:root",
        "Protocol": "sqs",
        "Endpoint": QUEUE,
        "RawMessageDelivery": "true",
        "PendingConfirmation": "false",
        "ConfirmationWasAuthenticated": "true",
    }
    assert sns.get_topic_attributes(TopicArn=arn)["Attributes"]["SubscriptionsConfirmed"] == "1"


def test_a_url_is_subscribed(sns: Any, shop: Client, arn: str) -> None:
    redrive = json.dumps({"deadLetterTargetArn": QUEUE.replace("orders", "dead")})
    made = subscribe(sns, arn, HOOK, FilterPolicy=POLICY, RedrivePolicy=redrive)
    found = shown(sns, made)
    assert (found["Protocol"], found["Endpoint"]) == ("https", HOOK)
    assert json.loads(found["FilterPolicy"]) == json.loads(POLICY)
    assert json.loads(found["RedrivePolicy"]) == json.loads(redrive)
    (native,) = shop.get("/topics/drinks/subscriptions").json["subscriptions"]
    assert native["content_format"] == "simplified"
    assert native["dead_letter_queue"] == "dead"


def test_a_url_confirms_by_its_token(
    world: World, sns: Any, arn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_settings(world, confirm_endpoints=True)
    tokens: list[str] = []
    monkeypatch.setattr(
        "cirrusmq.subscriptions.confirmations.ask",
        lambda core, subscription, token: tokens.append(token),
    )
    given = {"TopicArn": arn, "Protocol": "https", "Endpoint": HOOK, "Attributes": RAW}
    assert sns.subscribe(**given)["SubscriptionArn"] == "pending confirmation"
    assert sns.subscribe(**given)["SubscriptionArn"] == "pending confirmation"
    (entry,) = sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]
    assert entry["SubscriptionArn"] == "PendingConfirmation"
    first, second = tokens
    forged = second[:-1] + ("0" if second[-1] != "0" else "1")
    for wrong in (first, forged, "shop.wrong", "a.b", "x"):
        assert code(sns.confirm_subscription, TopicArn=arn, Token=wrong) == "InvalidParameter"
    other = {"TopicArn": arn.replace("drinks", "none"), "Token": second}
    assert code(sns.confirm_subscription, **other) == "InvalidParameter"
    made = sns.confirm_subscription(TopicArn=arn, Token=second)["SubscriptionArn"]
    assert shown(sns, made)["PendingConfirmation"] == "false"
    assert sns.subscribe(**given)["SubscriptionArn"] == made


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"Attributes": {**RAW, "FilterPolicyScope": "Message"}}, "FilterPolicyScope"),
        ({"Attributes": {**RAW, "FilterPolicy": "{"}}, "FilterPolicy"),
        ({"Attributes": {**RAW, "DeliveryPolicy": "{}"}}, "DeliveryPolicy"),
        ({"Attributes": {**RAW, "RedrivePolicy": "{}"}}, "RedrivePolicy"),
        ({"Endpoint": QUEUE.replace("orders", "others")}, "no queue"),
        ({"Endpoint": QUEUE.replace("orders", "orders.fifo")}, "FIFO"),
        ({"Endpoint": QUEUE.replace("shop", "bob")}, "topic's account"),
        ({"Protocol": "https", "Endpoint": "http://hooks.example/"}, "match the specified"),
    ],
)
def test_invalid_subscriptions_are_refused_and_leave_nothing(
    sns: Any, arn: str, given: dict[str, Any], words: str
) -> None:
    whole = {"TopicArn": arn, "Protocol": "sqs", "Endpoint": QUEUE, "Attributes": RAW, **given}
    with pytest.raises(sns.exceptions.InvalidParameterException, match=words):
        sns.subscribe(**whole)
    assert sns.list_subscriptions()["Subscriptions"] == []


def test_attributes_are_changed(sns: Any, arn: str) -> None:
    made = subscribe(sns, arn)
    change(sns, made, "FilterPolicy", POLICY)
    change(sns, made, "RawMessageDelivery", "true")
    assert json.loads(shown(sns, made)["FilterPolicy"]) == json.loads(POLICY)
    for name, value in {
        "RawMessageDelivery": "no",
        "FilterPolicyScope": "Message",
        "Endpoint": QUEUE,
        "FilterPolicy": "[]",
    }.items():
        with pytest.raises(sns.exceptions.InvalidParameterException):
            change(sns, made, name, value)
    change(sns, made, "FilterPolicy", "{}")
    assert "FilterPolicy" not in shown(sns, made)


def test_subscriptions_end_once_and_again(sns: Any, arn: str) -> None:
    made = subscribe(sns, arn)
    sns.unsubscribe(SubscriptionArn=made)
    sns.unsubscribe(SubscriptionArn=made)
    assert code(sns.get_subscription_attributes, SubscriptionArn=made) == "NotFound"
    assert code(sns.unsubscribe, SubscriptionArn=arn) == "InvalidParameter"


def test_subscriptions_are_listed_by_topic_and_all(sns: Any, shop: Client, arn: str) -> None:
    mine = {subscribe(sns, arn), subscribe(sns, arn, HOOK)}
    native = {"protocol": "queue", "endpoint": "orders"}
    for number in range(22):
        name = f"topic-{number:02}"
        assert shop.put(f"/topics/{name}", {}).status == 201
        assert shop.put(f"/topics/{name}/subscriptions/one", native).status == 201
    page = sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]
    assert {each["SubscriptionArn"] for each in page} == mine
    pages = list(sns.get_paginator("list_subscriptions").paginate())
    assert len(pages) == 2
    found = {each["SubscriptionArn"] for page in pages for each in page["Subscriptions"]}
    assert found == mine | {f"{arn.replace('drinks', f'topic-{n:02}')}:one" for n in range(22)}
    one = f"{arn.replace('drinks', 'topic-00')}:one"
    assert shown(sns, one)["RawMessageDelivery"] == "true"
    sns.unsubscribe(SubscriptionArn=one)


def test_a_key_may_subscribe_within_its_scope(world: World, arn: str, make_key: MakeKey) -> None:
    scope = Scope(manage=Listed(topics=("drinks",)))
    narrow = client_of(world, make_key("shop", scope=scope), "sns")
    given = {"TopicArn": arn, "Protocol": "sqs", "Endpoint": QUEUE, "Attributes": RAW}
    assert code(narrow.subscribe, **given) == "AuthorizationError"
    assert code(narrow.list_subscriptions) == "AuthorizationError"
    both = Scope(manage=Listed(topics=("drinks",)), send=Listed(queues=("orders",)))
    wide = client_of(world, make_key("shop", scope=both), "sns")
    assert wide.subscribe(**given)["SubscriptionArn"].startswith(arn)


def test_an_account_with_a_grant_subscribes_its_url_and_sees_its_own(
    world: World, sns: Any, shop: Client, arn: str, make_key: MakeKey
) -> None:
    bob = client_of(world, make_key("bob"), "sns")
    url = {"TopicArn": arn, "Protocol": "https", "Endpoint": HOOK, "Attributes": RAW}
    assert code(bob.subscribe, **url) == "AuthorizationError"
    shop.put("/topics/drinks/grants/bob", {"permission": "subscribe"})
    made = bob.subscribe(**url)["SubscriptionArn"]
    assert shown(bob, made)["Owner"] == "bob"
    theirs = subscribe(sns, arn)
    assert code(bob.get_subscription_attributes, SubscriptionArn=theirs) == "AuthorizationError"
    queue = {**url, "Protocol": "sqs", "Endpoint": QUEUE}
    assert code(bob.subscribe, **queue) == "AuthorizationError"
    bob.unsubscribe(SubscriptionArn=made)


def test_a_policy_may_be_of_the_body(world: World, sns: Any, sqs: Any, arn: str) -> None:
    policy = {"item": {"price": [{"numeric": [">=", 100]}]}}
    made = subscribe(sns, arn, FilterPolicy=json.dumps(policy), FilterPolicyScope="MessageBody")
    found = shown(sns, made)
    assert json.loads(found["FilterPolicy"]) == policy
    assert found["FilterPolicyScope"] == "MessageBody"
    url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]

    def bodies(*sent: str, **attributes: Any) -> list[str]:
        for each in sent:
            sns.publish(TopicArn=arn, Message=each, MessageAttributes=attributes)
        world.settle()
        received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        return sorted(each["Body"] for each in received)

    dear, cheap = '{"item": {"price": 250}}', '{"item": {"price": 50}}'
    assert bodies(dear, cheap, "dear") == [dear]

    def changed(name: str, value: str) -> dict[str, str]:
        change(sns, made, name, value)
        return shown(sns, made)

    plain = changed("FilterPolicy", '{"item": ["tea"]}')
    assert plain["FilterPolicyScope"] == "MessageBody"
    assert bodies('{"item": "tea"}', '{"item": "milk"}') == ['{"item": "tea"}']
    assert changed("FilterPolicyScope", "MessageAttributes")["FilterPolicyScope"] != "MessageBody"
    tea = {"DataType": "String", "StringValue": "tea"}
    assert bodies("a", item=tea) == ["a"]
    assert bodies('{"item": "tea"}') == []
    assert "FilterPolicy" not in changed("FilterPolicy", "")
    changed("FilterPolicyScope", "MessageBody")
    assert changed("FilterPolicy", json.dumps(policy))["FilterPolicyScope"] == "MessageBody"
    assert bodies(dear, cheap) == [dear]


def test_numbers_in_a_policy_meet_numbers_alone(world: World, sns: Any, sqs: Any, arn: str) -> None:
    subscribe(sns, arn, FilterPolicy='{"cups": [2, {"numeric": [">", 5]}]}')
    url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
    for kind, value in (("Number", "2"), ("String", "2"), ("String.Array", "[1, 9]")):
        cups = {"DataType": kind, "StringValue": value}
        sns.publish(TopicArn=arn, Message=kind, MessageAttributes={"cups": cups})
    world.settle()
    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert sorted(each["Body"] for each in received) == ["Number", "String.Array"]


def test_a_native_url_stays_a_native_one(world: World, sns: Any, shop: Client, arn: str) -> None:
    given = {"protocol": "http", "endpoint": HOOK}
    assert shop.put("/topics/drinks/subscriptions/mine", given).status == 201
    (known,) = sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]
    for name, value in {"FilterPolicy": "{}", "FilterPolicyScope": "MessageBody"}.items():
        change(sns, known["SubscriptionArn"], name, value)
    sns.publish(TopicArn=arn, Message="tea")
    world.settle()
    ((_, headers, body),) = world.posts
    assert json.loads(body)["msgBody"] == "tea"
    assert not [name for name in headers if name.startswith("x-amz-")]
