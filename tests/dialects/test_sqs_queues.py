"""boto3's calls on queues, unmodified: done as in SQS, or refused in its words."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError
from tests.dialects.conftest import REGION, URL, Key, MakeKey, change_settings, client_of

from cirrusmq_local.testing import Client, World


def each(*acts: Callable[..., Any]) -> Sequence[Callable[..., Any]]:
    """Calls that shall have the same outcome."""
    return acts


def arn(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:shop:{name}"


def attributes(sqs: Any, url: str, *names: str) -> dict[str, str]:
    answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(names) or ["All"])
    found: dict[str, str] = answer.get("Attributes", {})
    return found


def redrive_policy(name: str, count: object = 3) -> dict[str, str]:
    policy = {"deadLetterTargetArn": arn(name), "maxReceiveCount": count}
    return {"RedrivePolicy": json.dumps(policy)}


def test_a_queue_has_the_defaults_of_sqs(sqs: Any, url: str, shop: Client) -> None:
    assert url == f"{URL}/shop/orders"
    shown = attributes(sqs, url)
    for name in ("CreatedTimestamp", "LastModifiedTimestamp"):
        assert int(shown.pop(name)) > 0
    assert shown == {
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "DelaySeconds": "0",
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "QueueArn": arn("orders"),
        "ReceiveMessageWaitTimeSeconds": "0",
        "SqsManagedSseEnabled": "true",
        "VisibilityTimeout": "30",
    }
    assert shop.get("/queues/orders").json["max_message_bytes"] == 1_048_576


def test_a_deployment_without_a_bucket_has_smaller_messages(world: World, sqs: Any) -> None:
    change_settings(world, bodies_in_s3_from=0)
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    assert attributes(sqs, url, "MaximumMessageSize") == {"MaximumMessageSize": "262144"}


POLICY = {
    "Statement": [
        {"Effect": "Allow", "Principal": {"AWS": "shop"}, "Action": "*", "Resource": arn("o.fifo")}
    ]
}


@pytest.mark.parametrize(
    ("held", "same", "other"),
    [
        ({"VisibilityTimeout": "60"}, {"VisibilityTimeout": "060"}, {"VisibilityTimeout": "61"}),
        ({}, {"VisibilityTimeout": "30"}, {"VisibilityTimeout": "31"}),
        ({}, {"ContentBasedDeduplication": "false"}, {"ContentBasedDeduplication": "true"}),
        (
            {"ContentBasedDeduplication": "true"},
            {"ContentBasedDeduplication": "TRUE"},
            {"ContentBasedDeduplication": "false"},
        ),
        (
            {"DeduplicationScope": "messageGroup"},
            {"DeduplicationScope": "messageGroup"},
            {"DeduplicationScope": "queue"},
        ),
        ({}, {"RedrivePolicy": ""}, redrive_policy("dead.fifo")),
        (redrive_policy("dead.fifo", "3"), redrive_policy("dead.fifo", 3), {"RedrivePolicy": ""}),
        (redrive_policy("dead.fifo"), redrive_policy("dead.fifo"), redrive_policy("dead.fifo", 4)),
        (
            {"Policy": json.dumps(POLICY)},
            {"Policy": json.dumps(POLICY, indent=2)},
            {"Policy": json.dumps({**POLICY, "Id": "x"})},
        ),
        ({"Policy": json.dumps(POLICY)}, {}, {"Policy": ""}),
        (
            {"RedriveAllowPolicy": '{"redrivePermission": "denyAll"}'},
            {"RedriveAllowPolicy": '{"redrivePermission":"denyAll"}'},
            {"RedriveAllowPolicy": '{"redrivePermission": "allowAll"}'},
        ),
    ],
)
def test_an_existing_queue_is_compared_by_the_attributes_of_sqs(
    sqs: Any, held: dict[str, str], same: dict[str, str], other: dict[str, str]
) -> None:
    fifo = {"FifoQueue": "true"}
    sqs.create_queue(QueueName="dead.fifo", Attributes=fifo)
    first = sqs.create_queue(QueueName="o.fifo", Attributes={**fifo, **held})["QueueUrl"]
    (name,) = other

    again = sqs.create_queue(QueueName="o.fifo", Attributes={**fifo, **same}, tags={"a": "b"})

    assert again["QueueUrl"] == first
    before = attributes(sqs, first)
    with pytest.raises(sqs.exceptions.QueueNameExists, match=r"\(QueueAlreadyExists\)") as refused:
        sqs.create_queue(QueueName="o.fifo", Attributes={**fifo, **other})
    text = "A queue already exists with the same name and a different value for attribute"
    assert refused.value.response["Error"]["Message"] == f"{text} {name}"
    assert attributes(sqs, first) == before


@pytest.mark.parametrize("name", ["", "a b", "a.b", ".fifo", "x" * 81, "a/b", "ä"])
def test_invalid_queue_names_are_refused(sqs: Any, name: str) -> None:
    with pytest.raises(ClientError, match=r"\((InvalidParameterValue|MissingParameter)\)"):
        sqs.create_queue(QueueName=name)
    assert "QueueUrls" not in sqs.list_queues()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DelaySeconds", "901"),
        ("DelaySeconds", "-1"),
        ("DelaySeconds", "1.5"),
        ("MaximumMessageSize", "1023"),
        ("MaximumMessageSize", "1048577"),
        ("MessageRetentionPeriod", "59"),
        ("MessageRetentionPeriod", "1209601"),
        ("ReceiveMessageWaitTimeSeconds", "21"),
        ("VisibilityTimeout", "43201"),
        ("VisibilityTimeout", "half"),
        ("SqsManagedSseEnabled", "maybe"),
        ("SqsManagedSseEnabled", ""),
        ("KmsDataKeyReusePeriodSeconds", "59"),
        ("KmsDataKeyReusePeriodSeconds", "86401"),
        ("KmsDataKeyReusePeriodSeconds", "long"),
        ("KmsMasterKeyId", "a key"),
        ("KmsMasterKeyId", "x" * 2_049),
    ],
)
def test_values_out_of_range_are_refused_and_nothing_is_made(
    sqs: Any, url: str, name: str, value: str
) -> None:
    for call in each(
        lambda: sqs.create_queue(QueueName="other", Attributes={name: value}),
        lambda: sqs.set_queue_attributes(QueueUrl=url, Attributes={name: value}),
    ):
        with pytest.raises(ClientError, match=r"\(InvalidAttributeValue\)"):
            call()
    assert sqs.list_queues()["QueueUrls"] == [url]
    assert attributes(sqs, url, "VisibilityTimeout") == {"VisibilityTimeout": "30"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no json", "Redrive policy is not a valid JSON map."),
        ("[]", "Redrive policy is not a valid JSON map."),
        ("{}", "Redrive policy does not contain mandatory attribute: deadLetterTargetArn."),
        (
            '{"deadLetterTargetArn": "arn:aws:sqs:x:shop:dlq"}',
            "Redrive policy does not contain mandatory attribute: maxReceiveCount.",
        ),
        (
            '{"deadLetterTargetArn": "arn:aws:sqs:x:shop:dlq", "maxReceiveCount": 0}',
            "Invalid value for maxReceiveCount: 0, valid values are from 1 to 1000 both inclusive.",
        ),
        (
            '{"deadLetterTargetArn": "arn:aws:sqs:x:shop:dlq", "maxReceiveCount": "many"}',
            "Invalid value for maxReceiveCount: many, valid values are from 1 to 1000 both"
            " inclusive.",
        ),
        (
            '{"deadLetterTargetArn": "dummy", "maxReceiveCount": 42}',
            "Invalid value for deadLetterTargetArn.",
        ),
        (
            '{"deadLetterTargetArn": "arn:aws:sqs:x:bob:dlq", "maxReceiveCount": 42}',
            "A dead-letter queue must be of the account of its source.",
        ),
    ],
)
def test_an_invalid_redrive_policy_is_refused(sqs: Any, url: str, text: str, reason: str) -> None:
    for call, given in (
        (sqs.create_queue, {"QueueName": "other"}),
        (sqs.set_queue_attributes, {"QueueUrl": url}),
    ):
        with pytest.raises(ClientError) as refused:
            call(**given, Attributes={"RedrivePolicy": text})
        assert refused.value.response["Error"] == {
            "Code": "InvalidParameterValue",
            "QueryErrorCode": "InvalidParameterValueException",
            "Type": "Sender",
            "Message": f"Value {text} for parameter RedrivePolicy is invalid. Reason: {reason}",
        }
    assert sqs.list_queues()["QueueUrls"] == [url]


def test_unknown_attributes_are_refused(sqs: Any, url: str) -> None:
    with pytest.raises(sqs.exceptions.InvalidAttributeName):
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"Colour": "red"})
    with pytest.raises(sqs.exceptions.InvalidAttributeName):
        attributes(sqs, url, "Colour")


def test_attributes_change_and_the_others_stay(sqs: Any, url: str) -> None:
    for name, value in {"VisibilityTimeout": "9", "ReceiveMessageWaitTimeSeconds": "3"}.items():
        sqs.set_queue_attributes(QueueUrl=url, Attributes={name: value})
    shown = attributes(
        sqs, url, "VisibilityTimeout", "ReceiveMessageWaitTimeSeconds", "DelaySeconds"
    )
    assert shown == {
        "VisibilityTimeout": "9",
        "ReceiveMessageWaitTimeSeconds": "3",
        "DelaySeconds": "0",
    }


def test_no_attributes_are_asked_for(sqs: Any, url: str) -> None:
    assert "Attributes" not in sqs.get_queue_attributes(QueueUrl=url)


KMS, REUSE, SSE = "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled"
"""Everything is encrypted by the deployment's key: they are kept, and read back."""


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ([], {SSE: "true"}),
        ([{KMS: "alias/a", REUSE: "6000"}], {KMS: "alias/a", REUSE: "6000", SSE: "false"}),
        ([{KMS: "alias/a"}], {KMS: "alias/a", REUSE: "300", SSE: "false"}),
        ([{KMS: "alias/a", SSE: "false"}], {KMS: "alias/a", REUSE: "300", SSE: "false"}),
        ([{KMS: "alias/a", REUSE: "60"}, {SSE: "true"}], {SSE: "true"}),
        ([{SSE: "true"}, {KMS: "b"}], {KMS: "b", REUSE: "300", SSE: "false"}),
        ([{SSE: "false"}], {SSE: "false"}),
        ([{KMS: "alias/a"}, {KMS: ""}], {SSE: "false"}),
        ([{KMS: "alias/a"}, {KMS: "", SSE: "true"}], {SSE: "true"}),
        ([{KMS: "alias/a"}, {"DelaySeconds": "1"}], {KMS: "alias/a", REUSE: "300", SSE: "false"}),
    ],
)
def test_encryption_is_read_back_as_it_was_set(
    sqs: Any, url: str, given: list[dict[str, str]], shown: dict[str, str]
) -> None:
    for number, changes in enumerate(given):
        if number == 0:
            made = sqs.create_queue(QueueName="made", Attributes=changes)["QueueUrl"]
            assert sqs.create_queue(QueueName="made", Attributes=changes)["QueueUrl"] == made
        sqs.set_queue_attributes(QueueUrl=url, Attributes=changes)
    assert attributes(sqs, url, KMS, REUSE, SSE) == shown
    if len(given) == 1:
        assert attributes(sqs, made, KMS, REUSE, SSE) == shown
        with pytest.raises(sqs.exceptions.QueueNameExists):
            sqs.create_queue(QueueName="made", Attributes={KMS: "another"})


