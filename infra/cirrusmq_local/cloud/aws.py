"""The product's AWS session on one machine: the stack answers all calls, none leaves it."""

from __future__ import annotations

import base64
import io
import json
import os
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import botocore.session
from botocore.awsrequest import AWSResponse
from botocore.response import StreamingBody

from cirrusmq_local.bucket.attachment import Answering, attach_bucket
from cirrusmq_local.cloud.executions import (
    ExecutionExistsError,
    Executions,
    UnknownStateMachineError,
)
from cirrusmq_local.cloud.functions import Functions, UnknownFunctionError, split_name
from cirrusmq_local.cloud.invocation import (
    EventTooLargeError,
    Invocation,
    TooManyRequestsError,
    running,
)
from cirrusmq_local.cloud.sealing import KEY, NotSealedError, SealingKey
from cirrusmq_local.cloud.template import REGION
from cirrusmq_local.cloud.unprocessed import UnprocessedQueue


class NotOnOneMachineError(Exception):
    """The product called an AWS service that the stack does not have."""


def isolate_environment() -> None:
    """Keeps the settings of a real account away from the product's clients."""
    os.environ |= {
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    endpoints = [name for name in os.environ if name.startswith("AWS_ENDPOINT_URL")]
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", *endpoints):
        os.environ.pop(name, None)


def make_session(
    functions: Callable[[], Functions],
    executions: Callable[[], Executions] | None = None,
    unprocessed: UnprocessedQueue | None = None,
    read_secret: Callable[[], str] | None = None,
    bucket: Answering | None = None,
    sealing: SealingKey | None = None,
) -> botocore.session.Session:
    """Returns a session for the product on one machine.

    Its clients invoke functions, start executions, read failed events and the secret; clients of S3
    keep objects in the bucket, clients of KMS encrypt by `sealing`. They do nothing else.

    A client that the embedded engine is attached to answers before the refusal: botocore asks
    the handler of the more specific event first.
    """
    session = botocore.session.Session()
    session.set_credentials("local", "local")
    session.set_config_variable("region", REGION)

    def invoke(params: dict[str, Any], **_: Any) -> tuple[AWSResponse, dict[str, Any]]:
        return _invoke(functions(), params)

    def start(params: dict[str, Any], **_: Any) -> tuple[AWSResponse, dict[str, Any]]:
        assert executions is not None
        return _start_execution(executions(), params)

    def receive(params: dict[str, Any], **_: Any) -> tuple[AWSResponse, dict[str, Any]]:
        assert unprocessed is not None
        return _receive(unprocessed, params)

    def remove(params: dict[str, Any], **_: Any) -> tuple[AWSResponse, dict[str, Any]]:
        assert unprocessed is not None
        return _remove(unprocessed, params)

    def show_secret(params: dict[str, Any], **_: Any) -> tuple[AWSResponse, dict[str, Any]]:
        assert read_secret is not None
        return _show_secret(read_secret, params)

    session.register("before-call.lambda.Invoke", invoke)
    if unprocessed is not None:
        session.register("before-call.sqs.ReceiveMessage", receive)
        session.register("before-call.sqs.DeleteMessage", remove)
    if read_secret is not None:
        session.register("before-call.secrets-manager.GetSecretValue", show_secret)
    if sealing is not None:
        session.register(
            "before-call.kms", lambda model, params, **_: _seal(sealing, model, params)
        )
    if executions is not None:
        session.register("before-call.sfn.StartExecution", start)
    if bucket is not None:
        attach_bucket(bucket, session)
    session.register("before-call", _refuse)
    return session


def _invoke(functions: Functions, params: dict[str, Any]) -> tuple[AWSResponse, dict[str, Any]]:
    asked = unquote(params["url_path"].split("/functions/")[1].split("/")[0])
    name, qualifier = split_name(asked)
    event = json.loads(params["body"] or b"{}")
    try:
        called = functions.find(name)
    except UnknownFunctionError as error:
        return _error(404, "ResourceNotFoundException", str(error))
    invocation = running.get()
    # To IAM a version or an alias is a separate resource.
    targets = [
        f"{arn}:{qualifier}" if qualifier else arn
        for arn in (called.arn, f"{called.logical_id}.Arn")
    ]
    if not _may(invocation, "lambda:InvokeFunction", *targets):
        return _not_allowed(invocation, "lambda:InvokeFunction", asked)
    chain = invocation.chain if invocation else ()
    try:
        if params["headers"].get("X-Amz-Invocation-Type") == "Event":
            functions.send(name, event, chain)
            return _invoked(202, b"")
        return _invoked(200, json.dumps(functions.run(name, event, chain)).encode())
    except EventTooLargeError as error:
        return _error(413, "RequestTooLargeException", str(error))
    except TooManyRequestsError as error:
        return _error(429, "TooManyRequestsException", str(error))
    except Exception as error:
        told = {"errorType": type(error).__name__, "errorMessage": str(error)}
        return _invoked(200, json.dumps(told).encode(), {"FunctionError": "Unhandled"})


def _invoked(
    status: int, payload: bytes, more: dict[str, Any] | None = None
) -> tuple[AWSResponse, dict[str, Any]]:
    """Returns the answer to an invocation. `more`: set if the payload is the function's error."""
    told = {
        "StatusCode": status,
        "ExecutedVersion": "$LATEST",
        "Payload": StreamingBody(io.BytesIO(payload), len(payload)),
    }
    return _answer(status, told | (more or {}))


def _start_execution(
    executions: Executions, params: dict[str, Any]
) -> tuple[AWSResponse, dict[str, Any]]:
    asked = json.loads(params["body"])
    try:
        machine = executions.find(asked["stateMachineArn"])
        invocation = running.get()
        allowed = (machine.arn, f"{machine.logical_id}.Arn")
        if not _may(invocation, "states:StartExecution", *allowed):
            return _not_allowed(invocation, "states:StartExecution", machine.arn)
        arn = executions.start(machine.arn, asked["name"], asked.get("input", "{}"))
    except UnknownStateMachineError as error:
        return _error(400, "StateMachineDoesNotExist", str(error))
    except ExecutionExistsError as error:
        return _error(400, "ExecutionAlreadyExists", str(error))
    return _answer(200, {"executionArn": arn, "startDate": datetime.now(UTC)})


def _receive(
    unprocessed: UnprocessedQueue, params: dict[str, Any]
) -> tuple[AWSResponse, dict[str, Any]]:
    invocation = running.get()
    if not _may(invocation, "sqs:ReceiveMessage", "Unprocessed.Arn"):
        return _not_allowed(invocation, "sqs:ReceiveMessage", "Unprocessed")
    received = unprocessed.receive(json.loads(params["body"])["VisibilityTimeout"])
    messages = [
        {
            "MessageId": each.handle,
            "ReceiptHandle": each.handle,
            "Body": each.text,
            "Attributes": {"ApproximateReceiveCount": "1" if each.is_new else "2"},
        }
        for each in received
    ]
    return _answer(200, {"Messages": messages} if messages else {})


def _remove(
    unprocessed: UnprocessedQueue, params: dict[str, Any]
) -> tuple[AWSResponse, dict[str, Any]]:
    invocation = running.get()
    if not _may(invocation, "sqs:DeleteMessage", "Unprocessed.Arn"):
        return _not_allowed(invocation, "sqs:DeleteMessage", "Unprocessed")
    unprocessed.remove(json.loads(params["body"])["ReceiptHandle"])
    return _answer(200, {})


def _show_secret(
    read_secret: Callable[[], str], params: dict[str, Any]
) -> tuple[AWSResponse, dict[str, Any]]:
    name, invocation = json.loads(params["body"])["SecretId"], running.get()
    if not _may(invocation, "secretsmanager:GetSecretValue", name):
        return _not_allowed(invocation, "secretsmanager:GetSecretValue", name)
    return _answer(200, {"Name": name, "SecretString": read_secret()})


def _seal(
    sealing: SealingKey, model: Any, params: dict[str, Any]
) -> tuple[AWSResponse, dict[str, Any]]:
    """Does the operation Encrypt or Decrypt."""
    asked = json.loads(params["body"])
    ((_, key_id),) = asked["EncryptionContext"].items()
    invocation, action = running.get(), f"kms:{model.name}"
    if not _may(invocation, action, KEY, partition=key_id):
        return _not_allowed(invocation, action, KEY)
    if model.name == "Encrypt":
        plain = base64.b64decode(asked["Plaintext"])
        return _answer(200, {"CiphertextBlob": sealing.encrypt(key_id, plain)})
    try:
        plain = sealing.decrypt(key_id, base64.b64decode(asked["CiphertextBlob"]))
    except NotSealedError:
        return _error(400, "InvalidCiphertextException", "")
    return _answer(200, {"Plaintext": plain})


def _may(invocation: Invocation | None, action: str, *targets: str, partition: str = "") -> bool:
    """Returns True if the running function may do this. Raises if its time is over."""
    if invocation is None:
        return True
    invocation.check_time()
    return invocation.function.may(action, *targets, partition=partition)


def _not_allowed(
    invocation: Invocation | None, action: str, target: str
) -> tuple[AWSResponse, dict[str, Any]]:
    name = invocation.function.name if invocation else ""
    text = f"{name} is not allowed {action} on {target}: see template.yaml"
    return _error(403, "AccessDeniedException", text)


def _error(status: int, code: str, text: str) -> tuple[AWSResponse, dict[str, Any]]:
    return _answer(status, {"Error": {"Code": code, "Message": text}})


def _answer(status: int, parsed: dict[str, Any]) -> tuple[AWSResponse, dict[str, Any]]:
    told = {"HTTPStatusCode": status, "RetryAttempts": 0, "RequestId": str(uuid.uuid4())}
    return AWSResponse("", status, {}, None), {**parsed, "ResponseMetadata": told}


def _refuse(model: Any, **_: Any) -> None:
    service = model.service_model.service_id
    raise NotOnOneMachineError(f"{service} {model.name} is not available on one machine")
