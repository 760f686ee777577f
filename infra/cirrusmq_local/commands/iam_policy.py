"""`cirrusmq iam-policy`: the IAM policy of a process that uses the tables directly."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from cirrusmq_local.commands.arguments import DATA, Data
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import fail

_PARTITIONS = {"cn-": "aws-cn", "us-gov-": "aws-us-gov"}


def iam_policy(
    queues: Annotated[list[str], typer.Argument(help="Queues of the key's account.")],
    aws_account: Annotated[str, typer.Option(help="The AWS account of the tables, 12 digits.")],
    key_arn: Annotated[
        str, typer.Option(help="The ARN of the key of KMS that encrypts the tables.")
    ] = "",
    data: Data = DATA,
) -> None:
    """Print the IAM policy that lets a process use the tables of these queues directly.

    For deployments with InProcess=true, and Client(in_process=True). If you delete a queue and make
    it again, it has another id: then print the policy again too.
    """
    from cirrusmq_local.cloud.own_policy import own_policy

    if not (aws_account.isascii() and aws_account.isdigit() and len(aws_account) == 12):
        raise typer.BadParameter("must be 12 digits", param_hint="--aws-account")
    with connect(data) as client:
        told: Any = client.endpoints()
        named = told.get("in_process")
        if named is None:
            fail("the service names no tables", "its operator sets the parameter InProcess=true")
        ids = [client.show_queue(queue)["id"] for queue in queues]
    region = named["region"]
    tables = f"arn:{_partition(region)}:dynamodb:{region}:{aws_account}:table/"
    policy = own_policy(
        named["account"],
        ids,
        directory_arn=tables + named["directory"],
        messages_arn=tables + named["messages"],
        key_arn=key_arn,
        region=region,
    )
    print(json.dumps(policy, indent=2))


def _partition(region: str) -> str:
    """Return the AWS partition of a region."""
    return next((name for begin, name in _PARTITIONS.items() if region.startswith(begin)), "aws")
