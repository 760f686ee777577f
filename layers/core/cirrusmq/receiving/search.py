"""Looking for something to take in a partition of an unordered source, past what is in flight."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cirrusmq.lifecycle.dead_letter_policy import reason_to_give_up
from cirrusmq.model import head_mark
from cirrusmq.model.head_mark import Approach, Stretch
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving import head_marks
from cirrusmq.receiving.cleanup import is_chore
from cirrusmq.runtime.core import Core
from cirrusmq.storage.scan import from_key, read_page, until_key

_FEWEST_PER_PAGE = 10
_MOST_PER_PAGE = 2_000


def receivable_places(source: Source, parcel: Parcel, now_ms: int) -> list[int]:
    """The places of a parcel's messages that are active now."""
    if parcel.sent_ms <= source.purged_ms:
        return []
    return [place for place in range(parcel.count) if parcel.receivable(place, now_ms)]


def takeable_places(
    source: Source, parcel: Parcel, now_ms: int, gives_up: Callable[[], bool]
) -> list[int]:
    """Those that a receiver can have: not what is to be given up, where that has a place to go."""
    places = receivable_places(source, parcel, now_ms)
    doomed = [place for place in places if reason_to_give_up(source, parcel, place, now_ms)]
    return [place for place in places if place not in doomed] if doomed and gives_up() else places


def pages_with_something(
    core: Core, source: Source, pk: str, most: int, gives_up: Callable[[], bool]
) -> Iterator[list[Parcel]]:
    """Pages of parcels, from the first that holds something to take on.

    What lies before it is in flight, or is to be tidied up, which is remembered. Pages grow, so
    that a long stretch in flight takes few calls.
    """
    now_ms = core.now_ms()
    approach = head_marks.begin(core, pk) if core.hints.crowded(pk, now_ms) else Approach()
    behind = _start(core, pk, approach, now_ms)
    start, exclusive = max(from_key(core, source, now_ms), behind), bool(behind)
    until, limit = until_key(source, now_ms), max(_FEWEST_PER_PAGE, most)
    stretch: Stretch | None = Stretch(now_ms)
    # Other clocks may be ahead: no query may begin behind its own end.
    while start < until:
        page = read_page(core, pk, start, until, limit, from_exclusive=exclusive, consistent=False)
        hopeful = [
            parcel for parcel in page.parcels if takeable_places(source, parcel, now_ms, gives_up)
        ]
        core.hints.remember_chores(pk, _chores(core, source, page.parcels, now_ms, gives_up))
        start, exclusive = page.more_after or "", True
        if stretch is not None:
            stretch.add(page.parcels, hopeful, page.units)
            if hopeful or not start:
                _tell(core, pk, approach, stretch)
                stretch = None
            elif stretch.units > head_mark.FREE_UNITS:
                core.hints.crowd(pk, now_ms)
                approach = head_marks.meet(core, pk, approach)
                further = _start(core, pk, approach, now_ms)
                if further > start:
                    start = further
                    stretch = Stretch(now_ms)
        if hopeful:
            yield hopeful
        if not start:
            break
        limit = min(4 * limit, _MOST_PER_PAGE)


def _start(core: Core, pk: str, approach: Approach, now_ms: int) -> str:
    """The key to begin behind, with what this environment has just seen itself."""
    if approach.role != "none" or approach.place not in ("before", "young"):
        return approach.start
    return core.hints.seen(pk, approach.start, now_ms)


def _tell(core: Core, pk: str, approach: Approach, stretch: Stretch) -> None:
    head_marks.tell(core, pk, approach, stretch)
    if approach.place in ("before", "young") and stretch.end:
        core.hints.see(pk, approach.start, stretch.end, stretch.begun_ms, head_mark.YOUNG_MS)


def _chores(
    core: Core, source: Source, parcels: list[Parcel], now_ms: int, gives_up: Callable[[], bool]
) -> list[Parcel]:
    return [
        parcel
        for parcel in parcels
        if now_ms < parcel.expires_ms
        and parcel.sent_ms > source.purged_ms
        and is_chore(core, source, parcel, now_ms, gives_up)
    ]
