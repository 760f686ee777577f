"""The query protocol's answers in JSON, for programs that send `Accept: application/json`.

{"GetQueueAttributesResponse": {"GetQueueAttributesResult": {"Attributes": [{"Name": …}]}}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from cirrusmq_dialects.calling import Answer
from cirrusmq_dialects.sqs import query
from cirrusmq_dialects.sqs.errors import UNKNOWN_OPERATION, SqsError

_TYPE = "application/json"


def write(action: str, result: Mapping[str, Any], request_id: str) -> Answer:
    """Returns the answer of a call."""
    held: dict[str, Any] = {"ResponseMetadata": {"RequestId": request_id}}
    if action not in query.WITHOUT_RESULT:
        held = {f"{action}Result": _shown(result), **held}
    return _answer(200, {f"{action}Response": held}, request_id)


def write_error(error: SqsError, request_id: str) -> Answer:
    """Returns the answer of a refused call; one without an action is answered in XML, as by AWS."""
    if error.shape == UNKNOWN_OPERATION:
        return query.write_error(error, request_id)
    fault = "Sender" if error.is_senders else "Receiver"
    told = {"Type": fault, "Code": error.query_code, "Message": query.message_of(error)}
    return _answer(error.status, {"Error": told, "RequestId": request_id}, request_id)


def _answer(status: int, told: Mapping[str, Any], request_id: str) -> Answer:
    headers = {"Content-Type": _TYPE, "x-amzn-RequestId": request_id}
    return Answer(status, headers, msgspec.json.encode(told))


def _shown(members: Mapping[str, Any]) -> dict[str, Any]:
    """Returns members as JSON has them: a map is a list of its pairs."""
    shown: dict[str, Any] = {}
    for name, held in members.items():
        if name in query.PAIRS and isinstance(held, dict):
            _, key, value = query.PAIRS[name]
            shown[name] = [{key: each, value: _value(found)} for each, found in held.items()]
        else:
            shown[name] = _value(held)
    return shown


def _value(held: Any) -> Any:
    if isinstance(held, dict):
        return _shown(held)
    return [_value(each) for each in held] if isinstance(held, list) else held