def test_a_queue_has_one_type_of_encryption(sqs: Any, url: str) -> None:
    with pytest.raises(sqs.exceptions.InvalidAttributeName, match="one type of server-side"):
        sqs.set_queue_attributes(QueueUrl=url, Attributes={KMS: "a", SSE: "true"})
    assert attributes(sqs, url, KMS, REUSE, SSE) == {SSE: "true"}


def test_a_timeout_of_0_hides_nothing(sqs: Any, url: str, shop: Client) -> None:
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "0"})
    sqs.send_message(QueueUrl=url, MessageBody="x")

    assert attributes(sqs, url, "VisibilityTimeout") == {"VisibilityTimeout": "0"}
    assert sqs.create_queue(QueueName="orders", Attributes={"VisibilityTimeout": "0"})
    with pytest.raises(sqs.exceptions.QueueNameExists):
        sqs.create_queue(QueueName="orders", Attributes={"VisibilityTimeout": "1"})
    for _ in range(3):
        assert len(sqs.receive_message(QueueUrl=url)["Messages"]) == 1
    # A receive's own timeout counts, and a later one of the queue, also if it is set natively.
    assert len(sqs.receive_message(QueueUrl=url, VisibilityTimeout=9)["Messages"]) == 1
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    made = sqs.create_queue(QueueName="made", Attributes={"VisibilityTimeout": "0"})["QueueUrl"]
    assert attributes(sqs, made, "VisibilityTimeout") == {"VisibilityTimeout": "0"}
    sqs.set_queue_attributes(QueueUrl=made, Attributes={"VisibilityTimeout": "1"})
    assert attributes(sqs, made, "VisibilityTimeout") == {"VisibilityTimeout": "1"}
    assert shop.patch("/queues/orders", {"visibility_timeout_seconds": 7}).status == 200
    assert attributes(sqs, url, "VisibilityTimeout") == {"VisibilityTimeout": "7"}


