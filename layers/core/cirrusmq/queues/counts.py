"""How many messages a source holds, for a bounded number of read units.

Messages that these units can read are counted exactly. For a longer source the meter's counter has
the number of messages, and reads at both ends of its partitions give their states:

    key        old ─────────────────────────────────────────────────────> new
    read       ■■■■ in flight ·· ■ ·· | ·· active ■ ·· | ·· ■ delayed ■■■
                                      ^ found by       ^ now
                                        bisecting

In an ordered or fair source keys follow groups, and the messages counted are a sample of the rest.
With priorities keys follow levels, the highest first, and the counter has the messages of each:

    level      16 ■■■■■ 9 ■■■■■■■■ 5 ■■■■···········  1 ················
               read, so exact       | not read: the meter's number of its messages
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import msgspec

from cirrusmq.model.parcel import Parcel
from cirrusmq.model.priority import priority_in
from cirrusmq.model.source import Source, rewindable, rewindable_until
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item
from cirrusmq.storage import counters
from cirrusmq.storage.bisection import ReadBudget, first_time, key_time
from cirrusmq.storage.parcels import ARCHIVE, PARCELS, partition_key
from cirrusmq.storage.queries import LAST_KEY, from_key

COUNT_UNITS = 35.0
"""Read units for parcels; the rest of 40 is left to the counter and the attributes."""
_ARCHIVE_UNITS = 10.0
_KEPT_BACK_UNITS = 19.0
"""For a read at the far end of a partition, and for bisecting one; not needed if the meter's count
shows that the rest can be read."""
_FIRST_PARCELS, _PAGE_PARCELS = 16, 64
_PAGE_UNITS = 2.0
"""Most units of the first parcels."""
_CONSISTENT_PARTITIONS = 10
"""With more of them the first reads, too, are eventually consistent, at half the cost."""


class Counts(msgspec.Struct):
    """Messages by state; `oldest_ms` is when the oldest active one was sent."""

    active: int = 0
    inactive: int = 0
    delayed: int = 0
    rewindable: int = 0
    oldest_ms: int | None = None
    by_priority: dict[int, int] | None = None
    """Active messages by their priorities; None: the source has none. If not all was read, the
    meter's count of a priority stands for the part that was not."""
    approximate: bool = False
    """True if not all was read: the figures are the messages read, and the meter's for the rest."""

    @property
    def kept(self) -> int:
        """Messages not yet deleted, in any state."""
        return self.active + self.inactive + self.delayed


def count(core: Core, source: Source) -> Counts:
    """Counts a source's messages now; counts that it cannot read are the meter's, a minute old.

    So the figures are exact or marked as approximate; none is below the number that was read:

        10:00:00   20,000 are sent
        10:00:20   the meter has counted 9,700 of them ──> about 9,700
        10:01:00   it has counted all ─────────────────> about 20,000
    """
    now_ms = core.now_ms()
    counts = Counts(by_priority=None if source.priorities is None else {})
    budget = ReadBudget(COUNT_UNITS)
    archived = not source.rewind_seconds or _count_archive(core, source, counts, now_ms, budget)
    looked = _Looked(core, source, counts, now_ms, budget)
    looked.read_from_start()
    if archived and not looked.unfinished:
        return counts
    counts.approximate = True
    if not archived:
        counts.rewindable = max(counts.rewindable, looked.kept.rewindable)
    # A former source still has messages that a rewind took from it: the meter counts them, too.
    if looked.unfinished and source.ends_ms is None:
        _add_the_rest(counts, looked)
    return counts


def total(counted: Sequence[Counts]) -> Counts:
    """Returns the counts of several sources together."""
    times = [each.oldest_ms for each in counted if each.oldest_ms is not None]
    return Counts(
        active=sum(each.active for each in counted),
        inactive=sum(each.inactive for each in counted),
        delayed=sum(each.delayed for each in counted),
        rewindable=sum(each.rewindable for each in counted),
        oldest_ms=min(times, default=None),
        approximate=any(each.approximate for each in counted),
    )


def _add_the_rest(counts: Counts, looked: _Looked) -> None:
    """Completes the counts of the partitions that were read; the others are like them."""
    kept = looked.kept.messages
    inactive_share, delayed_share = looked.estimate_unread()
    rest = max(0, round(kept * looked.share_looked_at) - counts.kept)
    inactive, delayed = round(rest * inactive_share), round(rest * delayed_share)
    counts.inactive += inactive
    counts.delayed += delayed
    counts.active += rest - inactive - delayed
    factor = max(1.0, kept / max(1, counts.kept))
    counts.inactive = round(counts.inactive * factor)
    counts.delayed = round(counts.delayed * factor)
    counts.active = max(round(counts.active * factor), kept - counts.inactive - counts.delayed)
    _add_the_rest_of_levels(counts, looked)


