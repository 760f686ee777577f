"""A client of DynamoDB that has the engine do its calls, without botocore's way through JSON.

The service makes the same calls of it, in the same shapes, as of botocore's client. What a call's
body could not carry to DynamoDB it does not carry here: members and types are those of `bodies`.
Nothing is repeated, since nothing is sent: a transaction needs no token of the SDK's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import msgspec
from botocore.exceptions import ClientError

from cirrusmq_local.engine.bodies import BODY_TYPES
from cirrusmq_local.engine.errors import EngineError


class Executing(Protocol):
    """What does operations: the engine, or a guard before it."""

    def execute(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do one operation, or raise EngineError."""
        ...


class EngineClient:
    """A method for each operation, named as botocore names it: `put_item(TableName=…, Item=…)`.

    Each answers what DynamoDB does, or raises botocore's ClientError.
    """

    def __init__(self, engine: Executing) -> None:
        self._engine = engine
        self._methods: dict[str, Callable[..., dict[str, Any]]] = {
            _method(operation): partial(self._call, operation) for operation in BODY_TYPES
        }

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        method = self._methods.get(name)
        if method is None:
            raise AttributeError(name)
        setattr(self, name, method)
        return method

    def _call(self, operation: str, **request: Any) -> dict[str, Any]:
        try:
            checked = msgspec.convert(request, BODY_TYPES[operation])
        except msgspec.ValidationError as error:
            raise _error(EngineError("SerializationException", str(error)), operation) from None
        try:
            return self._engine.execute(operation, checked)
        except EngineError as error:
            raise _error(error, operation) from error


def _error(error: EngineError, operation: str) -> ClientError:
    told: dict[str, Any] = {
        "Error": {"Code": error.code, "Message": error.message},
        "ResponseMetadata": {"HTTPStatusCode": error.status, "RetryAttempts": 0},
        **error.extra,
    }
    return ClientError(told, operation)


def _method(operation: str) -> str:
    """`PutItem` -> `put_item`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()