def test_dead_letters_are_set_shown_and_unset(sqs: Any, url: str, shop: Client) -> None:
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes=redrive_policy("dead", "3"))
    shown = json.loads(attributes(sqs, url, "RedrivePolicy")["RedrivePolicy"])
    assert shown == {"deadLetterTargetArn": arn("dead"), "maxReceiveCount": 3}
    assert shop.get("/queues/orders").json["dead_letter"]["max_receives"] == 3
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [url]
    with pytest.raises(ClientError, match="dead-letter queue"):
        sqs.delete_queue(QueueUrl=dead)
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": ""})
    assert attributes(sqs, url, "RedrivePolicy") == {}
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead).get("queueUrls", []) == []


def test_a_natively_set_age_of_dead_letters_is_kept(sqs: Any, url: str, shop: Client) -> None:
    sqs.create_queue(QueueName="dead")
    dead_letter = {"queue": "dead", "max_age_seconds": 600}
    shop.patch("/queues/orders", {"dead_letter": dead_letter})
    assert attributes(sqs, url, "RedrivePolicy") == {}
    sqs.set_queue_attributes(QueueUrl=url, Attributes=redrive_policy("dead"))
    shown = shop.get("/queues/orders").json["dead_letter"]
    assert shown == {**dead_letter, "max_receives": 3}


