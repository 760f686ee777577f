"""Listings whose first entry is the newest: a range of sort keys that begin with times, backwards.

No index is needed, and nothing is written for them. A page that leaves entries out, by a filter or
by its caller's rights, reads a bounded number of them and then has a cursor, even if it is empty:

    asked for 100 that failed    reads 1,000 of 100,000 ── finds 3 ── 3 and a cursor
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from cirrusmq.base.limits import ANSWER_BYTES, LOOKED_AT_ENTRIES, PAGE_ENTRIES_DEFAULT
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import key
from cirrusmq.storage import cursors
from cirrusmq.storage.directory import SHOWN_BYTES, decode_document

T = TypeVar("T")


class Span(NamedTuple):
    """Sort keys of a partition of the Directory, from `first` to `last`."""

    pk: str
    first: str
    last: str


def read_newest(
    core: Core,
    listing: Sequence[str],
    span: Span,
    limit: int,
    cursor: str | None,
    kind: type[T],
    accept: Callable[[T], bool],
) -> tuple[list[T], str | None]:
    """Returns up to `limit` accepted values, the last first, and a cursor if there may be more.

    listing: the only listing that the cursor is valid for; else raises InvalidParameter.
    """
    request: dict[str, Any] = {
        "TableName": core.tables.directory,
        "KeyConditionExpression": "pk = :pk AND sk BETWEEN :first AND :last",
        "ExpressionAttributeValues": {
            ":pk": {"S": span.pk},
            ":first": {"S": span.first},
            ":last": {"S": span.last},
        },
        "ConsistentRead": True,
        "ScanIndexForward": False,
        "Limit": limit + 1,  # one more than wanted says whether this is the end
    }
    after = cursors.read(core, cursor, *listing)
    if after is not None:
        request["ExclusiveStartKey"] = key(span.pk, after)
    values: list[T] = []
    looked_at, size, behind = 0, 0, ""
    while True:
        items, last, _ = core.store.query(request)
        for item in items:
            value = decode_document(item, kind).value
            accepted = accept(value)
            size += len(item["document"]["S"].encode()) + SHOWN_BYTES
            full = accepted and len(values) == limit
            if full or looked_at >= max(limit, LOOKED_AT_ENTRIES) or size > ANSWER_BYTES:
                return values, cursors.make(core, behind, *listing)
            if accepted:
                values.append(value)
            looked_at += 1
            behind = str(item["sk"]["S"])
        if last is None:
            return values, None
        # Many are left out: a few at a time would be many calls.
        request |= {"ExclusiveStartKey": last, "Limit": max(limit, PAGE_ENTRIES_DEFAULT) + 1}
