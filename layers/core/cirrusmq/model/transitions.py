"""The life of a message in its parcel: all that can happen to it, as pure functions.

    deleted       ──(reopened)──> free
    free          ──(cancelled)──> cancelled
    free          ──(delivered)──> deleted
    free          ──(kept, admitted, failed)──> free
    free or held  ──(dropped)──> dropped
    free or held  ──(preceded)──> free or held
    free or held  ──(moved)──> gone or moved
    free or held  ──(claimed)──> held
    held          ──(deleted)──> deleted
    held          ──(unread, given_back)──> free
    held          ──(unclaimed)──> free or held
    held          ──(held)──> held

A message that nobody holds is free: it has no receipt. Delayed messages and messages that wait for
their retry are free too, with a `visible_ms` ahead: time alone makes them visible, and ends leases.

    gone, moved   dead-lettered or redriven, in a parcel of another queue; re-keyed, by `under_key`
    dropped       its retries are used up, and nothing takes dead letters
    delivered     its URL took it; `failed`: it is posted again; `kept`: at its expiry, so never
    reopened      rewound. In an ordered queue it waits at its expiry until a receiver finds its
                  group free (`admitted`), for which the former first message changes (`preceded`)

By expiry or a purge a parcel ends whole, and an empty one is removed (`lifecycle.tombstones`).

Every transition writes `visible_ms`, which is why conditions compare it. `storage.changes` makes
the write of a transition's result; `changed` is the parcel after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from cirrusmq.model.message import pack, unpack
from cirrusmq.model.parcel import (
    CANCELLED,
    DELETED,
    DROPPED,
    Parcel,
    others_of,
    sort_key,
    where_differing,
)
from cirrusmq.model.receipt import lease_nonce
from cirrusmq.model.source import Source

T = TypeVar("T")


class MessageChange(msgspec.Struct, frozen=True, kw_only=True):
    """The new values of one message; None means that a value does not change."""

    visible_ms: int
    nonce: bytes | None = None
    receives: int | None = None
    first_received_ms: int | None = None
    wait_ms: int | None = None
    untried: int | None = None
    """Added to its receives that tried nothing."""
    history: bytes | None = None
    """For a message that was posted to a URL: its latest posts, packed."""


Changes = Mapping[int, MessageChange]
"""By the messages' indexes in their parcel."""


def claimed(
    source: Source,
    parcel: Parcel,
    index: int,
    timeout_seconds: int | None,
    drawn: bytes,
    draw: Callable[[], float],
    now_ms: int,
) -> MessageChange:
    """A receiver gets the message and a lease.

    timeout_seconds: None means the message's own timeout, or the source's. The wait for its next
    retry, which follows the lease, is drawn now; `drawn` becomes the nonce.
    """
    own = parcel.visibility_seconds[index] if parcel.visibility_seconds else 0
    timeout = timeout_seconds or own or source.visibility_timeout_seconds
    until_ms = min(now_ms + timeout * 1000, parcel.expires_ms)
    waits = bool(parcel.waits_ms) or source.retry is not None
    return MessageChange(
        visible_ms=until_ms,
        nonce=lease_nonce(drawn, until_ms),
        receives=parcel.receives[index] + 1,
        first_received_ms=None if parcel.first_received_ms[index] else now_ms,
        wait_ms=_wait_ms(source, parcel, until_ms, index, draw) if waits else None,
    )


def _wait_ms(
    source: Source, parcel: Parcel, until_ms: int, index: int, draw: Callable[[], float]
) -> int:
    if source.retry is None:
        return 0
    wait_ms = source.retry.wait_ms(parcel.tries(index) + 1, draw)
    if wait_ms is None and source.keeps_used_up:
        return parcel.expires_ms - until_ms
    return wait_ms or 0


def unclaimed(before: Parcel, after: Parcel, index: int) -> MessageChange:
    """The claim that made `after` of `before` is undone; no other receiver ever sees it."""
    return MessageChange(
        visible_ms=before.visible_ms[index],
        nonce=before.nonces[index],
        receives=before.receives[index],
        first_received_ms=before.first_received_ms[index],
        wait_ms=before.wait_ms(index) if after.waits_ms else None,
    )


def unread(before: Parcel, after: Parcel, index: int) -> MessageChange:
    """Does what `unclaimed` does, but hides the message until the lease would have ended."""
    return MessageChange(
        visible_ms=after.visible_ms[index],
        nonce=b"",
        receives=before.receives[index],
        first_received_ms=before.first_received_ms[index],
        wait_ms=0 if after.waits_ms else None,
    )


def held(seconds: int, expires_ms: int, now_ms: int) -> MessageChange:
    """The holder makes the lease end `seconds` from now."""
    return MessageChange(visible_ms=min(now_ms + seconds * 1000, expires_ms))


def given_back(wait_ms: int, expires_ms: int, now_ms: int, *, tried: bool = True) -> MessageChange:
    """The holder ends the lease; the message is visible after `wait_ms`, without another wait.

    tried: False if the receive does not count.
    """
    visible_ms, untried = min(now_ms + wait_ms, expires_ms), None if tried else 1
    return MessageChange(visible_ms=visible_ms, nonce=b"", wait_ms=0, untried=untried)


def untried(parcel: Parcel, indexes: Sequence[int]) -> Parcel:
    """Returns the parcel, still held, with receives of the messages at `indexes` not counted."""
    return changed(
        parcel,
        {index: MessageChange(visible_ms=parcel.visible_ms[index], untried=1) for index in indexes},
    )


def deleted(now_ms: int) -> MessageChange:
    """The holder is done with it; a rewind finds the time in the place of its first receive."""
    return MessageChange(visible_ms=DELETED, first_received_ms=now_ms)


