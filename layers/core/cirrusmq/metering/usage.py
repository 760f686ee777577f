"""One change of a parcel as usage and as a step of the counters: pure, and right in any order.

Counting is signed. A move between parcels is a departure and an arrival in the stream; the arrival
names its source and takes back the count of the departure alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from cirrusmq.lifecycle.moves import REWOUND, VANISHED
from cirrusmq.model.parcel import CANCELLED, DELETED, DROPPED, Parcel

Kind: TypeAlias = Literal[
    "sent",
    "received",
    "deleted",
    "expired",
    "dead_lettered",
    "published",
    "delivered",
    "dropped",
    "rewound",
]


class Event(NamedTuple):
    """One billed event: a number of messages (signed) and of bytes, at a source."""

    source_id: str
    kind: Kind
    messages: int
    bytes: int
    attempts: int = 0
    """Posts, of a pushed subscription's deliveries."""


class UsageKey(NamedTuple):
    """The source, kind and minute (since the epoch) that usage is added up for."""

    source_id: str
    kind: Kind
    minute: int


class Usage(NamedTuple):
    """Numbers of messages, their bytes, and posts."""

    messages: int = 0
    bytes: int = 0
    attempts: int = 0

    def plus(self, event: Event) -> Usage:
        """Returns the usage with one event more."""
        return Usage(
            self.messages + event.messages,
            self.bytes + event.bytes,
            self.attempts + event.attempts,
        )


class ParcelChange(msgspec.Struct, frozen=True):
    """A parcel before and after a write; None if it did not exist."""

    before: Parcel | None
    after: Parcel | None
    by_ttl: bool


def push_events(change: ParcelChange) -> Iterator[Event]:
    """Yields the usage of a change of a pushed subscription's parcel: deliveries and attempts.

    A dead letter that came back is no arrival, but it was no delete in its queue either.
    """
    before, after = change.before, change.after
    if before is None or after is None:
        if after is not None:
            yield from _taken_back(after)
        if before is not None and change.by_ttl:
            for index in range(before.count):
                if before.live(index):
                    yield Event(before.source_id, "dropped", 1, before.sizes[index])
        return
    for index in range(min(before.count, after.count)):
        size, attempts = after.sizes[index], after.receives[index] - before.receives[index]
        if attempts > 0:
            yield Event(after.source_id, "delivered", 0, 0, attempts)
        if before.live(index) and after.visible_ms[index] == DELETED:
            yield Event(after.source_id, "delivered", 1, size)
        elif before.live(index) and after.visible_ms[index] == DROPPED:
            yield Event(after.source_id, "dropped", 1, size)


def events(change: ParcelChange, arrival: Kind) -> Iterator[Event]:
    """Yields the usage of a change; `arrival` is the kind of a new message in this source."""
    before, after = change.before, change.after
    if before and after and before.sent_ms != after.sent_ms:
        # Purged, and written over by the same send that was repeated.
        yield from events(msgspec.structs.replace(change, after=None), arrival)
        yield from _arrivals(after, arrival)
    elif before is None and after is not None:
        yield from _arrivals(after, arrival)
    elif before is not None and after is None:
        kind: Kind = "expired" if change.by_ttl else "deleted"
        for index in range(before.count):
            if before.live(index):
                yield Event(before.source_id, kind, 1, before.sizes[index])
    elif before is not None and after is not None:
        yield from _modifications(before, after)


def kept(change: ParcelChange) -> tuple[int, int]:
    """Returns how the messages kept, and their bytes, change."""
    (count, size), (count_before, size_before) = _live(change.after), _live(change.before)
    return count - count_before, size - size_before


def rewindable(change: ParcelChange) -> int:
    """Returns how a parcel's number of deleted messages that can be rewound changes.

    They are in the archive, or still in their parcel because other messages of it are not deleted.
    This does not check that the queue rewinds; a reader of the sum does.
    """
    return _deleted(change.after) - _deleted(change.before)


def first_waits(change: ParcelChange) -> Iterator[int]:
    """Yields milliseconds from when a message could be received to its first receive or post.

        sent 10.0 s ── delayed to 15.0 s ── received 15.4 s     waited 0.4 s
        published 10.0 s ── posted 10.1 s, answered 10.3 s      waited 0.3 s: until that is stored

    A message that comes again, or that is deleted without a receive, has no first wait.
    """
    before, after = change.before, change.after
    if before is None or after is None or before.sent_ms != after.sent_ms:
        return
    for index in range(min(before.count, after.count)):
        if before.receives[index] == 0 < after.receives[index]:
            could_ms = max(after.sent_ms, before.visible_ms[index])
            yield max(0, after.first_received_ms[index] - could_ms)


def _taken_back(parcel: Parcel) -> Iterator[Event]:
    """Yields events that take back the deletes counted for the parcel that messages came from."""
    origin = parcel.moved_from or ""
    for index in range(parcel.count) if origin.endswith(VANISHED) else ():
        if parcel.live(index):
            yield Event(origin.removesuffix(VANISHED), "deleted", -1, -parcel.sizes[index])


def _arrivals(parcel: Parcel, arrival: Kind) -> Iterator[Event]:
    yield from _taken_back(parcel)
    origin = parcel.moved_from
    source_id = origin.removesuffix(VANISHED) if origin else None
    for index in range(parcel.count):
        if not parcel.live(index):
            continue
        size = parcel.sizes[index]
        if origin is None:
            yield Event(parcel.source_id, arrival, 1, size)
            continue
        if origin == REWOUND:
            yield Event(parcel.source_id, "rewound", 1, size)
            continue
        assert source_id is not None
        if parcel.dead_letter is not None and source_id != parcel.source_id:
            yield Event(source_id, "dead_lettered", 1, size)
        elif source_id != parcel.source_id:
            yield Event(parcel.source_id, arrival, 1, size)


def _modifications(before: Parcel, after: Parcel) -> Iterator[Event]:
    for index in range(min(before.count, after.count)):
        size = after.sizes[index]
        was, now = before.visible_ms[index], after.visible_ms[index]
        received = after.receives[index] - before.receives[index]
        # Fewer in a live message: a claim was undone. (A rewind counts from 0 again.)
        if received > 0 or (received < 0 and was > DELETED):
            yield Event(after.source_id, "received", received, size * received)
        if was > DELETED and now in (DELETED, CANCELLED):
            yield Event(after.source_id, "deleted", 1, size)
        elif was > DELETED and now == DROPPED:
            yield Event(after.source_id, "dropped", 1, size)
        elif was == DELETED and now > DELETED:
            yield Event(after.source_id, "rewound", 1, size)


def _live(parcel: Parcel | None) -> tuple[int, int]:
    if parcel is None:
        return 0, 0
    sizes = [parcel.sizes[index] for index in range(parcel.count) if parcel.live(index)]
    return len(sizes), sum(sizes)


def _deleted(parcel: Parcel | None) -> int:
    return 0 if parcel is None else parcel.visible_ms.count(DELETED)
