"""Whose call it is: told by path and headers alone, before anything is read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from cirrusmq.base.errors import NotFound
from cirrusmq.wiring import bootstrap
from cirrusmq_dialects.calling import Call, Context, read_call
from cirrusmq_lambda import problems

_CMQ_PATH = "/v2/index.php"
_EMQ_PATH = re.compile(r"(?:/.*)?/v1/api/(?:queue|message|statistics)")
_ALIYUN_PATH = re.compile(r"/topics/[^/]+/messages")
_OF_SNS = "/sns/aws4_request"
_SNS = re.compile(r"Credential=[^/,\s]+/[^/,\s]+/[^/,\s]+/sns/aws4_request")
_SNS_IN_QUERY = re.compile(r"(?:^|&)X-Amz-Credential=[^&]*%2Fsns%2Faws4_request")
_OPENED = re.compile(r"(?:^|&)Action=(?:ConfirmSubscription|Unsubscribe)(?:&|$)")
FORM = "application/x-www-form-urlencoded"


def dialect_of(method: str, path: str, headers: Mapping[str, str], query: str = "") -> str | None:
    """Returns the name of the dialect that a call is in, or None if it is in none.

    CMQ has one path, EMQ three, and Aliyun's calls are at topics' messages. SNS is called by a
    signature for it; SQS by a header, or, by clients from before 2023, with a signed form; both at
    any path. A subscriber of SNS's opens the addresses that it was sent: without a signature.
    """
    if path == _CMQ_PATH:
        return "cmq"
    authorization = headers.get("authorization", "")
    is_signed = authorization.startswith("AWS4-HMAC-SHA256")
    if is_signed and _OF_SNS in authorization and _SNS.search(authorization):
        return "sns"
    if query and (_SNS_IN_QUERY.search(query) or (not authorization and _OPENED.search(query))):
        return "sns"
    if method == "POST":
        if path != "/" and _EMQ_PATH.fullmatch(path):
            return "emq"
        if headers.get("x-amz-target", "").startswith("AmazonSQS."):
            return "sqs"
        is_form = headers.get("content-type", "").lower().startswith(FORM)
        if is_form and is_signed:
            return "sqs"
    if _ALIYUN_PATH.fullmatch(path):
        return "aliyun"
    return None


def serve(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """Serves an event in the dialect that its call is in, if this deployment has the dialect.

    SQS's dialect, if deployed, answers the other calls: it knows what its SDKs read.
    """
    call = read_call(event, context, bootstrap.service())
    name = dialect_of(call.method, call.path, call.headers, call.query) or "sqs"
    served = os.environ.get("DIALECTS", "").split(",")
    if name == "sns" and name not in served:
        name = "sqs"  # which answers that this endpoint has no such service
    if name not in served:
        return problems.problem(NotFound(), call.id)
    return _serve_of(name)(call)


@cache
def _serve_of(name: str) -> Callable[[Call], dict[str, Any]]:
    """Loads a dialect. Never another one: each would be a part of the others' cold starts."""
    found: Callable[[Call], dict[str, Any]] = import_module(f"cirrusmq_dialects.{name}").serve
    return found
