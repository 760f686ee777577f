"""Answers: JSON of status 200, even if a call is refused."""

from __future__ import annotations

from typing import Any

import msgspec

from cirrusmq_dialects.calling import Answer
from cirrusmq_dialects.cmq.errors import CmqError

_HEADERS = {"Content-Type": "application/json; charset=utf-8"}


def write(result: dict[str, Any], request_id: str, echoed: dict[str, str]) -> Answer:
    """Returns the answer of a call; `echoed`: parameters that the answer repeats."""
    told = {"code": 0, "message": "", "requestId": request_id}
    return Answer(200, dict(_HEADERS), msgspec.json.encode({**told, **echoed, **result}))


def write_error(error: CmqError, request_id: str, echoed: dict[str, str]) -> Answer:
    """Returns the answer of a refused call."""
    told = {"code": error.code, "message": error.message, "requestId": request_id}
    return Answer(200, dict(_HEADERS), msgspec.json.encode({**told, **echoed, **error.more}))