def test_a_dead_letter_queue_must_exist(sqs: Any, url: str) -> None:
    for call in each(
        lambda policy: sqs.set_queue_attributes(QueueUrl=url, Attributes=policy),
        lambda policy: sqs.create_queue(QueueName="new", Attributes=policy),
    ):
        told = r"\(InvalidParameterValue\) .*Dead letter target does not exist"
        with pytest.raises(ClientError, match=told):
            call(redrive_policy("nowhere"))


def test_pages_of_sources_of_dead_letters(sqs: Any) -> None:
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    for number in range(3):
        sqs.create_queue(QueueName=f"q{number}", Attributes=redrive_policy("dead"))
    pages = sqs.get_paginator("list_dead_letter_source_queues").paginate(
        QueueUrl=dead, PaginationConfig={"PageSize": 2}
    )
    found = [page["queueUrls"] for page in pages]
    assert [len(page) for page in found] == [2, 1]
    assert [url for page in found for url in page] == [
        f"{URL}/shop/q{number}" for number in range(3)
    ]


def test_queues_are_listed_by_the_beginnings_of_their_names(sqs: Any) -> None:
    assert "QueueUrls" not in sqs.list_queues()
    names = ["a1", "a2", "b.fifo", "b1"]
    for name in names:
        more = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        sqs.create_queue(QueueName=name, Attributes=more)

    def listed(**given: Any) -> list[str]:
        urls = sqs.list_queues(**given).get("QueueUrls", [])
        return sorted(url.rpartition("/")[2] for url in urls)

    assert listed() == names
    assert listed(QueueNamePrefix="") == names
    assert listed(QueueNamePrefix="a") == ["a1", "a2"]
    assert listed(QueueNamePrefix="b.fifo") == ["b.fifo"]
    assert listed(QueueNamePrefix="b.x") == []


