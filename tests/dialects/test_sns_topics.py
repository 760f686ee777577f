"""Topics of SNS by boto3, on the service in memory: the router, errors, topics and tags."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace
from tests.dialects.conftest import REGION, Key, MakeKey, client_of

from cirrusmq.access.scopes import Listed, Scope
from cirrusmq_local.testing import Client, World

ARN = f"arn:aws:sns:{REGION}:shop:drinks"


def code(call: Any, **given: Any) -> str:
    """The code of a refusal."""
    with pytest.raises(ClientError) as refused:
        call(**given)
    found: str = refused.value.response["Error"]["Code"]
    return found


def test_the_signature_names_the_service_of_a_call(sns: Any, sqs: Any, arn: str) -> None:
    assert arn == ARN
    assert sqs.create_queue(QueueName="drinks")["QueueUrl"].endswith("/shop/drinks")
    assert [each["TopicArn"] for each in sns.list_topics()["Topics"]] == [ARN]


def test_without_sns_the_endpoint_says_so(sns: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALECTS", "aliyun,cmq,sqs")
    with pytest.raises(ClientError, match="this endpoint has no sns"):
        sns.list_topics()


def test_refused_keys(world: World, key: Key, sns: Any) -> None:
    wrong, unknown = Key(world, "shop"), Key(world, "shop")
    wrong.secret, unknown.id = "wrong", "AKIDUNKNOWN"
    assert code(client_of(world, wrong, "sns").list_topics) == "SignatureDoesNotMatch"
    assert code(client_of(world, unknown, "sns").list_topics) == "InvalidClientTokenId"
    world.core = replace(world.core, real_seconds=lambda: int(time.time()) + 1_000)
    with pytest.raises(ClientError, match="Signature expired"):
        sns.list_topics()


def test_a_topic_is_made_once_and_is_a_native_one(sns: Any, shop: Client, arn: str) -> None:
    assert sns.create_topic(Name="drinks")["TopicArn"] == arn
    assert shop.get("/topics/drinks").json["max_message_bytes"] == 262_144
    shop.put("/topics/foods", {})
    assert sns.create_topic(Name="foods")["TopicArn"] == arn.replace("drinks", "foods")
    for name, more in {
        "a b c": {},
        "drinks.fifo": {},
        "Drinks": {},
        "others": {"Attributes": {"Policy": "{}"}},
        "coloured": {"Attributes": {"Colour": "red"}},
        "long": {"Attributes": {"DisplayName": "x" * 101}},
        "delivered": {"Attributes": {"DeliveryPolicy": "["}},
    }.items():
        assert code(sns.create_topic, Name=name, **more) == "InvalidParameter", name
    assert len(sns.list_topics()["Topics"]) == 2


def test_other_attributes_than_those_there_are_refused(sns: Any) -> None:
    given = {"Attributes": {"DisplayName": "a"}, "Tags": [{"Key": "a", "Value": "b"}]}
    arn = sns.create_topic(Name="drinks", **given)["TopicArn"]
    assert sns.create_topic(Name="drinks", **given)["TopicArn"] == arn
    assert sns.create_topic(Name="drinks")["TopicArn"] == arn
    with pytest.raises(sns.exceptions.InvalidParameterException, match="different attributes"):
        sns.create_topic(Name="drinks", Attributes={"DisplayName": "b"})


def test_attributes_are_set_and_shown(sns: Any, shop: Client, arn: str) -> None:
    policy = '{"http": {"defaultHealthyRetryPolicy": {"numRetries": 3}}}'
    for name, value in {"DisplayName": 'a <b> & "c"', "DeliveryPolicy": policy}.items():
        sns.set_topic_attributes(TopicArn=arn, AttributeName=name, AttributeValue=value)
    shown = sns.get_topic_attributes(TopicArn=arn)["Attributes"]
    assert json.loads(shown["Policy"])["Statement"][0]["Resource"] == arn
    assert {name: shown[name] for name in shown if name != "Policy"} == {
        "TopicArn": arn,
        "Owner": "shop",
        "DisplayName": 'a <b> & "c"',
        "DeliveryPolicy": policy,
        "SubscriptionsConfirmed": "0",
        "SubscriptionsPending": "0",
        "SubscriptionsDeleted": "0",
    }
    # A native change leaves them.
    assert shop.patch("/topics/drinks", {"description": "d"}).status == 200
    assert sns.get_topic_attributes(TopicArn=arn)["Attributes"] == shown
    sns.set_topic_attributes(TopicArn=arn, AttributeName="DeliveryPolicy", AttributeValue="")
    assert "DeliveryPolicy" not in sns.get_topic_attributes(TopicArn=arn)["Attributes"]
    for name in ("Policy", "KmsMasterKeyId", "Owner"):
        given = {"TopicArn": arn, "AttributeName": name, "AttributeValue": "a"}
        assert code(sns.set_topic_attributes, **given) == "InvalidParameter"


def test_a_topic_is_deleted_and_deleted_again(sns: Any, shop: Client, arn: str) -> None:
    sns.delete_topic(TopicArn=arn)
    sns.delete_topic(TopicArn=arn)
    assert shop.get("/topics/drinks").status == 404
    with pytest.raises(sns.exceptions.NotFoundException, match="Topic does not exist"):
        sns.get_topic_attributes(TopicArn=arn)
    assert sns.list_topics()["Topics"] == []


@pytest.mark.parametrize(
    ("arn", "expected"),
    [
        ("drinks", "InvalidParameter"),
        ("arn:aws:sqs:eu-central-1:shop:drinks", "InvalidParameter"),
        ("arn:aws:sns:eu-central-1:shop:no topic", "NotFound"),
        ("arn:aws:sns:eu-central-1:shop:drinks.fifo", "NotFound"),
        ("arn:aws:sns:eu-central-1:bob:drinks", "AuthorizationError"),
    ],
)
def test_unknown_arns_are_refused(sns: Any, arn: str, expected: str) -> None:
    assert code(sns.get_topic_attributes, TopicArn=arn) == expected


def test_a_numeric_account_is_the_own_account(sns: Any, arn: str) -> None:
    shown = sns.get_topic_attributes(TopicArn="arn:aws:sns:us-east-1:123456789012:drinks")
    assert shown["Attributes"]["TopicArn"] == arn


def test_topics_are_listed_by_pages(sns: Any, shop: Client) -> None:
    names = [f"topic-{number:03}" for number in range(105)]
    for name in names:
        assert shop.put(f"/topics/{name}", {}).status == 201
    pages = list(sns.get_paginator("list_topics").paginate())
    assert [len(page["Topics"]) for page in pages] == [100, 5]
    found = [each["TopicArn"].rpartition(":")[2] for page in pages for each in page["Topics"]]
    assert found == names
    assert code(sns.list_topics, NextToken="abc") == "InvalidParameter"


def test_tags_are_labels(sns: Any, shop: Client, arn: str) -> None:
    tags = [{"Key": "a", "Value": "1"}, {"Key": "b:c", "Value": ""}]
    sns.tag_resource(ResourceArn=arn, Tags=tags)
    assert sns.list_tags_for_resource(ResourceArn=arn)["Tags"] == tags
    assert shop.get("/topics/drinks").json["labels"] == {"a": "1", "b:c": ""}
    sns.untag_resource(ResourceArn=arn, TagKeys=["a", "z"])
    assert sns.list_tags_for_resource(ResourceArn=arn)["Tags"] == tags[1:]
    many = [{"Key": f"k{number}", "Value": "v"} for number in range(50)]
    assert code(sns.tag_resource, ResourceArn=arn, Tags=many) == "TagLimitExceeded"
    assert sns.list_tags_for_resource(ResourceArn=arn)["Tags"] == tags[1:]


def test_a_key_may_act_within_its_scope(world: World, arn: str, make_key: MakeKey) -> None:
    scope = Scope(send=Listed(topics=("drinks",)))
    narrow = client_of(world, make_key("shop", scope=scope), "sns")
    assert narrow.get_topic_attributes(TopicArn=arn)["Attributes"]["TopicArn"] == arn
    assert code(narrow.list_topics) == "AuthorizationError"
    assert code(narrow.delete_topic, TopicArn=arn) == "AuthorizationError"
    assert code(narrow.create_topic, Name="others") == "AuthorizationError"


def test_unsupported_calls_are_refused_plainly(sns: Any, arn: str) -> None:
    with pytest.raises(sns.exceptions.InvalidParameterException, match="grants"):
        sns.add_permission(TopicArn=arn, Label="l", AWSAccountId=["1"], ActionName=["Publish"])
    with pytest.raises(sns.exceptions.InvalidParameterException, match="no mobile push"):
        sns.list_platform_applications()
    with pytest.raises(sns.exceptions.InvalidParameterException, match="no SMS"):
        sns.get_sms_attributes()
