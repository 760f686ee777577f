"""Looking for messages to claim in a partition of an unordered source, past those in flight."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cirrusmq.lifecycle.dead_letter_policy import dead_letter_reason, gives_up_any
from cirrusmq.model import head_mark
from cirrusmq.model.head_mark import Approach, Stretch
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving import head_marks
from cirrusmq.receiving.cleanup import is_chore
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import Page
from cirrusmq.storage.scan import from_key, read_page, until_key

_FEWEST_PER_PAGE = 10
_FEW_AT_CLEAR_HEAD = 4
"""For a receive of one message, where the last look found one in the first parcel: half a unit."""
_MOST_PER_PAGE = 2_000


def receivable_places(source: Source, parcel: Parcel, now_ms: int) -> list[int]:
    """The places of a parcel's messages that are active now."""
    if not source.keeps(parcel) or source.withholds(parcel):
        return []
    return parcel.receivable_places(now_ms)


def takeable_places(
    source: Source, parcel: Parcel, now_ms: int, gives_up: Callable[[], bool]
) -> list[int]:
    """Those that a receiver can claim: not messages to dead-letter, if a queue takes those."""
    places = receivable_places(source, parcel, now_ms)
    if not gives_up_any(source):
        return places
    doomed = [place for place in places if dead_letter_reason(source, parcel, place, now_ms)]
    return [place for place in places if place not in doomed] if doomed and gives_up() else places


def pages_with_something(
    core: Core, source: Source, pk: str, most: int, gives_up: Callable[[], bool]
) -> Iterator[list[Parcel]]:
    """Pages of parcels, from the first one on that has a message to claim.

    Parcels before it are in flight, or are to be tidied up, which is remembered. Pages grow, so
    that a long stretch in flight takes few calls. The first one is small where one message is
    wanted and the last look had nothing to pass: each parcel read takes CPU time, taken or not.
    """
    now_ms = core.now_ms()
    skip = _Skip(core, pk, now_ms)
    behind = skip.start
    start, exclusive = max(from_key(core, source, now_ms), behind), bool(behind)
    until, limit = until_key(source, now_ms), max(_FEWEST_PER_PAGE, most)
    if most == 1 and core.hints.clear(pk, now_ms):
        limit = _FEW_AT_CLEAR_HEAD
    first = True
    # Other clocks may be ahead: no query may begin behind its own end.
    while start < until:
        page = read_page(core, pk, start, until, limit, from_exclusive=exclusive, consistent=False)
        hopeful = [
            parcel for parcel in page.parcels if takeable_places(source, parcel, now_ms, gives_up)
        ]
        core.hints.remember_chores(pk, _chores(core, source, page.parcels, now_ms, gives_up))
        if first and page.parcels:
            # What is taken of several now will be before what is looked for next.
            clear = most == 1 and not behind and hopeful[:1] == page.parcels[:1]
            core.hints.note_first(pk, clear=clear)
        start, exclusive, first = skip.pass_page(page, hopeful), True, False
        if hopeful:
            yield hopeful
        if not start:
            break
        limit = min(4 * limit, _MOST_PER_PAGE)


class _Skip:
    """The parts of a head that one look need not read, by its mark and by the hints."""

    def __init__(self, core: Core, pk: str, now_ms: int) -> None:
        self._core, self._pk, self._now_ms = core, pk, now_ms
        crowded = core.hints.crowded(pk, now_ms)
        self._approach = head_marks.begin(core, pk) if crowded else Approach()
        self._stretch: Stretch | None = Stretch(now_ms)
        """Nothing to take so far; None when something was found, or the end was reached."""

    @property
    def start(self) -> str:
        """The key to begin behind, with regard to this environment's own last look."""
        approach = self._approach
        if approach.role != "none" or approach.place not in ("before", "young"):
            return approach.start
        return self._core.hints.seen(self._pk, approach.start, self._now_ms)

    def pass_page(self, page: Page, hopeful: list[Parcel]) -> str:
        """The key to continue behind after a page; empty at the end."""
        behind, stretch = page.more_after or "", self._stretch
        if stretch is None:
            return behind
        stretch.add(page.parcels, hopeful, page.units)
        if hopeful or not behind:
            self._tell(stretch)
            self._stretch = None
        elif stretch.units > head_mark.FREE_UNITS:
            self._core.hints.crowd(self._pk, self._now_ms)
            self._approach = head_marks.meet(self._core, self._pk, self._approach)
            if (further := self.start) > behind:
                self._stretch = Stretch(self._now_ms)
                return further
        return behind

    def _tell(self, stretch: Stretch) -> None:
        core, pk, approach = self._core, self._pk, self._approach
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
        and source.keeps(parcel)
        and is_chore(core, source, parcel, now_ms, gives_up)
    ]