def test_pages_of_queues(sqs: Any) -> None:
    for number in range(5):
        sqs.create_queue(QueueName=f"q{number}")
    pages = list(sqs.get_paginator("list_queues").paginate(PaginationConfig={"PageSize": 2}))
    assert [len(page["QueueUrls"]) for page in pages] == [2, 2, 1]
    assert "NextToken" not in sqs.list_queues()
    with pytest.raises(ClientError):
        sqs.list_queues(MaxResults=2, NextToken="forged")
    with pytest.raises(ClientError):
        sqs.list_queues(MaxResults=1001)


def test_the_url_of_a_queue_by_its_name(sqs: Any, url: str) -> None:
    assert sqs.get_queue_url(QueueName="orders")["QueueUrl"] == url
    own = sqs.get_queue_url(QueueName="orders", QueueOwnerAWSAccountId="123456789012")
    assert own["QueueUrl"] == url
    told = r"\(AWS.SimpleQueueService.NonExistentQueue\) .*: The specified queue does not exist\.$"
    with pytest.raises(sqs.exceptions.QueueDoesNotExist, match=told):
        sqs.get_queue_url(QueueName="nowhere")


def test_a_url_of_aws_in_a_programs_settings_is_ones_own_queue(sqs: Any, url: str) -> None:
    theirs = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders"
    sent = sqs.send_message(QueueUrl=theirs, MessageBody="hello")
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    assert message["MessageId"] == sent["MessageId"]


def test_a_deleted_queue_is_gone_and_its_name_free_at_once(sqs: Any, url: str) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="lost")
    sqs.delete_queue(QueueUrl=url)
    for call in each(
        lambda: sqs.delete_queue(QueueUrl=url),
        lambda: sqs.send_message(QueueUrl=url, MessageBody="x"),
        lambda: sqs.receive_message(QueueUrl=url),
        lambda: attributes(sqs, url),
        lambda: sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "1"}),
    ):
        with pytest.raises(sqs.exceptions.QueueDoesNotExist):
            call()
    assert sqs.create_queue(QueueName="orders")["QueueUrl"] == url
    assert "Messages" not in sqs.receive_message(QueueUrl=url)


def test_a_purged_queue_is_empty(world: World, sqs: Any, url: str) -> None:
    for number in range(5):
        sqs.send_message(QueueUrl=url, MessageBody=str(number))
    (held,) = sqs.receive_message(QueueUrl=url)["Messages"]
    sqs.send_message(QueueUrl=url, MessageBody="late", DelaySeconds=10)
    sqs.purge_queue(QueueUrl=url)
    sqs.purge_queue(QueueUrl=url)  # there is no wait of 60 s
    world.settle()
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    world.clock.pass_seconds(60)
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    assert attributes(sqs, url, "ApproximateNumberOfMessages") == {
        "ApproximateNumberOfMessages": "0"
    }
    sqs.send_message(QueueUrl=url, MessageBody="new")
    assert sqs.receive_message(QueueUrl=url)["Messages"][0]["Body"] == "new"
    assert held["Body"] != "new"


