"""Reading a whole partition of a source, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from cirrusmq.base import limits
from cirrusmq.model.parcel import Parcel, key_prefix
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import key
from cirrusmq.storage.parcels import ParcelPage, page_request, read_parcel

FIRST_KEY = "!"
"""Sorts before every sort key of a parcel."""
LAST_KEY = "~"
"""Sorts behind every sort key of a parcel."""
_PORTION = 20


def read_page(
    core: Core,
    pk: str,
    after: str,
    until: str,
    limit: int | None,
    *,
    from_exclusive: bool = False,
    consistent: bool = True,
    backwards: bool = False,
) -> ParcelPage:
    """Returns one page of parcels with keys from `after` (or behind it) to `until`; backwards, from
    `until` (or before it)."""
    request = page_request(core.tables.messages, pk, after, until, limit, consistent=consistent)
    if backwards:
        request["ScanIndexForward"] = False
    if from_exclusive:
        request["ExclusiveStartKey"] = key(pk, until if backwards else after)
    items, last, units = core.store.query(request)
    more_after = None if last is None else last["sk"]["S"]
    return ParcelPage([read_parcel(item) for item in items], more_after, units)


def read_back(core: Core, pk: str, until: str, limit: int) -> list[Parcel]:
    """Returns up to `limit` parcels with keys up to `until`, the last one first."""
    return read_page(core, pk, "0", until, limit, backwards=True).parcels


def until_key(source: Source, now_ms: int, prefix: str = "") -> str:
    """Returns a key behind all receivable parcels, or behind all of a fair source's group.

    A send's key has the time of its attempt, which a client's clock may put ahead. In a rewound
    group this key may be before all others.
    """
    if source.grouped and not prefix:
        return LAST_KEY
    until = f"{prefix}{now_ms + limits.ATTEMPT_AHEAD_MS:013d}{LAST_KEY}"
    # A frontier is a key of the log: within a group each parcel is asked whether it is withheld.
    return until if source.frontier is None or prefix else min(until, source.frontier)


def from_key(core: Core, source: Source, now_ms: int, prefix: str = "") -> str:
    """Returns a key before all receivable parcels, or before all of a fair source's group."""
    if source.grouped and not prefix:
        return ""
    return f"{prefix}{source.query_from_ms(now_ms, core.clock.scale):013d}"


def scan_pages(
    core: Core,
    pk: str,
    start: str = "",
    until: str = LAST_KEY,
    *,
    behind: str = "",
    limit: int | None = None,
) -> Iterator[ParcelPage]:
    """Yields all pages of a partition with keys from `start` to `until`, strongly consistent.

    behind: a key that an earlier scan had reached. limit: most parcels of a page.
    """
    after, exclusive = (behind, True) if behind else (start or FIRST_KEY, False)
    while True:
        page = read_page(core, pk, after, until, limit, from_exclusive=exclusive)
        yield page
        if page.more_after is None:
            return
        after, exclusive = page.more_after, True


def behind_group(page: ParcelPage) -> str | None:
    """Returns the key to continue behind for the groups after the last one of a page, or None."""
    return None if page.more_after is None else f"{key_prefix(page.more_after)}{LAST_KEY}"


def portions(
    pages: Iterable[ParcelPage], key_of: Callable[[Parcel], str]
) -> Iterator[tuple[list[Parcel], str]]:
    """Yields the parcels of pages a few at a time, each few with the key to continue behind.

    To process a page parcel by parcel takes minutes: longer than an operation stays unsaved, and
    longer than its run may exceed its time.
    """
    for page in pages:
        for first in range(0, max(1, len(page.parcels)), _PORTION):
            some = page.parcels[first : first + _PORTION]
            if first + _PORTION < len(page.parcels):
                yield some, key_of(some[-1])
            else:
                yield some, page.more_after or LAST_KEY


class Progress(msgspec.Struct, frozen=True):
    """The position of a run through partitions: in `pk`, behind the sort key `after`."""

    pk: str = ""
    after: str = ""


def remaining(partitions: Iterable[str], progress: Progress) -> Iterator[tuple[str, str]]:
    """Yields each partition key from `progress` on, with the sort key to continue behind.

    A finished partition is skipped: no query may begin behind its own end.
    """
    for pk in sorted(partitions):
        after = progress.after if pk == progress.pk else ""
        if pk >= progress.pk and after != LAST_KEY:
            yield pk, after