def moved(mark: int, noted_ms: int | None = None) -> MessageChange:
    """It leaves for a separate parcel; `mark` is `GONE` for another queue, or `MOVED`.

    noted_ms: the time, in the place of its first receive, if a new receiver needs it; else None.
    """
    return MessageChange(visible_ms=mark, first_received_ms=noted_ms)


def dropped() -> MessageChange:
    """Its retries are used up, and no dead-letter queue takes it."""
    return MessageChange(visible_ms=DROPPED)


def cancelled(now_ms: int) -> MessageChange:
    """Its sender takes it back; the time is in the place of its first receive."""
    return MessageChange(visible_ms=CANCELLED, first_received_ms=now_ms)


def reopened(parcel: Parcel, index: int, now_ms: int, *, waits: bool) -> MessageChange:
    """A rewind brings a deleted message back, never received. waits: until its group is free."""
    return MessageChange(
        visible_ms=parcel.expires_ms if waits else now_ms,
        nonce=b"",
        receives=0,
        first_received_ms=now_ms if waits else 0,
        wait_ms=0 if parcel.waits_ms else None,
        untried=-parcel.untried[index] if index in parcel.untried else None,
    )


def admitted(parcel: Parcel, index: int, now_ms: int) -> MessageChange:
    """The group of a rewound message is free; another receiver may have found that before."""
    waits = parcel.awaits_group(index)
    return MessageChange(visible_ms=now_ms, first_received_ms=0 if waits else None)


def preceded(parcel: Parcel, index: int) -> MessageChange:
    """Another message is its group's first now: one that read this before cannot claim it."""
    return MessageChange(visible_ms=parcel.visible_ms[index] + 1)


def delivered(parcel: Parcel, index: int, history: bytes, now_ms: int) -> MessageChange:
    """Its URL took it."""
    return _posted(parcel, index, DELETED, history, now_ms)


def failed(parcel: Parcel, index: int, due_ms: int, history: bytes, now_ms: int) -> MessageChange:
    """Its URL did not take it; it is posted again at `due_ms`."""
    return _posted(parcel, index, due_ms, history, now_ms)


def _posted(
    parcel: Parcel, index: int, visible_ms: int, history: bytes, now_ms: int
) -> MessageChange:
    return MessageChange(
        visible_ms=visible_ms,
        receives=parcel.receives[index] + 1,
        first_received_ms=None if parcel.first_received_ms[index] else now_ms,
        history=history,
    )


def kept(parcel: Parcel) -> MessageChange:
    """It is not posted again, and stays to its expiry: no dead-letter queue takes it now."""
    return MessageChange(visible_ms=parcel.expires_ms)


def as_in(other: Parcel, index: int) -> MessageChange:
    """Returns the state and deliveries of the message in another reading of its parcel."""
    return MessageChange(
        visible_ms=other.visible_ms[index],
        receives=other.receives[index],
        first_received_ms=other.first_received_ms[index],
        history=other.histories.get(index),
    )


def changed(parcel: Parcel, changes: Changes) -> Parcel:
    """Returns the parcel after these changes. Its first wait gives it a list of waits."""

    def after(values: Sequence[T], new: Callable[[MessageChange], T | None]) -> tuple[T, ...]:
        listed = list(values)
        for index, change in changes.items():
            value = new(change)
            if value is not None:
                listed[index] = value
        return tuple(listed)

    waits_ms: Sequence[int] = parcel.waits_ms
    if any(change.wait_ms is not None for change in changes.values()):
        waits_ms = waits_ms or (0,) * parcel.count
    told = {index: each.history for index, each in changes.items() if each.history is not None}
    untried = {
        index: parcel.untried.get(index, 0) + change.untried
        for index, change in changes.items()
        if change.untried is not None
    }
    return replace(
        parcel,
        visible_ms=after(parcel.visible_ms, lambda change: change.visible_ms),
        nonces=after(parcel.nonces, lambda change: change.nonce),
        receives=after(parcel.receives, lambda change: change.receives),
        first_received_ms=after(parcel.first_received_ms, lambda change: change.first_received_ms),
        waits_ms=after(waits_ms, lambda change: change.wait_ms),
        histories={**parcel.histories, **told},
        untried={**parcel.untried, **untried},
    )


def under_key(
    parcel: Parcel, indexes: Sequence[int], key_ms: int, due_ms: int, moved_from: str | None
) -> Parcel:
    """Returns the messages at `indexes` in a separate parcel, under another key, due at `due_ms`.

    moved_from: their source, for the meter; None if it need not know.
    """
    positions = tuple(parcel.position(place) for place in indexes)
    alone = parcel.parcel_id.count(".") == 2
    parcel_id = parcel.parcel_id if alone else f"{parcel.send_id}.{positions[0]:X}"
    content = parcel.content
    if content is not None:
        messages = unpack(content)
        content = pack([messages[place] for place in indexes])

    def picked(values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(values[place] for place in indexes) if values else ()

    return replace(
        parcel,
        sort_key=parcel.key_prefix + sort_key(key_ms, parcel_id),
        parcel_id=parcel_id,
        visible_ms=(due_ms,) * len(indexes),
        waits_ms=(0,) * len(indexes) if parcel.waits_ms else (),
        nonces=(b"",) * len(indexes),
        receives=picked(parcel.receives),
        first_received_ms=picked(parcel.first_received_ms),
        sizes=picked(parcel.sizes),
        positions=where_differing(positions),
        visibility_seconds=picked(parcel.visibility_seconds),
        content=content,
        moved_from=moved_from,
        fanned_out=False,
        untried={
            index: parcel.untried[place]
            for index, place in enumerate(indexes)
            if place in parcel.untried
        },
        others=others_of(parcel, indexes),
    )
