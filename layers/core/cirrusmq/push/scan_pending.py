"""Reading a subscription's undelivered messages: its partitions together, in order of keys.

A scan begins at the key before which, by the delivery state, all messages are clean: ended, or
found by their marks. It finds the key at which the next scan may begin. Messages of the last minute
are never clean, since parcels may still be put in front of one another there.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from cirrusmq.base.limits import ATTEMPT_AHEAD_MS, ATTEMPT_FRESH_MS
from cirrusmq.model.parcel import Parcel
from cirrusmq.push.pending import Push
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.queries import LAST_KEY, read_page
from cirrusmq.subscriptions.delivery.rules import SETTLED_MS, SKEW_MS, DeliveryState

_FEWEST_PER_PAGE = 16
_MAX_PER_PAGE = 1_024


class Look:
    """A scan of the parcels of a push's subscription, from a key on or behind the clean ones."""

    def __init__(
        self, push: Push, delivery: DeliveryState, start: str, partitions: tuple[int, ...]
    ):
        self._push = push
        self.began_ms = self._now_ms = push.core.now_ms()
        """Messages that are to be posted later than this are left out."""
        self._first_ms = push.source.query_from_ms(self._now_ms, push.core.clock.scale)
        self.until = f"{self._now_ms + ATTEMPT_AHEAD_MS + SKEW_MS:013d}{LAST_KEY}"
        """Behind the key of everything that could be there when it began."""
        self.full = not start
        """True if it finds which keys are clean."""
        self.reached = ""
        """In order: the key up to which everything was returned."""
        self.clean_ms = list(delivery.clean_ms or (0,) * len(push.all_partitions))
        self._settled: set[int] = set()
        self._start = start
        self._partitions = partitions or tuple(push.all_partitions)
        read = self._in_order() if push.in_order else self._merged()
        self._parcels = self._pending(read)

    def __iter__(self) -> Iterator[tuple[Parcel, list[int]]]:
        """Returns parcels with the indexes of messages that are to be attempted, by their keys."""
        return self._parcels

    def _pending(self, parcels: Iterator[Parcel]) -> Iterator[tuple[Parcel, list[int]]]:
        for parcel in parcels:
            now_ms = self._push.core.now_ms()
            indexes = [
                index
                for index in range(parcel.count)
                if is_pending(parcel, index, now_ms)
                and not is_delayed(parcel, index, self.began_ms)
                and (self._push.blocks or not parcel.receives[index])
            ]
            if indexes:
                self._clean(parcel.partition, int(parcel.sort_key.partition("#")[0]))
            if indexes or not self._push.blocks:
                yield parcel, indexes
        for partition in self._partitions:
            self._clean(partition, self._now_ms)

    def _clean(self, partition: int, before_ms: int) -> None:
        """Notes, once, that all messages of the partition before this time have ended."""
        if self.full and partition not in self._settled:
            self._settled.add(partition)
            settled_ms = min(before_ms, self._now_ms - SETTLED_MS)
            self.clean_ms[partition] = max(self.clean_ms[partition], settled_ms)

    def start_of(self, partition: int) -> str:
        """Returns the key at which the scan begins in a partition."""
        # A start key may come from a late write: clean keys do not bound it.
        if self._start:
            return max(self._start, f"{self._first_ms:013d}")
        return f"{max(self._first_ms, self.clean_ms[partition]):013d}"

    def _merged(self) -> Iterator[Parcel]:
        return heapq.merge(
            *(self._read(partition, self.start_of(partition)) for partition in self._partitions),
            key=lambda parcel: parcel.sort_key,
        )

    def _in_order(self) -> Iterator[Parcel]:
        """Yields the parcels so that none passes another that was put before it.

            fan-out                     puts 1 into partition A, then 2 into partition B
            scan    reads A: nothing                                reads B: 2
            again   reads A up to 2: 1

        A parcel before a key that the first reading saw was put before it, so the second reading
        sees it.
        """
        core, source_id = self._push.core, self._push.source.id
        after = {partition: self.start_of(partition) for partition in self._partitions}
        exclusive = False
        while True:
            pages = [
                read_page(
                    *(core, partition_key(PARCELS, source_id, partition), start, self.until),
                    _FEWEST_PER_PAGE,
                    from_exclusive=exclusive,
                )
                for partition, start in after.items()
            ]
            ends = [page.more_after for page in pages if page.more_after is not None]
            keys = [parcel.sort_key for page in pages for parcel in page.parcels]
            if not ends and not keys:
                return
            bound = min(ends) if ends else max(keys)
            found = [
                parcel
                for partition, start in after.items()
                if start <= bound
                for parcel in self._read(partition, start, bound, exclusive)
            ]
            self.reached = bound
            yield from sorted(found, key=lambda parcel: parcel.sort_key)
            if not ends:
                return
            after, exclusive = dict.fromkeys(after, bound), True

    def _read(
        self, partition: int, start: str, until: str = "", exclusive: bool = False
    ) -> Iterator[Parcel]:
        core, limit = self._push.core, _FEWEST_PER_PAGE
        pk = partition_key(PARCELS, self._push.source.id, partition)
        until = until or self.until
        if start > until:
            return  # only delayed messages follow
        while True:
            page = read_page(core, pk, start, until, limit, from_exclusive=exclusive)
            yield from page.parcels
            if page.more_after is None:
                return
            start, exclusive, limit = page.more_after, True, min(4 * limit, _MAX_PER_PAGE)


def next_delayed_ms(push: Push, after_ms: int) -> int | None:
    """Returns when the first message delayed beyond `after_ms` is to be posted, or None.

    Keys are in order of these times, but for the second by which an attempt may be older.
    """
    core = push.core
    start = f"{after_ms - int(ATTEMPT_FRESH_MS * core.clock.scale):013d}"

    def first(partition: int) -> int | None:
        pk, begin, exclusive = partition_key(PARCELS, push.source.id, partition), start, False
        while True:
            page = read_page(core, pk, begin, LAST_KEY, _FEWEST_PER_PAGE, from_exclusive=exclusive)
            dues = [
                parcel.visible_ms[index]
                for parcel in page.parcels
                for index in range(parcel.count)
                if parcel.live(index) and is_delayed(parcel, index, after_ms)
            ]
            if dues or page.more_after is None:
                return min(dues, default=None)
            begin, exclusive = page.more_after, True

    found = core.in_parallel(first, push.all_partitions)
    return min((due_ms for due_ms in found if due_ms is not None), default=None)


def is_delayed(parcel: Parcel, index: int, now_ms: int) -> bool:
    """Returns True if a message was published to be posted later than `now_ms`."""
    due_ms = parcel.visible_ms[index]
    return not parcel.receives[index] and due_ms > max(now_ms, parcel.sent_ms)


def is_pending(parcel: Parcel, index: int, now_ms: int) -> bool:
    """Returns True if a message is to be attempted, now or later."""
    return parcel.live(index) and parcel.visible_ms[index] < parcel.expires_ms > now_ms
