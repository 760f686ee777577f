"""Turns errors into answers: `application/problem+json` (RFC 9457) with the contract's codes."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import UNSET

from cirrusmq.base.errors import CirrusMQError, MethodNotAllowed
from cirrusmq_lambda.answers.body import Problem
from cirrusmq_lambda.replies import envelope

TYPE_PREFIX = "urn:cirrusmq:problem:"
_STATUS = {
    "MalformedRequest": 400,
    "InvalidParameter": 400,
    "InvalidFilter": 400,
    "Unauthenticated": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "QueueNotFound": 404,
    "TopicNotFound": 404,
    "SubscriptionNotFound": 404,
    "MessageNotFound": 404,
    "OperationNotFound": 404,
    "ReceiverNotFound": 404,
    "ReplyNotFound": 404,
    "GrantNotFound": 404,
    "ScheduleNotFound": 404,
    "KeyNotFound": 404,
    "ReportNotFound": 404,
    "MethodNotAllowed": 405,
    "AlreadyExists": 409,
    "ReceiptExpired": 409,
    "ReplyTooLate": 409,
    "InUse": 409,
    "NotRewindable": 409,
    "Conflict": 409,
    "LimitExceeded": 409,
    "NoDeadLetterQueue": 409,
    "MessageTooLarge": 413,
    "BatchTooLarge": 413,
    "RequestTooLarge": 413,
    "UnsupportedMediaType": 415,
    "Throttled": 429,
    "Unavailable": 503,
}


def status_of(code: str) -> int:
    """Returns the HTTP status of a code."""
    return _STATUS.get(code, 500)


def describe(error: CirrusMQError, request_id: str) -> Problem:
    """Returns the problem as a JSON object, also for an entry of an answer about messages."""
    return Problem(
        type=TYPE_PREFIX + error.code,
        title=re.sub(r"(?<=[a-z])(?=[A-Z])", " ", error.code).capitalize(),
        status=status_of(error.code),
        detail=error.detail,
        code=error.code,
        request_id=request_id,
        parameter=UNSET if error.parameter is None else error.parameter,
        cursor=UNSET if error.cursor is None else error.cursor,
    )


def problem(error: CirrusMQError, request_id: str) -> dict[str, Any]:
    """Returns the problem as a function's answer."""
    described = describe(error, request_id)
    headers = {"Content-Type": "application/problem+json"}
    if error.retry_after_seconds is not None:
        headers["Retry-After"] = str(error.retry_after_seconds)
    if isinstance(error, MethodNotAllowed):
        headers["Allow"] = ", ".join(error.allowed)
    if described.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return envelope(described.status, headers, msgspec.json.encode(described))
