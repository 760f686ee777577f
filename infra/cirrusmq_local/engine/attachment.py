"""The engine in the place of the network: botocore's `before-call` event answers for DynamoDB.

The event comes after a request is serialised and before it is signed and sent. So nothing is
signed, retried or sent; a client needs a region, but no credentials. However, without credentials
PynamoDB makes a new client for each call, and botocore looks for credentials in the network each
time: set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` to anything.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from botocore.handlers import BUILTIN_HANDLERS
from botocore.model import OperationModel

from cirrusmq_local.engine.bodies import decode_body
from cirrusmq_local.engine.engine import Engine
from cirrusmq_local.engine.errors import EngineError

_EVENT = "before-call.dynamodb"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The part of an HTTP response that botocore and its handlers read."""

    status_code: int
    headers: dict[str, str] = field(default_factory=dict)


def attach(engine: Engine, target: Any) -> Callable[[], None]:
    """Lets the engine answer every DynamoDB call of `target`. Returns a call that detaches it.

    `target` is a botocore client, a botocore or boto3 session (for the clients that it makes from
    now on), or a connection of PynamoDB.
    """
    events = _events(target)

    def handler(model: OperationModel, params: dict[str, Any], **_: Any) -> Any:
        return answer(engine, model, params["body"])

    events.register(_EVENT, handler)
    return lambda: events.unregister(_EVENT, handler)


_global_engine: Engine | None = None


def attach_globally(engine: Engine) -> Callable[[], None]:
    """Lets the engine answer every client of this process. Returns a call that detaches it.

    Applies to clients of sessions made after the first call in the process, so also to the clients
    that PynamoDB's models make. A later call replaces this engine by another one, for existing
    clients, too. After the detaching, calls go to the network.
    """
    global _global_engine
    _global_engine = engine
    if (_EVENT, _answer_globally) not in BUILTIN_HANDLERS:
        BUILTIN_HANDLERS.append((_EVENT, _answer_globally))

    def detach() -> None:
        global _global_engine
        if _global_engine is engine:
            _global_engine = None

    return detach


def answer(engine: Engine, model: OperationModel, body: bytes) -> tuple[HttpAnswer, dict[str, Any]]:
    """Returns the answer that botocore would have parsed from DynamoDB's response to this body."""
    try:
        parsed = engine.execute(model.name, decode_body(model.name, body))
        status = 200
    except msgspec.ValidationError as error:
        refusal = EngineError("SerializationException", str(error))
        parsed, status = _error(refusal, model), refusal.status
    except EngineError as error:
        parsed, status = _error(error, model), error.status
    request_id = uuid.uuid4().hex.upper()
    headers = {"x-amzn-requestid": request_id}
    parsed["ResponseMetadata"] = {
        "RequestId": request_id,
        "HTTPStatusCode": status,
        "HTTPHeaders": headers,
        "RetryAttempts": 0,
    }
    return HttpAnswer(status, headers), parsed


def _answer_globally(model: OperationModel, params: dict[str, Any], **_: Any) -> Any:
    engine = _global_engine
    return None if engine is None else answer(engine, model, params["body"])


def _error(error: EngineError, model: OperationModel) -> dict[str, Any]:
    parsed: dict[str, Any] = {"Error": {"Message": error.message, "Code": error.code}}
    for shape in model.error_shapes:
        # botocore shows the members of an error that the model knows; one is its message.
        if shape.name == error.code:
            parsed |= {n: error.message for n in shape.members if n.lower() == "message"}
    return parsed | error.extra


def _events(target: Any) -> Any:
    if hasattr(target, "meta"):
        return target.meta.events
    if hasattr(target, "get_component"):
        return target.get_component("event_emitter")
    if hasattr(target, "events"):
        return target.events
    return target.client.meta.events
