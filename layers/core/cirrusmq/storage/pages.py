"""Pages of listings: values of the directory, and a cursor if there are more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from cirrusmq.base.limits import ANSWER_BYTES
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import key as item_key
from cirrusmq.runtime.store import prefix_request
from cirrusmq.storage import cursors
from cirrusmq.storage.directory import SHOWN_BYTES, decode_document

T = TypeVar("T")


def read_page(
    core: Core,
    listing: Sequence[str],
    key: tuple[str, str],
    limit: int,
    cursor: str | None,
    kind: type[T],
    accept: Callable[[T], bool] = lambda value: True,
) -> tuple[list[T], str | None]:
    """Returns up to `limit` accepted values of a partition key and a prefix, and a cursor or None.

    listing: the only listing that the cursor is valid for; else raises InvalidParameter. One more
    value is read than wanted: only its presence shows that this is not the end. A page ends before
    `limit` if its values together would be too large for an answer.
    """
    pk, prefix = key
    request = prefix_request(core.tables.directory, pk, prefix) | {"Limit": limit + 1}
    after = cursors.read(core, cursor, *listing)
    if after is not None:
        request["ExclusiveStartKey"] = item_key(pk, after)
    values: list[T] = []
    behind, size = "", 0
    for item in core.store.query_pages(request):
        value = decode_document(item, kind).value
        if not accept(value):
            continue
        size += len(item["document"]["S"].encode()) + SHOWN_BYTES
        if len(values) == limit or size > ANSWER_BYTES:
            return values, cursors.make(core, behind, *listing) if behind else None
        values.append(value)
        behind = str(item["sk"]["S"])
    return values, None
