"""Restores the tables of a deployment to a moment, and sets the attributes that a restore loses.

    python -m infra.restore --stack cirrusmq --at 2026-11-20T08:00:00Z

DynamoDB restores a table into a new one, without its stream, TTL, point-in-time recovery, deletion
protection and tags. Prints the parameters with which the stack is deployed on the new tables. The
command may be run again, also after it was stopped: finished steps are not repeated.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import boto3

OUTPUTS = {
    "DirectoryTable": "ExistingDirectoryTable",
    "MessagesTable": "ExistingMessagesTable",
    "UsageTable": "ExistingUsageTable",
}
"""Output of the stack that names a table -> parameter that replaces the table."""
TTL_ATTRIBUTE = "expires_at"
STREAM_OF = "MessagesTable"
_WAIT = {"Delay": 20, "MaxAttempts": 1_080}
"""Six hours: a restore takes longer for a larger table."""


def restore(dynamodb: Any, source: str, at: datetime) -> str:
    """Restores a table to a moment, with its settings. Returns the new table's name."""
    name = restored_name(source, at)
    with contextlib.suppress(dynamodb.exceptions.TableAlreadyExistsException):
        dynamodb.restore_table_to_point_in_time(
            SourceTableName=source, TargetTableName=name, RestoreDateTime=at
        )
    dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig=_WAIT)
    return name


def put_back(dynamodb: Any, name: str, source: str, *, stream: bool) -> str | None:
    """Sets the source's attributes that a restore loses. Returns the stream's ARN, or None."""
    table = _described(dynamodb, name)
    if stream and not table.get("StreamSpecification", {}).get("StreamEnabled"):
        specification = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        dynamodb.update_table(TableName=name, StreamSpecification=specification)
        dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig=_WAIT)
    lives = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    if lives["TimeToLiveStatus"] not in ("ENABLED", "ENABLING"):
        dynamodb.update_time_to_live(
            TableName=name,
            TimeToLiveSpecification={"Enabled": True, "AttributeName": TTL_ATTRIBUTE},
        )
    dynamodb.update_continuous_backups(
        TableName=name,
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
    )
    if not table.get("DeletionProtectionEnabled"):
        dynamodb.update_table(TableName=name, DeletionProtectionEnabled=True)
        dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig=_WAIT)
    has = _tags(dynamodb, table["TableArn"])
    lacks = [
        tag for tag in _tags(dynamodb, _described(dynamodb, source)["TableArn"]) if tag not in has
    ]
    if lacks:
        dynamodb.tag_resource(ResourceArn=table["TableArn"], Tags=lacks)
    arn: str | None = _described(dynamodb, name).get("LatestStreamArn") if stream else None
    return arn


def restored_name(source: str, at: datetime) -> str:
    """Returns a name that is equal for equal moments, so that a second run finds the table."""
    # A table that was restored before keeps its first name; otherwise names grow without end.
    first = source.partition("-restored-")[0]
    return f"{first}-restored-{at:%Y%m%dT%H%M%SZ}"


def restore_stack(cloudformation: Any, dynamodb: Any, stack: str, at: datetime) -> dict[str, str]:
    """Restores all tables of a stack. Returns the parameters with which it uses them."""
    (found,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    named = {each["OutputKey"]: each["OutputValue"] for each in found["Outputs"]}
    parameters = {}
    for output, parameter in OUTPUTS.items():
        source = named[output]
        name = restore(dynamodb, source, at)
        stream = put_back(dynamodb, name, source, stream=output == STREAM_OF)
        parameters[parameter] = name
        if stream is not None:
            parameters["ExistingMessagesStream"] = stream
    return parameters


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m infra.restore", description=__doc__)
    parser.add_argument("--stack", required=True, help="name of the stack")
    parser.add_argument("--at", required=True, type=_moment, help="RFC 3339, such as …T08:00:00Z")
    given = parser.parse_args(arguments)
    parameters = restore_stack(
        boto3.client("cloudformation"), boto3.client("dynamodb"), given.stack, given.at
    )
    # A gradual rollout would leave nine of ten calls with the old tables.
    parameters["Rollout"] = "AllAtOnce"
    print(*(f"{name}={value}" for name, value in parameters.items()))


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise argparse.ArgumentTypeError("must have a zone, such as Z")
    return moment.astimezone(UTC)


def _tags(dynamodb: Any, arn: str) -> list[dict[str, str]]:
    """Returns the tags of a table, without CloudFormation's."""
    tags = dynamodb.list_tags_of_resource(ResourceArn=arn).get("Tags", [])
    return [tag for tag in tags if not tag["Key"].startswith("aws:")]


def _described(dynamodb: Any, name: str) -> dict[str, Any]:
    table: dict[str, Any] = dynamodb.describe_table(TableName=name)["Table"]
    return table


if __name__ == "__main__":
    main()
