"""Due marks: the waiting messages of a subscription, in order of the times of their next posts.

The parcel stays where fan-out put it; a mark under `D#<subscription>#<partition>`,
`<due>#<parcel key>#<place>` has the due time of one of its messages:

    a post fails:   put the mark (due 12:00:10) ── parcel: v = 12:00:10, r + 1 ── release: due
    12:00:10        read the marks up to now ── parcel: v = 12:00:10 still? post ── settle

A poster that stops after the first step leaves a mark without a matching `v`, which is ignored;
there is no step after which a waiting message has none. Marks are not deleted one by one, which
would be a write for each attempt: the delivery state has the time up to which they are done, no
new one is put before that, and TTL removes them.

Messages whose retries are used up, and that no queue took, are marked under `~<expiry>`: they are
not posted any more, but counted.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Iterator

import msgspec

from cirrusmq.base import ulid
from cirrusmq.base.errors import Unavailable
from cirrusmq.model.parcel import Parcel, message_id
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key
from cirrusmq.storage.parcels import page_request, ttl_seconds

KIND = "D"
_KEPT = "~"
_LAST_DUE = "}"
"""Sorts behind every time, and before the marks of kept messages."""
_PAGE = 32


class DueMark(msgspec.Struct, frozen=True, order=True):
    """A message that waits until `due_ms`."""

    due_ms: int
    sort_key: str
    """The sort key of its parcel."""
    index: int
    position: int = 0
    """Its number in its publish."""
    error: str = ""
    """Why its newest post failed."""

    @property
    def sent_ms(self) -> int:
        """The time in its parcel's key: when it was published."""
        return int(self.sort_key.partition("#")[0])

    @property
    def message_id(self) -> str:
        """The message's id, from the key of its parcel."""
        send_id = self.sort_key.rpartition("#")[2][: ulid.CHARACTERS]
        return message_id(send_id, self.position)


def marks_key(subscription_id: str, partition: int) -> str:
    """Returns the pk of a partition's marks."""
    return f"{KIND}#{subscription_id}#{partition}"


def put_mark(core: Core, parcel: Parcel, mark: DueMark, *, kept: bool = False) -> None:
    """Puts a mark for a message of a parcel. kept: it is not to be posted any more."""
    pk = marks_key(parcel.source_id, parcel.partition)
    sk = f"{_KEPT if kept else ''}{_text(mark)}"
    item = {
        **key(pk, sk),
        "n": {"N": str(mark.position)},
        "e": {"S": mark.error},
        "expires_at": {"N": str(ttl_seconds(parcel.expires_ms))},
    }
    core.store.write("PutItem", {"TableName": core.tables.messages, "Item": item})


def read_waiting(
    core: Core, subscription_id: str, partition: int, from_ms: int, now_ms: int
) -> Iterator[DueMark]:
    """Yields all marks from `from_ms` on, and marks of messages that are kept to their expiry."""
    pk = marks_key(subscription_id, partition)
    for start, end in ((f"{from_ms:013d}", _LAST_DUE), (f"{_KEPT}{now_ms:013d}", "~~")):
        request = page_request(core.tables.messages, pk, start, end, None, consistent=True)
        yield from map(_read, core.store.query_pages(request))


