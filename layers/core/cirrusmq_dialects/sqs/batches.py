"""Batches: each entry succeeds or is refused separately."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from cirrusmq_dialects.sqs.errors import SqsError
from cirrusmq_dialects.sqs.reading import Members

Result: TypeAlias = dict[str, Any]
T = TypeVar("T")


def read_each(
    listed: list[Members], read: Callable[[Members], T]
) -> tuple[dict[str, T], list[Result]]:
    """Returns the read entries by their ids, and the failures of refused entries."""
    found: dict[str, T] = {}
    failed: list[Result] = []
    for entry in listed:
        try:
            found[entry["Id"]] = read(entry)
        except SqsError as error:
            if error.whole:
                # In a batch a missing parameter is an invalid one.
                raise SqsError("InvalidParameterValue", error.message) from error
            failed.append(failure(entry["Id"], error))
    return found, failed


def failure(name: str, error: SqsError) -> Result:
    """An entry that is refused."""
    return {
        "Id": name,
        "SenderFault": error.is_senders,
        "Code": error.query_code,
        "Message": error.message,
    }


def batch(done: list[Result], failed: list[Result]) -> Result:
    """The answer of a batch."""
    found: Result = {"Successful": done} if done else {}
    return {**found, "Failed": failed} if failed else found