def test_tags_are_labels(sqs: Any, shop: Client) -> None:
    url = sqs.create_queue(QueueName="orders", tags={"team": "shop"})["QueueUrl"]
    sqs.tag_queue(QueueUrl=url, Tags={"team": "books", "stage": "test"})
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "books", "stage": "test"}
    assert shop.get("/queues/orders").json["labels"] == {"team": "books", "stage": "test"}
    sqs.untag_queue(QueueUrl=url, TagKeys=["team", "nowhere"])
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"stage": "test"}
    sqs.untag_queue(QueueUrl=url, TagKeys=["stage"])
    assert sqs.list_queue_tags(QueueUrl=url).get("Tags", {}) == {}
    with pytest.raises(ClientError, match="at most 50 tags"):
        sqs.tag_queue(QueueUrl=url, Tags={str(number): "x" for number in range(51)})
    with pytest.raises(ClientError, match="at most 4,096 bytes"):
        sqs.tag_queue(QueueUrl=url, Tags={str(number): "x" * 200 for number in range(25)})
    sqs.tag_queue(QueueUrl=url, Tags={str(number): "x" for number in range(50)})
    assert len(sqs.list_queue_tags(QueueUrl=url)["Tags"]) == 50


def test_counts_tell_active_delayed_and_inactive_messages(world: World, sqs: Any, url: str) -> None:
    for delay in (0, 0, 0, 60):
        sqs.send_message(QueueUrl=url, MessageBody="x", DelaySeconds=delay)
    sqs.receive_message(QueueUrl=url)
    names = [f"ApproximateNumberOfMessages{name}" for name in ("", "NotVisible", "Delayed")]
    assert list(attributes(sqs, url, *names).values()) == ["2", "1", "1"]
    world.clock.pass_seconds(61)
    assert list(attributes(sqs, url, *names).values()) == ["4", "0", "0"]


def test_another_accounts_queue_needs_a_grant(world: World, url: str, make_key: MakeKey) -> None:
    bob = client_of(world, make_key("bob"))
    for call in each(
        lambda: bob.send_message(QueueUrl=url, MessageBody="x"),
        lambda: bob.get_queue_url(QueueName="orders", QueueOwnerAWSAccountId="shop"),
    ):
        with pytest.raises(ClientError, match="AccessDenied"):
            call()
    shop = world.client("shop")
    assert shop.put("/queues/orders/grants/bob", {"permission": "send"}).status == 200
    assert bob.get_queue_url(QueueName="orders", QueueOwnerAWSAccountId="shop")["QueueUrl"] == url
    bob.send_message(QueueUrl=url, MessageBody="x")
    for call in each(
        lambda: bob.receive_message(QueueUrl=url),
        lambda: bob.delete_queue(QueueUrl=url),
        lambda: attributes(bob, url),
    ):
        with pytest.raises(ClientError, match="AccessDenied"):
            call()


def test_a_change_is_in_the_audit_of_the_caller_and_of_the_queues_owner(
    world: World, key: Key, sqs: Any, shop: Client
) -> None:
    sqs.create_queue(QueueName="orders")
    owner = world.client("owner")
    assert owner.put("/queues/parts").status == 201
    assert owner.put("/queues/parts/grants/shop", {"permission": "full"}).status == 200
    with pytest.raises(ClientError):
        sqs.delete_queue(QueueUrl=f"{URL}/owner/parts")
    world.clock.pass_seconds(1)
    sqs.purge_queue(QueueUrl=f"{URL}/owner/parts")

    own, theirs = (each.get("/audit").json["changes"] for each in (shop, owner))

    assert [each["route"] for each in own] == ["sqs PurgeQueue", "sqs CreateQueue"]
    assert {(each["account"], each["key_id"]) for each in own} == {("shop", key.id)}
    assert theirs[0] == own[0]
    assert [each["route"].split()[0] for each in theirs] == ["sqs", "PUT", "PUT"]
    (purge,) = owner.get("/operations").json["operations"]
    assert (purge["queue"], purge["key_id"]) == ("parts", key.id)
