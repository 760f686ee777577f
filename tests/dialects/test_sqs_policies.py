"""Policies of queues by boto3: what holds here is kept and shown, everything else refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from tests.dialects.test_sqs_queues import arn, attributes, redrive_policy

from cirrusmq_local.testing import Client

TOPIC = "arn:aws:sns:eu-central-1:shop:drinks"
QUEUE = arn("orders")
FROM_TOPIC = {"ArnEquals": {"aws:SourceArn": TOPIC}}
SNS = {"Service": "sns.amazonaws.com"}


def statement(**given: Any) -> dict[str, Any]:
    """An allowing statement; a member that is None is left out."""
    whole = {
        "Sid": "one",
        "Effect": "Allow",
        "Principal": "*",
        "Action": "sqs:SendMessage",
        "Resource": QUEUE,
        "Condition": FROM_TOPIC,
        **given,
    }
    return {name: value for name, value in whole.items() if value is not None}


def policy(*statements: Any) -> dict[str, str]:
    return {"Policy": json.dumps({"Version": "2012-10-17", "Statement": list(statements)})}


@pytest.mark.parametrize(
    "given",
    [
        statement(),
        statement(Principal=SNS),
        statement(Principal={"AWS": "*"}, Sid=None),
        statement(Principal={"AWS": "*"}, Action=["SQS:*"], Resource="*"),
        statement(Principal={"AWS": "arn:aws:iam::shop:root"}, Condition=None, Action="*"),
        statement(Principal={"AWS": ["shop", "123456789012"]}, Condition=None),
        statement(Principal=SNS, Condition={"ArnLike": {"AWS:SourceArn": [TOPIC, f"{TOPIC}*"]}}),
        statement(Condition={"StringEquals": {"aws:SourceAccount": "shop"}}),
        statement(Condition={"StringEquals": {"aws:SourceAccount": ["123456789012"]}}),
        statement(Resource=["*", "arn:aws:sqs:us-east-1:123456789012:orders"]),
        statement(Resource="$QUEUE_ARN", Condition={"ArnEquals": {"aws:SourceArn": "$TOPIC"}}),
    ],
)
def test_a_policy_matching_the_rights_here_is_kept_and_shown(
    sqs: Any, url: str, given: dict[str, Any]
) -> None:
    text = policy(given)

    sqs.set_queue_attributes(QueueUrl=url, Attributes=text)

    assert attributes(sqs, url, "Policy") == text
    made = sqs.create_queue(QueueName="orders", Attributes=text)["QueueUrl"]
    assert attributes(sqs, made, "Policy") == text
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "5"})
    assert attributes(sqs, url)["Policy"] == text["Policy"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": ""})
    assert "Policy" not in attributes(sqs, url)


def test_a_policy_of_a_new_queue_is_kept(sqs: Any) -> None:
    one = json.dumps({"Id": "allowAll", "Statement": statement(Resource=arn("new.fifo"))})
    given = {"FifoQueue": "true", "Policy": one}

    made = sqs.create_queue(QueueName="new.fifo", Attributes=given)["QueueUrl"]

    assert attributes(sqs, made, "Policy") == {"Policy": one}


@pytest.mark.few(16)
@pytest.mark.parametrize(
    "given",
    [
        statement(Effect="Deny"),
        statement(Effect="Deny", Condition={"Bool": {"aws:SecureTransport": "false"}}),
        statement(Condition=None),
        statement(Condition={}),
        statement(Principal=SNS, Condition=None),
        statement(Principal={"AWS": "bob"}),
        statement(Principal={"AWS": "arn:aws:iam::bob:root"}, Condition=None),
        statement(Principal={"AWS": "arn:aws:iam::shop:role/admin"}, Condition=None),
        statement(Principal={"AWS": ["111111111111", "222222222222"]}, Condition=None),
        statement(Principal={"Service": "s3.amazonaws.com"}),
        statement(Principal={"AWS": "sns.amazonaws.com"}),
        statement(Principal={"Federated": "*"}),
        statement(Principal=None, NotPrincipal={"AWS": "shop"}),
        statement(Action=None, NotAction="sqs:DeleteQueue"),
        statement(Resource=None, NotResource=QUEUE),
        statement(Resource=arn("others")),
        statement(Resource=[QUEUE, "arn:aws:sqs:eu-central-1:bob:orders"]),
        statement(Resource=["$QUEUE_ARN", "arn:aws:sqs:eu-central-1:bob:orders"]),
        statement(Resource="arn:aws:sqs:*:*:*"),
        statement(Condition={"ArnEquals": {"aws:SourceArn": TOPIC.replace("shop", "bob")}}),
        statement(Condition={"ArnLike": {"aws:SourceArn": TOPIC.replace("shop", "*")}}),
        statement(Condition={"ArnLike": {"aws:SourceArn": [TOPIC, "arn:aws:s3:::bucket"]}}),
        statement(Condition={"ArnLike": {"aws:SourceArn": []}}),
        statement(Condition={"StringEquals": {"aws:SourceAccount": "bob"}}),
        statement(Condition={"StringNotEquals": {"aws:SourceAccount": "shop"}}),
        statement(Condition={**FROM_TOPIC, "IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}),
    ],
)
def test_an_unenforceable_policy_is_refused_by_its_statement(
    sqs: Any, url: str, given: dict[str, Any]
) -> None:
    text = policy(statement(Sid="fine"), {**given, "Sid": "TheOther"})

    of_new = {"Policy": text["Policy"].replace(":orders", ":new")}

    with pytest.raises(sqs.exceptions.UnsupportedOperation, match="statement TheOther: "):
        sqs.set_queue_attributes(QueueUrl=url, Attributes=text)
    with pytest.raises(sqs.exceptions.UnsupportedOperation, match="statement TheOther: "):
        sqs.create_queue(QueueName="new", Attributes=of_new)

    assert "Policy" not in attributes(sqs, url)
    assert sqs.list_queues()["QueueUrls"] == [url]


def allow(permission: str, *sources: str) -> dict[str, str]:
    """A RedriveAllowPolicy."""
    given: dict[str, Any] = {"redrivePermission": permission}
    if sources:
        given["sourceQueueArns"] = [arn(each) for each in sources]
    return {"RedriveAllowPolicy": json.dumps(given)}


NO_POLICIES = {
    "Policy": [
        *("allowAll", "[]", "{}", '{"Statement": []}', '{"Statement": [{}]}'),
        json.dumps({"Statement": statement(), "Colour": "red"}),
        json.dumps({"Statement": statement(Colour="red")}),
        json.dumps({"Statement": statement(Effect="allowAll")}),
        json.dumps({"Statement": statement(Principal=None)}),
        json.dumps({"Statement": statement(Principal={})}),
        json.dumps({"Statement": statement(Principal="shop")}),
        json.dumps({"Statement": statement(Action=None)}),
        json.dumps({"Statement": statement(Action="s3:GetObject")}),
        json.dumps({"Statement": statement(Resource=None)}),
        json.dumps({"Statement": statement(Sid="x" * 8_192)}),
        '{"Statement": ' + "[" * 5_000 + "]" * 5_000 + "}",
    ],
    "RedriveAllowPolicy": [
        *("allowAll", "[]", "{}", '{"redrivePermission": "allow"}'),
        '{"redrivePermission": "byQueue"}',
        '{"redrivePermission": "byQueue", "sourceQueueArns": []}',
        '{"redrivePermission": "byQueue", "sourceQueueArns": ["orders"]}',
        '{"redrivePermission": "byQueue", "sourceQueueArns": "orders"}',
        allow("denyAll", "orders")["RedriveAllowPolicy"],
        allow("byQueue", *(f"q{number}" for number in range(11)))["RedriveAllowPolicy"],
    ],
}
CODES = {"Policy": "InvalidAttributeValue", "RedriveAllowPolicy": "InvalidParameterValue"}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in NO_POLICIES.items() for text in texts]
)
def test_an_invalid_policy_text_is_refused(sqs: Any, url: str, name: str, text: str) -> None:
    with pytest.raises(ClientError, match=f"parameter ({name}|sourceQueueArns)") as refused:
        sqs.set_queue_attributes(QueueUrl=url, Attributes={name: text})
    assert refused.value.response["Error"]["Code"] == CODES[name]
    assert name not in attributes(sqs, url)


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({}, True),
        (allow("allowAll"), True),
        (allow("denyAll"), False),
        (allow("byQueue", "orders", "others"), True),
        (allow("byQueue", "others"), False),
        ({"RedriveAllowPolicy": ""}, True),
    ],
)
def test_a_dead_letter_queue_takes_dead_letters_of_allowed_queues(
    sqs: Any, url: str, shop: Client, given: dict[str, str], allowed: bool
) -> None:
    made = sqs.create_queue(QueueName="dead", Attributes=given)["QueueUrl"]
    later = sqs.create_queue(QueueName="later")["QueueUrl"]
    if given:
        sqs.set_queue_attributes(QueueUrl=later, Attributes=given)
    kept = {name: value for name, value in given.items() if value}
    for name, dead in (("dead", made), ("later", later)):
        assert attributes(sqs, dead, "RedriveAllowPolicy") == kept
        dead_letter = {"queue": name, "max_receives": 3}
        if allowed:
            sqs.set_queue_attributes(QueueUrl=url, Attributes=redrive_policy(name))
            assert shop.patch("/queues/orders", {"dead_letter": dead_letter}).status == 200
            continue
        with pytest.raises(ClientError, match=r"\(InvalidParameterValue\) .*RedriveAllowPolicy"):
            sqs.set_queue_attributes(QueueUrl=url, Attributes=redrive_policy(name))
        with pytest.raises(ClientError, match="RedriveAllowPolicy"):
            sqs.create_queue(QueueName="new", Attributes=redrive_policy(name))
        # The native calls hold to it as well.
        reply = shop.patch("/queues/orders", {"dead_letter": dead_letter})
        assert (reply.status, reply.json["parameter"]) == (400, "dead_letter.queue")
    found = sqs.list_dead_letter_source_queues(QueueUrl=later).get("queueUrls", [])
    assert found == ([url] if allowed else [])


def test_a_source_from_before_the_policy_keeps_its_dead_letter_queue(sqs: Any, url: str) -> None:
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes=redrive_policy("dead"))
    sqs.set_queue_attributes(QueueUrl=dead, Attributes=allow("denyAll"))

    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "1"})
    sqs.set_queue_attributes(QueueUrl=url, Attributes=redrive_policy("dead", 5))

    shown = json.loads(attributes(sqs, url, "RedrivePolicy")["RedrivePolicy"])
    assert shown["maxReceiveCount"] == 5
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": ""})
    with pytest.raises(ClientError, match="RedriveAllowPolicy"):
        sqs.set_queue_attributes(QueueUrl=url, Attributes=redrive_policy("dead"))
