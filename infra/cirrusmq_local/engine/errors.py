"""The engine's errors, in DynamoDB's own codes and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cirrusmq_local.engine.wire import Item


class EngineError(Exception):
    """A request that the engine refused.

    `code` and `message` are the members of `Error` in the client's answer, `status` is the HTTP
    status, and `extra` holds further members of the answer (`Item`, `CancellationReasons`).
    """

    def __init__(
        self,
        code: str,
        message: str,
        status: int = 400,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        self.extra = dict(extra or {})


class InvalidRequestError(EngineError):
    """The request is malformed, or cannot be applied to the stored item."""

    def __init__(self, message: str) -> None:
        super().__init__("ValidationException", message)


class ConditionFailedError(EngineError):
    """The item does not match the request's condition.

    `item` is the stored item if the request asked for it, else None; `units` is the cost.
    """

    def __init__(self, item: Item | None, units: float) -> None:
        super().__init__(
            "ConditionalCheckFailedException",
            "The conditional request failed",
            extra={"Item": item} if item else {},
        )
        self.item = item
        self.units = units


class TransactionCanceledError(EngineError):
    """At least one write of a transaction failed, so none was done.

    `reasons` has one entry for each write, in their order: `Code` (`None` for a write that did
    not fail), and for a failed one `Message` and perhaps `Item`. `units` is the cost by table.
    """

    def __init__(self, reasons: Sequence[Mapping[str, Any]], units: Mapping[str, float]) -> None:
        codes = ", ".join(reason["Code"] for reason in reasons)
        message = (
            "Transaction cancelled, please refer cancellation reasons for specific reasons "
            f"[{codes}]"
        )
        super().__init__(
            "TransactionCanceledException",
            message,
            extra={"CancellationReasons": [dict(reason) for reason in reasons]},
        )
        self.units = units


class TokenReusedError(EngineError):
    """A client request token was repeated with another content within its ten minutes."""

    def __init__(self) -> None:
        message = (
            "Request parameters do not match the parameters of an earlier request with this token"
        )
        super().__init__("IdempotentParameterMismatchException", message)


class MissingTableError(EngineError):
    """The engine was opened without this table."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "ResourceNotFoundException", f"Requested resource not found: Table: {name} not found"
        )


class StorageFailedError(EngineError):
    """The disk below the engine failed, for now or for good; the request may have taken effect."""

    def __init__(self, cause: Exception) -> None:
        super().__init__("InternalServerError", f"The store failed: {cause}", 500)


class OtherFormError(Exception):
    """The engine's file was made by another version, or for other tables."""


class UnsupportedError(EngineError):
    """DynamoDB can do this, the embedded engine cannot.

    The code is none of Amazon's: code that handles DynamoDB's errors must not take a gap of the
    engine for an answer of the store.
    """

    def __init__(self, what: str) -> None:
        super().__init__(
            "NotSupportedByEmbeddedEngine", f"The embedded engine does not support {what}", 501
        )
