"""A client of DynamoDB whose calls the engine does, without botocore's way through JSON.

The service calls it as it calls botocore's client, in the same shapes. Members and types are
checked by `bodies`, so a call can pass only what a body to DynamoDB could. Nothing is sent, so
nothing is retried: a transaction needs no token of the SDK.
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
    """Does operations: the engine, or a guard in front of it."""

    def execute(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Does one operation. Raises EngineError."""
        ...


class EngineClient:
    """A method for each operation, named as botocore names it: `put_item(TableName=…, Item=…)`.

    Each returns DynamoDB's answer, or raises botocore's ClientError.
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
    """Returns the name of a method: `put_item` for `PutItem`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()
