"""`cirrusmq secret …`: the deployment's signing secret, on one machine or in an account."""

from __future__ import annotations

import re
import secrets
import time
from typing import Annotated

import typer

from cirrusmq_local.commands.arguments import DATA, Data, Json
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import fail, print_record

secret = typer.Typer(no_args_is_help=True, help="Rotate the deployment's secret.")


@secret.callback()
def _group() -> None:
    """Change the secret of the whole deployment, not of one account."""


@secret.command("rotate")
def rotate(
    arn: Annotated[
        str | None,
        typer.Option(help="In an account: the stack's output Secret; needs your AWS credentials."),
    ] = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Make a new generation of the secret; the old one stays valid until the next rotation.

    URLs get both signatures from now on. Before the next rotation each endpoint must have
    the new secret: cirrusmq topic secret <topic> <subscription>. At most once a day.
    """
    if arn is None:
        print_record(connect(data).call("POST", "/local/secret/rotate"), as_json)
    elif not re.match(r"arn:[^:]+:secretsmanager:[^:]+:", arn):
        raise typer.BadParameter("must be the ARN of a secret", param_hint="--arn")
    else:
        print_record({"signs_from": rotate_in_account(arn)}, as_json)


def rotate_in_account(arn: str) -> str:
    """Write a document with a new generation to Secrets Manager. Returns when it starts to sign.

    The replaced version stays there as AWSPREVIOUS. Exits with 1 if AWS rejects the call.
    """
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    from cirrusmq.base.errors import InUse, Unavailable
    from cirrusmq.base.timestamps import format_time
    from cirrusmq.runtime.secret import SECRET_BYTES, USED_AFTER_MS, turned_over

    now_ms = time.time_ns() // 1_000_000
    try:
        client = boto3.client("secretsmanager", region_name=arn.split(":")[3])
        held = client.get_secret_value(SecretId=arn)["SecretString"]
        document = turned_over(held, now_ms, secrets.token_bytes(SECRET_BYTES))
        client.put_secret_value(SecretId=arn, SecretString=document)
    except (InUse, Unavailable) as error:
        fail(error.detail)
    except (BotoCoreError, ClientError) as error:
        fail(str(error))
    return format_time(now_ms + USED_AFTER_MS)