class MarkList:
    """One partition's marks as its subscription's poster sees them: no other worker puts any.

    from_ms: marks before it are done, by the delivery state. due_ms: the time of the first one, as
    the last holder left it, 0 without one.
    """

    def __init__(
        self, core: Core, subscription_id: str, partition: int, from_ms: int, due_ms: int
    ) -> None:
        self.from_ms = from_ms
        """No mark may be put before this time: the poster after a crash looks no further back."""
        self._core = core
        self._pk = marks_key(subscription_id, partition)
        self._heap: list[DueMark] = []
        self._seen: set[str] = set()
        """Marks that are known already when a page is read: they wait, or are dealt with."""
        self._waiting: set[str] = set()
        """Marks that are in the heap, or open."""
        self._open: dict[str, DueMark] = {}
        self._done_ms = from_ms
        self._unread_ms = due_ms
        """Until the first page is read: no stored mark is due earlier; 0 if there is none."""
        self._more = bool(due_ms)
        self._after: str | None = None
        self._hurried = False
        self._put_since: list[DueMark] = []
        """Marks of messages that failed since it is hurried: they wait."""

    @property
    def due_ms(self) -> int:
        """The first mark's time; 0 without one."""
        if self._more and self._after is None:
            marks = (*self._open.values(), *self._heap[:1], *self._put_since[:1])
            return min([self._unread_ms, *(mark.due_ms for mark in marks)])
        first = self.first()
        return 0 if first is None else first.due_ms

    @property
    def left_ms(self) -> int:
        """The time before which all marks are done, for the next poster."""
        return min(self._done_ms, self.due_ms or self._done_ms)

    def first(self) -> DueMark | None:
        """Returns the first mark that is not done, or None."""
        self._fill()
        marks = [*self._open.values(), *self._heap[:1], *self._put_since[:1]]
        return min(marks, default=None)

    def hurry(self) -> None:
        """Makes every message that waits now due at once."""
        self._hurried = True
        for mark in self._put_since:
            heapq.heappush(self._heap, mark)
        self._put_since = []

    def take(self, now_ms: int) -> DueMark | None:
        """Returns the next mark that is due, or None; it counts as waiting until `close`."""
        if self._after is not None or self._unread_ms <= now_ms or (self._hurried and self._more):
            self._fill()
        if self._hurried and self._heap:
            marks = self._heap
        else:
            marks = self._put_since if self._hurried else self._heap
            if not marks or marks[0].due_ms > now_ms:
                return None
        mark = heapq.heappop(marks)
        self._open[_text(mark)] = mark
        return mark

    def close(self, mark: DueMark) -> None:
        """Ends a mark that was taken; before its time, it must not be counted any more."""
        self._waiting.discard(_text(mark))
        self._open.pop(_text(mark), None)
        if self._hurried and mark.due_ms > self._core.now_ms():
            gone = {"TableName": self._core.tables.messages, "Key": key(self._pk, _text(mark))}
            with contextlib.suppress(Unavailable):
                self._core.store.write("DeleteItem", gone)
            return
        self._done_ms = max(self._done_ms, mark.due_ms)

    def add(self, mark: DueMark) -> None:
        """Adds the mark of a message that waits.

        It may have been read, and closed, before that was so:

            put the mark (due 10) ── parcel: throttled ──────── parcel: v = 10 ── add
            a page has the mark ──────────── 10: v = 5, close
        """
        self._seen.add(_text(mark))
        if _text(mark) not in self._waiting:
            self._waiting.add(_text(mark))
            heapq.heappush(self._put_since if self._hurried else self._heap, mark)

    def has_passed(self, mark: DueMark) -> bool:
        """Returns True if no page that is still to be read can have this mark."""
        if not self._more:
            return True
        return mark.due_ms < self._unread_ms if self._after is None else _text(mark) <= self._after

    def _fill(self) -> None:
        """Reads on until no stored mark before the heap's first one is unread."""
        while self._more and (
            not self._heap or self._after is None or _text(self._heap[0]) > self._after
        ):
            start = f"{self._unread_ms:013d}" if self._after is None else self._after
            request = page_request(
                self._core.tables.messages, self._pk, start, _LAST_DUE, _PAGE, consistent=True
            )
            if self._after is not None:
                request["ExclusiveStartKey"] = key(self._pk, self._after)
            items, last, _ = self._core.store.query(request)
            for mark in map(_read, items):
                if _text(mark) not in self._seen:
                    self._seen.add(_text(mark))
                    self._waiting.add(_text(mark))
                    heapq.heappush(self._heap, mark)
            self._more = last is not None
            self._after = "" if last is None else str(last["sk"]["S"])


def _text(mark: DueMark) -> str:
    return f"{mark.due_ms:013d}#{mark.sort_key}#{mark.index:X}"


def _read(item: Item) -> DueMark:
    due, _, rest = str(item["sk"]["S"]).removeprefix(_KEPT).partition("#")
    sort_key, _, place = rest.rpartition("#")
    return DueMark(int(due), sort_key, int(place, 16), int(item["n"]["N"]), str(item["e"]["S"]))