def _add_the_rest_of_levels(counts: Counts, looked: _Looked) -> None:
    """Parts the active messages that were not read among the levels that have such, so that the
    levels together are the active messages."""
    levels, kept = counts.by_priority, looked.kept_by_priority
    if levels is None or kept is None:
        return
    unread = {level: kept[level] - looked.read_by_priority[level] for level in kept}
    unread = {level: number for level, number in sorted(unread.items()) if number > 0}
    active, together = counts.active - sum(levels.values()), sum(unread.values())
    for level, number in unread.items():
        share = round(active * number / together)
        active, together = active - share, together - number
        if share:
            levels[level] = levels.get(level, 0) + share


class _Looked:
    """The parts of the partitions that were read."""

    def __init__(
        self, core: Core, source: Source, counts: Counts, now_ms: int, budget: ReadBudget
    ) -> None:
        self._core, self._source, self._counts = core, source, counts
        self._now_ms, self._budget = now_ms, budget
        self.unfinished: dict[str, str] = {}
        """Partition key -> the key behind which nothing was read, for partitions read in part."""
        self._last: dict[str, Parcel] = {}
        """Partition key -> the last parcel that was read."""
        self.read_by_priority: Counter[int] = Counter()
        """Messages that were read, in any state, by their priorities."""
        self._looked_at: set[str] = set()

    @cached_property
    def _counter(self) -> Item:
        key = counters.counter_key(self._source.id)
        return self._core.store.get(self._core.tables.usage, *key) or {}

    @cached_property
    def kept(self) -> counters.Kept:
        """The counts of the meter for this source."""
        return counters.kept_in(self._counter)

    @property
    def kept_by_priority(self) -> dict[int, int] | None:
        """The messages of each priority by the meter; None if it has not counted all of them."""
        return counters.levels_in(self._counter)

    @property
    def share_looked_at(self) -> float:
        """The part of the partitions of which anything was read, from 0 to 1."""
        return len(self._looked_at) / self._source.partitions

    def read_from_start(self) -> None:
        """Reads the partitions from their beginnings on, a page each in turn."""
        start = from_key(self._core, self._source, self._now_ms)
        partitions = list(range(self._source.partitions))
        self._core.random.shuffle(partitions)
        pks = [partition_key(PARCELS, self._source.id, number) for number in partitions]
        self.unfinished = dict.fromkeys(pks, start or "!")
        consistent = len(pks) <= _CONSISTENT_PARTITIONS
        for pk in pks:
            kept_back = _KEPT_BACK_UNITS if self._seen_and_unfinished() else 0.0
            if self._budget.pays(kept_back + _PAGE_UNITS):
                self._read(pk, _FIRST_PARCELS, consistent=consistent)
        for pk in itertools.cycle(pks):
            if not self.unfinished or not self._budget.pays(self._reserved_units() + _PAGE_UNITS):
                return
            if pk in self.unfinished:
                self._read(pk, _PAGE_PARCELS, within=self._budget.left - self._reserved_units())

    def _reserved_units(self) -> float:
        """Returns the units to keep back: none if the rest seems to need less than the units left.

        By the meter's count, and the units that a message has cost.
        """
        if self._budget.pays(_KEPT_BACK_UNITS + _PAGE_UNITS):
            return _KEPT_BACK_UNITS
        seen = max(1, self._counts.kept)
        needed = (self.kept.messages - seen) * (COUNT_UNITS - self._budget.left) / seen
        return 0.0 if needed <= self._budget.left else _KEPT_BACK_UNITS

    def estimate_unread(self) -> tuple[float, float]:
        """Returns the inactive and the delayed part of the messages not read, each from 0 to 1.

        One partition is a sample of all, since messages are put into them at random.
        """
        pk = self._seen_and_unfinished()
        far: list[Parcel] = []
        if pk and not self._source.grouped and self._budget.pays(_KEPT_BACK_UNITS - 1):
            far = self._read_from_end(pk)
        if not pk or not far:
            kept = max(1, self._counts.kept)
            return self._counts.inactive / kept, self._counts.delayed / kept
        low_ms, high_ms = key_time(self.unfinished[pk]), key_time(far[-1].sort_key)
        now_ms = min(max(self._now_ms, low_ms), high_ms)
        begun_ms = self._first_never_received(pk, low_ms, now_ms, far[-1])
        newest = Counts()
        for parcel in far:
            _add(newest, self._source, parcel, self._now_ms)
        inactive = newest.inactive + self._many_between(pk, low_ms, begun_ms)
        active = newest.active + self._many_between(pk, begun_ms, now_ms)
        delayed = newest.delayed + self._many_between(pk, now_ms, high_ms)
        together = max(1e-9, inactive + active + delayed)
        return inactive / together, delayed / together

    def _first_never_received(self, pk: str, low_ms: int, now_ms: int, last: Parcel) -> int:
        """Returns the key time behind which messages wait for their first delivery."""
        if _never_received(self._last[pk]) or low_ms == now_ms:
            return low_ms
        if not _never_received(last):
            return now_ms
        between = (f"{low_ms:013d}", f"{now_ms:013d}")
        place = first_time(self._core, pk, between, _never_received, self._budget)
        self._find_oldest(pk, place)
        return key_time(place)

    def _many_between(self, pk: str, low_ms: int, high_ms: int) -> float:
        """Returns about how many messages are between two times, by messages in the middle."""
        if low_ms >= high_ms:
            return 0.0
        middle = f"{(low_ms + high_ms) // 2:013d}"
        until = f"{high_ms:013d}{LAST_KEY}"
        page = self._budget.read(self._core, pk, middle, until, _FIRST_PARCELS, consistent=False)
        if not page.parcels:
            return 0.0
        span_ms = max(1, key_time(page.parcels[-1].sort_key) - key_time(page.parcels[0].sort_key))
        count = sum(parcel.count for parcel in page.parcels)
        return (high_ms - low_ms) * count / span_ms

    def _seen_and_unfinished(self) -> str | None:
        """Returns a partition that was read in part, or None."""
        return next((pk for pk in self._last if pk in self.unfinished), None)

    def _read_from_end(self, pk: str) -> list[Parcel]:
        """Returns the newest parcels of a partition, the newest first."""
        portion = self._budget.portion(2.0)
        low = self.unfinished[pk]
        page = portion.read(
            self._core, pk, low, LAST_KEY, _FIRST_PARCELS, consistent=False, backwards=True
        )
        return [parcel for parcel in page.parcels if parcel.sort_key > low]

    def _find_oldest(self, pk: str, place: str) -> None:
        """Notes the oldest active message behind the messages in flight."""
        if self._counts.oldest_ms is None and self._budget.pays(0.5):
            found = self._budget.read(self._core, pk, place, LAST_KEY, 1, consistent=False).parcels
            for parcel in found:
                if any(parcel.receivable(n, self._now_ms) for n in range(parcel.count)):
                    self._counts.oldest_ms = parcel.sent_ms

    def _read(
        self, pk: str, limit: int, *, consistent: bool = False, within: float = COUNT_UNITS
    ) -> None:
        page = self._budget.portion(within).read(
            self._core, pk, self.unfinished[pk], LAST_KEY, limit, consistent=consistent
        )
        self._looked_at.add(pk)
        for parcel in page.parcels:
            before = self._counts.kept
            _add(self._counts, self._source, parcel, self._now_ms)
            self.read_by_priority[priority_in(parcel.key_prefix)] += self._counts.kept - before
            self._last[pk] = parcel
        if page.more_after is None:
            del self.unfinished[pk]
        else:
            self.unfinished[pk] = page.more_after


