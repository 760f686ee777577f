"""A pytest plugin: notes in the file `USED_PERMISSIONS` which permissions the functions use."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cirrusmq_local.bucket import S3Error
from cirrusmq_local.cloud import guard
from cirrusmq_local.cloud.invocation import running

_used: set[tuple[str, str, str]] = set()
_execute = guard.GuardedEngine.execute
_execute_on_bucket = guard.GuardedBucket.execute


def _noted(self: guard.GuardedEngine, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
    invocation = running.get()
    if invocation is not None:
        function = invocation.function
        needs = guard.needs(operation, request)
        _used.update((function.logical_id, f"{table}.Arn", action) for table, action, _ in needs)
    return _execute(self, operation, request)


def _noted_on_bucket(
    self: guard.GuardedBucket, operation: str, request: Mapping[str, Any]
) -> dict[str, Any]:
    invocation = running.get()
    if invocation is None:
        return _execute_on_bucket(self, operation, request)
    function, bucket = invocation.function.logical_id, self._declaration
    needs = guard.bucket_needs(bucket, operation)
    _used.update((function, target, action) for target, action, _ in needs)
    try:
        return _execute_on_bucket(self, operation, request)
    except S3Error as error:
        if error.code == "NoSuchKey":
            _used.add((function, f"{bucket.name}.Arn", guard.LIST_BUCKET))
        raise


def pytest_configure() -> None:
    guard.GuardedEngine.execute = _noted  # type: ignore[method-assign]
    guard.GuardedBucket.execute = _noted_on_bucket  # type: ignore[method-assign]


def pytest_sessionfinish() -> None:
    Path(os.environ["USED_PERMISSIONS"]).write_text(json.dumps(sorted(_used)))
