"""Removes a deployment: its stack, then the resources that outlive a stack, unless kept.

python -m infra.remove <stack> [--keep tables,buckets,queue,secret,key] [--region R] [--profile P]

Shows what it will delete, asks, and deletes in order: the stack, so that nothing writes any more,
then tables, buckets with all versions, the queue, the secret, and the key last, without which no
backup can be read. AWS deletes the key and the secret after its waiting days. The command may be
run again, also after it was stopped: CloudFormation keeps a deleted stack's resources for 90 days.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import boto3
from botocore.exceptions import ClientError

NESTED = "AWS::CloudFormation::Stack"
WAIT_DAYS = 30
"""Days until a key and a secret are deleted finally: the maximum for both."""
_GONE = frozenset(
    {
        *("ResourceNotFoundException", "NoSuchBucket", "NotFoundException"),
        *("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"),
    }
)
_TOGETHER = 1_000
"""Maximum versions of objects that S3 deletes in a call."""


class Part(NamedTuple):
    """A resource that outlives the stack."""

    kind: str
    """A key of `KINDS`."""
    name: str
    """Its physical id: a table's or bucket's name, a queue's URL, a secret's ARN, a key's id."""


class Removal:
    """A stack, and the resources that outlive it."""

    def __init__(self, session: boto3.session.Session, stack: str) -> None:
        self._session = session
        self._cloudformation = session.client("cloudformation")
        self.stack_id = self._find(stack)
        self.parts = sorted(
            self._parts(self.stack_id), key=lambda part: list(KINDS).index(part.kind)
        )

    @property
    def stack_is_there(self) -> bool:
        """True if the stack is not deleted yet."""
        (found,) = self._cloudformation.describe_stacks(StackName=self.stack_id)["Stacks"]
        return bool(found["StackStatus"] != "DELETE_COMPLETE")

    def run(self, keep: Sequence[str]) -> Iterator[str]:
        """Deletes the stack, then each part whose kind is not kept. Yields a text for each."""
        if self.stack_is_there:
            self._cloudformation.delete_stack(StackName=self.stack_id)
            self._cloudformation.get_waiter("stack_delete_complete").wait(StackName=self.stack_id)
            yield f"stack {self.stack_id}"
        for part in self.parts:
            if part.kind in keep:
                continue
            try:
                KINDS[part.kind].delete(self._session, part.name)
            except ClientError as error:
                if error.response["Error"]["Code"] not in _GONE:
                    raise
            yield f"{part.kind} {part.name}"

    def _find(self, stack: str) -> str:
        """Returns the ARN of the stack, or of the newest deleted one of its name."""
        try:
            (found,) = self._cloudformation.describe_stacks(StackName=stack)["Stacks"]
            return str(found["StackId"])
        except ClientError as error:
            if "does not exist" not in str(error):
                raise
        pages = self._cloudformation.get_paginator("list_stacks").paginate(
            StackStatusFilter=["DELETE_COMPLETE"]
        )
        deleted = [
            each for page in pages for each in page["StackSummaries"] if each["StackName"] == stack
        ]
        if not deleted:
            raise SystemExit(f"{stack}: there is no such stack, nor was one deleted in 90 days")
        return str(max(deleted, key=lambda each: each["DeletionTime"])["StackId"])

    def _parts(self, stack_id: str) -> Iterator[Part]:
        """Yields the resources that outlive the stack and its nested stacks."""
        by_type = {kind.resource: name for name, kind in KINDS.items()}
        pages = self._cloudformation.get_paginator("list_stack_resources").paginate(
            StackName=stack_id
        )
        for page in pages:
            for each in page["StackResourceSummaries"]:
                physical = each.get("PhysicalResourceId")
                if not physical:
                    continue  # its creation failed
                if each["ResourceType"] == NESTED:
                    yield from self._parts(physical)
                elif each["ResourceStatus"] == "DELETE_COMPLETE":
                    continue  # it went with its stack
                elif each["ResourceType"] in by_type:
                    yield Part(by_type[each["ResourceType"]], physical)


class Kind(NamedTuple):
    """A kind of resource that outlives a stack."""

    resource: str
    delete: Callable[[boto3.session.Session, str], None]


def _delete_table(session: boto3.session.Session, name: str) -> None:
    dynamodb = session.client("dynamodb")
    dynamodb.update_table(TableName=name, DeletionProtectionEnabled=False)
    dynamodb.get_waiter("table_exists").wait(TableName=name)
    dynamodb.delete_table(TableName=name)


def _delete_bucket(session: boto3.session.Session, name: str) -> None:
    """Deletes a bucket with all versions of its objects, markers, and unfinished uploads."""
    s3 = session.client("s3")
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=name):
        held = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        objects = [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in held]
        for first in range(0, len(objects), _TOGETHER):
            some = {"Objects": objects[first : first + _TOGETHER], "Quiet": True}
            failed = s3.delete_objects(Bucket=name, Delete=some).get("Errors")
            if failed:
                raise SystemExit(f"bucket {name}: {failed[0]['Key']}: {failed[0]['Message']}")
    s3.delete_bucket(Bucket=name)


def _delete_queue(session: boto3.session.Session, url: str) -> None:
    session.client("sqs").delete_queue(QueueUrl=url)


def _delete_secret(session: boto3.session.Session, arn: str) -> None:
    secrets = session.client("secretsmanager")
    if "DeletedDate" not in secrets.describe_secret(SecretId=arn):
        secrets.delete_secret(SecretId=arn, RecoveryWindowInDays=WAIT_DAYS)


def _delete_key(session: boto3.session.Session, key: str) -> None:
    kms = session.client("kms")
    if kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] != "PendingDeletion":
        kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=WAIT_DAYS)


KINDS: Mapping[str, Kind] = {
    "tables": Kind("AWS::DynamoDB::Table", _delete_table),
    "buckets": Kind("AWS::S3::Bucket", _delete_bucket),
    "queue": Kind("AWS::SQS::Queue", _delete_queue),
    "secret": Kind("AWS::SecretsManager::Secret", _delete_secret),
    "key": Kind("AWS::KMS::Key", _delete_key),
}
"""Kinds of resources that outlive a stack, in the order of their deletion."""


def main(arguments: Sequence[str]) -> int:
    """Runs the command line. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m infra.remove", description=__doc__)
    parser.add_argument("stack", help="its name, or its ARN where two of one name were deleted")
    parser.add_argument("--keep", default="", help=f"of {','.join(KINDS)}: what stays")
    parser.add_argument("--region")
    parser.add_argument("--profile")
    parser.add_argument("--yes", action="store_true", help="delete without asking")
    given = parser.parse_args(arguments)
    keep = [each for each in given.keep.split(",") if each]
    if unknown := set(keep) - KINDS.keys():
        parser.error(f"--keep: {unknown.pop()} is none of {', '.join(KINDS)}")
    if "tables" in keep and "key" not in keep:
        parser.error("--keep: tables cannot be read without key: keep it too")
    removal = Removal(
        boto3.session.Session(region_name=given.region, profile_name=given.profile), given.stack
    )
    print(f"stack {removal.stack_id}" if removal.stack_is_there else "the stack is deleted already")
    for part in removal.parts:
        print(part.kind, part.name, "(stays)" if part.kind in keep else "")
    if (
        not given.yes
        and input(f"Type {given.stack} to delete all of this for good: ") != given.stack
    ):
        print("nothing was deleted", file=sys.stderr)
        return 1
    for told in removal.run(keep):
        print("deleted", told, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
