"""The bucket of the messages of large sends: kept, private, its objects' lives, and who uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cirrusmq_local.cloud.template import Template, load

READ, WRITE = "s3:GetObject", "s3:PutObject"
# An object is copied where messages begin another life: as dead letters, redriven, in a queue of a
# topic.
COPIERS = {"Receive", "Delete", "Replay", "Push", "PushSlow", "Call", "Sweep", "FanOut"}
READERS = {"Manage", "Publish"} | COPIERS  # a commit reads what was prepared
WRITERS = {"Send", "Publish"} | COPIERS
FIRST_WRITERS = {"Send", "Publish"}
MAKERS = {"Manage", "Subscribe"}
"""Of queues and topics: how large messages may be depends on whether there are objects."""
S3 = "s3.local.amazonaws.com"


@pytest.fixture
def bucket(resources: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = resources["Bodies"]
    return found


def told(template: Template, variable: str) -> set[str]:
    return {each.logical_id for each in template.functions if variable in each.environment}


def who(template: Template, action: str, target: str, through: str = "") -> set[str]:
    return {
        each.logical_id
        for each in template.functions
        if each.may(action, target, partition=through)
    }


def test_it_is_encrypted_with_our_key_and_asks_kms_seldom(bucket: dict[str, Any]) -> None:
    (rule,) = bucket["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["BucketKeyEnabled"] is True
    by = rule["ServerSideEncryptionByDefault"]
    assert by == {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "Key.Arn"}


def test_nobody_else_can_see_it_nor_anybody_without_tls(
    bucket: dict[str, Any], resources: dict[str, Any]
) -> None:
    assert set(bucket["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}
    policy = resources["BodiesPolicy"]["Properties"]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert policy["Bucket"] == "Bodies"
    assert (statement["Effect"], statement["Principal"]) == ("Deny", "*")
    assert statement["Resource"] == ["Bodies.Arn", "Bodies.Arn/*"]
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": False}}


def test_an_object_lives_as_many_days_as_its_key_begins_with(
    template: Template, bucket: dict[str, Any]
) -> None:
    (held,) = (each for each in template.buckets if each.name == "Bodies")
    assert [(rule.prefix, rule.days) for rule in held.rules] == [
        (f"d{days:02}/", days) for days in range(1, 17)
    ]
    rules = bucket["Properties"]["LifecycleConfiguration"]["Rules"]
    assert {rule["Status"] for rule in rules} == {"Enabled"}
    assert sum("AbortIncompleteMultipartUpload" in rule for rule in rules) == 1
    # Else what has ended would be there still, as an older version.
    assert "VersioningConfiguration" not in bucket["Properties"]


def test_functions_have_the_needed_rights_on_it_and_no_other(template: Template) -> None:
    assert who(template, READ, "Bodies.Arn/*") == READERS
    assert who(template, WRITE, "Bodies.Arn/*") == WRITERS
    allowed = {
        (target, action)
        for function in template.functions
        for target, actions in function.permissions.items()
        if target.startswith("Bodies.Arn")
        for action in actions
    }
    assert allowed == {
        ("Bodies.Arn/*", READ),
        ("Bodies.Arn/*", WRITE),
        ("Bodies.Arn", "s3:ListBucket"),
    }


def test_readers_can_tell_missing_bodies_and_open_existing_ones(template: Template) -> None:
    assert who(template, "s3:ListBucket", "Bodies.Arn") == READERS
    assert who(template, "kms:Decrypt", "Key.Arn", S3) >= READERS


def test_whoever_writes_can_encrypt_and_only_through_s3(template: Template) -> None:
    assert who(template, "kms:GenerateDataKey", "Key.Arn", S3) == WRITERS | {"PublishReport"}
    assert not who(template, "kms:GenerateDataKey", "Key.Arn", "dynamodb.local.amazonaws.com")


def test_a_function_is_told_its_allowed_bucket(template: Template) -> None:
    assert told(template, "BODIES_BUCKET") == READERS | WRITERS
    assert told(template, "BODIES_IN_S3_FROM") == FIRST_WRITERS | MAKERS


def test_a_new_deployment_writes_and_one_from_before_can_only_read_at_first(root: Path) -> None:
    assert load(root / "template.yaml").environment()["BODIES_IN_S3_FROM"] == "16"
    first = load(root / "template.yaml", {"BodiesInS3From": 0})
    assert first.environment()["BODIES_IN_S3_FROM"] == "0"
    # It reads what the next one writes.
    assert who(first, READ, "Bodies.Arn/*") == READERS
    assert told(first, "BODIES_BUCKET") == READERS | WRITERS