def _add(counts: Counts, source: Source, parcel: Parcel, now_ms: int) -> None:
    if source.is_over(parcel, now_ms):
        return
    within = rewindable_until(source, parcel) > now_ms
    levels, level = counts.by_priority, priority_in(parcel.key_prefix)
    for index in range(parcel.count):
        if parcel.receivable(index, now_ms) or parcel.awaits_group(index):
            counts.active += 1
            if levels is not None:
                levels[level] = levels.get(level, 0) + 1
            counts.oldest_ms = min(counts.oldest_ms or parcel.sent_ms, parcel.sent_ms)
        elif parcel.delayed(index, now_ms):
            counts.delayed += 1
        elif parcel.live(index):
            counts.inactive += 1
        elif within and rewindable(source, parcel, index):
            counts.rewindable += 1


def _never_received(parcel: Parcel) -> bool:
    return not all(parcel.receives)


def _count_archive(
    core: Core, source: Source, counts: Counts, now_ms: int, budget: ReadBudget
) -> bool:
    """Adds messages that can be rewound. Returns True if all were counted."""
    portion = budget.portion(_ARCHIVE_UNITS)
    oldest_ms = max(0, now_ms - source.rewind_seconds * 1000)
    for partition in range(source.partitions):
        pk = partition_key(ARCHIVE, source.id, partition)
        after: str | None = f"{oldest_ms:013d}"
        while after is not None:
            if not portion.pays(0.5):
                return False
            page = portion.read(core, pk, after, LAST_KEY, None, consistent=False)
            after = page.more_after
            for parcel in page.parcels:
                within = rewindable_until(source, parcel) > now_ms
                if within and source.keeps(parcel):
                    indexes = range(parcel.count)
                    counts.rewindable += sum(rewindable(source, parcel, n) for n in indexes)
    return True
