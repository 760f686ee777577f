"""Pages of listings: values of the directory, and a cursor if there are more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from cirrusmq.runtime.core import Core
from cirrusmq.storage import cursors, directory

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

    listing: the only listing that the cursor is valid for; else raises InvalidParameter.
    """
    pk, prefix = key
    after = cursors.read(core, cursor, *listing)
    values, last = directory.read_page(core, pk, prefix, after, limit, kind, accept)
    return values, cursors.make(core, last, *listing) if last else None
