"""Writes answers of the JSON protocol."""

from __future__ import annotations

from typing import Any

import msgspec

from cirrusmq_dialects.calling import Answer
from cirrusmq_dialects.sqs.errors import SqsError

JSON = "application/x-amz-json-1.0"


def write(result: dict[str, Any], request_id: str) -> Answer:
    """Returns the answer of a call."""
    return Answer(200, _headers(request_id), msgspec.json.encode(result))


def write_error(error: SqsError, request_id: str) -> Answer:
    """Returns the answer of a refused call; SDKs take the query protocol's code from the header."""
    fault = "Sender" if error.is_senders else "Receiver"
    headers = _headers(request_id) | {"x-amzn-query-error": f"{error.query_code};{fault}"}
    body = msgspec.json.encode({"__type": error.type, "message": error.message})
    return Answer(error.status, headers, body)


def _headers(request_id: str) -> dict[str, str]:
    return {"Content-Type": JSON, "x-amzn-RequestId": request_id}
