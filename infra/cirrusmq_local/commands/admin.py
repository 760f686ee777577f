"""`cirrusmq admin`: calls the API with an admin key by invoking the function."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer

from cirrusmq_client import find_connection
from cirrusmq_local.commands.arguments import DATA, Data
from cirrusmq_local.commands.console import fail


def admin(
    method: Annotated[str, typer.Argument(help="GET, PUT, POST, PATCH or DELETE.")],
    path: Annotated[str, typer.Argument(help="With its query: /keys?limit=10")],
    function: Annotated[
        str, typer.Option(help="Name or ARN: <stack>-manage, for topics <stack>-subscribe too.")
    ],
    body: Annotated[str | None, typer.Option(help="JSON.")] = None,
    data: Data = DATA,
) -> None:
    """Call the API with an admin key and your AWS credentials, by lambda:InvokeFunction.

    For deployments with AdminCalls=invoke, which accept admin keys in no other way. The command
    invokes the function's alias live. Prints the JSON of the answer; exits with 1 if the call is
    rejected.
    """
    if body is not None:
        try:
            json.loads(body)
        except ValueError as error:
            raise typer.BadParameter(f"must be JSON: {error}", param_hint="--body") from None
    if not path.startswith("/"):
        raise typer.BadParameter("must begin with /", param_hint="PATH")
    answer = invoke(function, event(method.upper(), path, body, data))
    print(answer.get("body") or "")
    if answer["statusCode"] >= 400:
        raise typer.Exit(1)


def event(method: str, path: str, body: str | None, data: Path) -> dict[str, Any]:
    """The call as an event of a function's URL, marked as invoked."""
    from cirrusmq_lambda.http import INVOKED
    from cirrusmq_local.cloud.events import Request, make_url_event

    raw_path, _, query = path.partition("?")
    headers = {
        "authorization": find_connection(data).authorization,
        "content-type": "application/json",
    }
    request = Request(
        method=method,
        raw_path=raw_path,
        query=query,
        headers=[*headers.items()],
        body=(body or "").encode(),
        source="",
        http_version="1.1",
    )
    return {**make_url_event(request, str(uuid4()), time.time_ns() // 1_000_000), INVOKED: True}


def invoke(function: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Return the function's answer; exits with 1 if IAM or Lambda rejects the call, or it fails."""
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        client = boto3.client("lambda")
        told = client.invoke(FunctionName=function, Qualifier="live", Payload=json.dumps(asked))
    except (BotoCoreError, ClientError) as error:
        fail(str(error))
    answer: dict[str, Any] = json.loads(told["Payload"].read() or b"{}")
    if "FunctionError" in told or "statusCode" not in answer:
        fail(f"{function} answered {answer.get('errorMessage', answer)}")
    return answer
