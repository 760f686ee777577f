"""Applies the policies of the template on one machine, too.

A function without a needed permission fails in every test that uses it, not first in an account.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cirrusmq_local.bucket import Bucket, S3Error
from cirrusmq_local.cloud import template as declared
from cirrusmq_local.cloud.invocation import running
from cirrusmq_local.engine import Engine, EngineError

PARTITION_KEY = "pk"


class GuardedEngine:
    """Does operations as the engine does, if the running function's policies allow them.

    Code outside of a function, such as the stack itself, may do anything.
    """

    def __init__(self, engine: Engine, denied: list[str] | None = None) -> None:
        """denied: gets a line for each operation that is not allowed; None keeps none."""
        self._engine = engine
        self._denied = denied

    def execute(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Does one operation. Raises AccessDeniedException, or an error after the timeout."""
        invocation = running.get()
        if invocation is not None:
            invocation.check_time()
            function = invocation.function
            for table, action, partition in needs(operation, request):
                if not function.may(action, f"{table}.Arn", partition=partition):
                    where = f"{table} {partition}".rstrip()
                    text = f"{function.name} is not allowed {action} on {where}: see template.yaml"
                    if self._denied is not None:
                        self._denied.append(text)
                    raise EngineError("AccessDeniedException", text)
        return self._engine.execute(operation, request)


class GuardedBucket:
    """Does operations as the bucket does, if the running function's policies allow them.

    A missing permission raises PermissionError, not an error of S3, which the service would handle:
    it is a fault of the template.
    """

    def __init__(self, bucket: Bucket, declaration: declared.Bucket) -> None:
        self._bucket = bucket
        self._declaration = declaration

    def execute(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Does one operation. Raises PermissionError, or an error after the timeout."""
        invocation = running.get()
        if invocation is None:
            return self._bucket.execute(operation, request)
        invocation.check_time()
        for target, action, through in bucket_needs(self._declaration, operation):
            self._require(invocation.function, action, target, through)
        try:
            return self._bucket.execute(operation, request)
        except S3Error as error:
            if error.code == "NoSuchKey":
                # Without the right to list, S3 answers 403 for a missing object.
                listed = f"{self._declaration.name}.Arn"
                self._require(invocation.function, LIST_BUCKET, listed)
            raise

    def _require(
        self, function: declared.Function, action: str, target: str, through: str = ""
    ) -> None:
        if not function.may(action, target, partition=through):
            text = f"{function.name} is not allowed {action} on {target}: see template.yaml"
            raise PermissionError(text)


LIST_BUCKET = "s3:ListBucket"
_S3 = f"s3.{declared.REGION}.amazonaws.com"
_OBJECT_ACTIONS = {
    "PutObject": ("s3:PutObject",),
    "GetObject": ("s3:GetObject",),
    "CopyObject": ("s3:GetObject", "s3:PutObject"),
}
_KEY_ACTIONS = {"s3:GetObject": "kms:Decrypt", "s3:PutObject": "kms:GenerateDataKey"}


def bucket_needs(bucket: declared.Bucket, operation: str) -> Iterator[tuple[str, str, str]]:
    """Yields each need of an operation: target, action, and the service that acts for us or "".

    S3 encrypts and decrypts with its caller's permissions.
    """
    for action in _OBJECT_ACTIONS.get(operation, ()):
        yield f"{bucket.name}.Arn/*", action, ""
        if bucket.key:
            yield bucket.key, _KEY_ACTIONS[action], _S3


def needs(operation: str, request: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yields table, action on it, and partition key (empty if the request has none).

    IAM has no permission for a transaction, only for its parts.
    """
    if "RequestItems" in request:
        for table, held in request["RequestItems"].items():
            for asked in held["Keys"]:
                yield table, f"dynamodb:{operation}", _partition({"Key": asked})
    elif "TransactItems" in request:
        for part in request["TransactItems"]:
            ((verb, held),) = part.items()
            yield held["TableName"], f"dynamodb:{verb}Item", _partition(held)
    elif "TableName" in request:
        yield request["TableName"], f"dynamodb:{operation}", _partition(request)


def _partition(request: Mapping[str, Any]) -> str:
    item = request.get("Key") or request.get("Item")
    if item is None:  # a query, which is about one partition
        values = request.get("ExpressionAttributeValues", {})
        asked = str(request.get("KeyConditionExpression", "")).split(" ")
        item = {PARTITION_KEY: values.get(asked[2])} if asked[:2] == [PARTITION_KEY, "="] else {}
    return str((item.get(PARTITION_KEY) or {}).get("S", ""))
