"""A deployment is removed with all that outlives its stack, but what is asked to stay."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from cirrusmq_local.cloud.cloudformation import StackTemplate
from remove import KINDS, Removal, main

ARN = "arn:aws:cloudformation:eu-central-1:123456789012:stack"
OUTER, INNER = f"{ARN}/queues/1", f"{ARN}/queues-Tables-1/2"


class CloudFormation:
    """A stack and one nested in it: as documented, a deleted one is found by its ARN alone.

    moto deletes what a template keeps, and forgets what a deleted stack had.
    """

    def __init__(self, resources: dict[str, list[tuple[str, str, str]]]) -> None:
        self.resources = resources
        self.deleted = False

    def describe_stacks(self, StackName: str) -> Any:  # noqa: N803
        if StackName not in (OUTER, INNER) and (StackName != "queues" or self.deleted):
            told = {"Code": "ValidationError", "Message": f"Stack {StackName} does not exist"}
            raise ClientError({"Error": told}, "DescribeStacks")
        status = "DELETE_COMPLETE" if self.deleted else "UPDATE_COMPLETE"
        return {"Stacks": [{"StackId": OUTER, "StackName": "queues", "StackStatus": status}]}

    def delete_stack(self, StackName: str) -> None:  # noqa: N803
        assert StackName == OUTER
        self.deleted = True

    def get_waiter(self, name: str) -> Any:
        assert name == "stack_delete_complete"
        return self

    def wait(self, StackName: str) -> None:  # noqa: N803
        assert self.deleted

    def get_paginator(self, name: str) -> Any:
        self._asked = name
        return self

    def paginate(self, **given: Any) -> Iterator[dict[str, Any]]:
        if self._asked == "list_stacks":
            day = datetime(2026, 11, 25, tzinfo=UTC)
            found = [{"StackName": "queues", "StackId": OUTER, "DeletionTime": day}]
            yield {"StackSummaries": found if self.deleted else []}
            return
        for kind, physical, status in self.resources[given["StackName"]]:
            yield {
                "StackResourceSummaries": [
                    {
                        "ResourceType": kind,
                        "PhysicalResourceId": physical,
                        "ResourceStatus": status,
                    }
                ]
            }


class Session:
    """A session of boto3 whose CloudFormation is this one."""

    def __init__(self, cloudformation: CloudFormation) -> None:
        self._cloudformation = cloudformation

    def client(self, name: str) -> Any:
        return self._cloudformation if name == "cloudformation" else boto3.client(name)


@pytest.fixture
def session(in_aws: None) -> Session:
    """A deployment's data: two tables, a bucket with versions, a queue, a secret, a key."""
    dynamodb, s3 = boto3.client("dynamodb"), boto3.client("s3")
    for name in ("messages", "usage"):
        dynamodb.create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
            DeletionProtectionEnabled=True,
        )
    s3.create_bucket(
        Bucket="reports", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
    )
    s3.put_bucket_versioning(Bucket="reports", VersioningConfiguration={"Status": "Enabled"})
    for body in (b"one", b"two"):
        s3.put_object(Bucket="reports", Key="current/billing", Body=body)
    s3.delete_object(Bucket="reports", Key="current/billing")
    url = boto3.client("sqs").create_queue(QueueName="unprocessed")["QueueUrl"]
    secret = boto3.client("secretsmanager").create_secret(Name="s", SecretString="x")["ARN"]
    key = boto3.client("kms").create_key()["KeyMetadata"]["KeyId"]
    made = CloudFormation(
        {
            OUTER: [
                ("AWS::KMS::Key", key, "CREATE_COMPLETE"),
                ("AWS::SecretsManager::Secret", secret, "CREATE_COMPLETE"),
                ("AWS::CloudFormation::Stack", INNER, "CREATE_COMPLETE"),
                ("AWS::SQS::Queue", url, "CREATE_COMPLETE"),
                ("AWS::Lambda::Function", "queues-send", "CREATE_COMPLETE"),
                ("AWS::S3::Bucket", "", "CREATE_FAILED"),
                ("AWS::S3::Bucket", "gone-with-it", "DELETE_COMPLETE"),
            ],
            INNER: [
                ("AWS::DynamoDB::Table", "messages", "CREATE_COMPLETE"),
                ("AWS::DynamoDB::Table", "usage", "CREATE_COMPLETE"),
                ("AWS::S3::Bucket", "reports", "CREATE_COMPLETE"),
            ],
        }
    )
    return Session(made)


def what_is_left() -> dict[str, int]:
    keys = [
        boto3.client("kms").describe_key(KeyId=each["KeyId"])["KeyMetadata"]["KeyState"]
        for each in boto3.client("kms").list_keys()["Keys"]
    ]
    return {
        "tables": len(boto3.client("dynamodb").list_tables()["TableNames"]),
        "buckets": len(boto3.client("s3").list_buckets()["Buckets"]),
        "queue": len(boto3.client("sqs").list_queues().get("QueueUrls", [])),
        "secret": len(boto3.client("secretsmanager").list_secrets()["SecretList"]),
        "key": keys.count("Enabled"),
    }


def test_nothing_is_left_of_a_deployment(session: Any) -> None:
    removal = Removal(session, "queues")
    assert removal.stack_is_there
    told = list(removal.run(keep=[]))
    assert [each.partition(" ")[0] for each in told] == [
        "stack", "tables", "tables", "buckets", "queue", "secret", "key",
    ]  # fmt: skip
    assert not any(what_is_left().values())


@pytest.mark.few(2)
@pytest.mark.parametrize("keep", [["buckets"], ["tables", "key"], ["queue", "secret"]])
def test_only_the_kept_kinds_are_left(session: Any, keep: list[str]) -> None:
    list(Removal(session, "queues").run(keep))
    assert {kind for kind, count in what_is_left().items() if count} == set(keep)


@pytest.mark.few(1)
@pytest.mark.parametrize("done", range(7))
def test_a_stopped_removal_goes_on(session: Any, done: int) -> None:
    """Once the stack is gone its name is another's to take: it is found among the deleted ones."""
    first = Removal(session, "queues").run(keep=[])
    for _ in range(done):
        next(first)
    again = Removal(session, "queues")
    assert again.stack_is_there == (done == 0)
    list(again.run(keep=[]))
    assert not any(what_is_left().values())


def test_nothing_is_deleted_before_the_name_is_typed(
    session: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(boto3.session, "Session", lambda **_: session)
    monkeypatch.setattr("builtins.input", lambda _: "yes")
    before = what_is_left()
    assert main(["queues"]) == 1
    assert what_is_left() == before
    shown = capsys.readouterr().out
    assert all(f"{kind} " in shown for kind in KINDS)
    monkeypatch.setattr("builtins.input", lambda _: "queues")
    assert main(["queues", "--keep", "buckets"]) == 0
    assert "reports (stays)" in capsys.readouterr().out


def test_tables_are_not_kept_without_their_key(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for keep in ("tables", "tabels"):
        with pytest.raises(SystemExit):
            main(["queues", "--keep", keep])
        assert "--keep: tab" in capsys.readouterr().err


def test_each_kind_outliving_a_stack_can_be_removed(
    stacks: list[StackTemplate],
) -> None:
    kept = {
        resource["Type"]
        for stack in stacks
        for resource in stack.document["Resources"].values()
        if resource.get("DeletionPolicy", "Delete") != "Delete"
    }
    assert kept == {kind.resource for kind in KINDS.values()}
