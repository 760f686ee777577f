"""The product's AWS session on one machine: calls end at the stack, none leaves it."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import botocore.session
from botocore.awsrequest import AWSResponse
from botocore.response import StreamingBody

from cirrusmq_local.functions import Functions, UnknownFunctionError
from cirrusmq_local.template import REGION


class NotOnOneMachineError(Exception):
    """The product called an AWS service that the stack does not have."""


def isolate_environment() -> None:
    """Let nothing that is set up for a real account reach the product's clients."""
    os.environ |= {
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        os.environ.pop(name, None)


def make_session(functions: Callable[[], Functions]) -> botocore.session.Session:
    """A session whose clients invoke functions here and refuse every other call.

    A client that the embedded engine is attached to answers before the refusal: botocore asks
    the handler of the more specific event first.
    """
    session = botocore.session.Session()
    session.set_credentials("local", "local")
    session.set_config_variable("region", REGION)

    def invoke(params: dict[str, Any], **_: Any) -> tuple[AWSResponse, dict[str, Any]]:
        return _invoke(functions(), params)

    session.register("before-call.lambda.Invoke", invoke)
    session.register("before-call", _refuse)
    return session


def _invoke(functions: Functions, params: dict[str, Any]) -> tuple[AWSResponse, dict[str, Any]]:
    name = unquote(params["url_path"].split("/functions/")[1].split("/")[0]).rpartition(":")[2]
    event = json.loads(params["body"] or b"{}")
    try:
        if params["headers"].get("X-Amz-Invocation-Type") == "Event":
            functions.send(name, event)
            return _answer(202, b"")
        return _answer(200, json.dumps(functions.run(name, event)).encode())
    except UnknownFunctionError as error:
        http, _ = _answer(404, b"")
        return http, {
            "Error": {"Code": "ResourceNotFoundException", "Message": str(error)},
            "ResponseMetadata": {"HTTPStatusCode": 404, "RetryAttempts": 0},
        }


def _answer(status: int, payload: bytes) -> tuple[AWSResponse, dict[str, Any]]:
    parsed = {
        "StatusCode": status,
        "ExecutedVersion": "$LATEST",
        "Payload": StreamingBody(io.BytesIO(payload), len(payload)),
        "ResponseMetadata": {"HTTPStatusCode": status, "RetryAttempts": 0},
    }
    return AWSResponse("", status, {}, None), parsed


def _refuse(model: Any, **_: Any) -> None:
    service = model.service_model.service_id
    raise NotOnOneMachineError(f"{service} {model.name} is not available on one machine")
