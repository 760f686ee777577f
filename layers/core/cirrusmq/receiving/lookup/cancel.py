"""Cancelling a message that nobody has received, and changing when it is due: by its id.

Both are one write under the condition that the message still is as it was read, and a claim writes
under the same one, so a receiver gets it or its sender has it back, never both:

    sender      looks it up: v = 5     cancels: v = 5 still?  yes ──> CANCELLED
    receiver    reads v = 5            claims:  v = 5 still?  no  ──> nothing

A cancelled message keeps its parcel's key taken while its send may be repeated, which would store
it again, and for at least two minutes, in which the call itself can be repeated. A new due time is
a new key, as after a give-back, in one transaction with a note for look-ups. The new key may be
earlier than the old one, but is not before now: no reader has passed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, UnsetType
from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.errors import Conflict, InvalidParameter, MessageNotFound, Unavailable
from cirrusmq.base.shapes import integer
from cirrusmq.base.timestamps import format_time, parse_moment
from cirrusmq.lifecycle.rekey import rekey, rekeyed_to_due
from cirrusmq.lifecycle.tombstones import cancelled_end_ms
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.queue import Queue
from cirrusmq.model.source import Source
from cirrusmq.model.transitions import cancelled, changed
from cirrusmq.queues.wake_ups.announce import wake_receivers
from cirrusmq.receiving.lookup.find import Found, found_at, locate
from cirrusmq.runtime.core import Core
from cirrusmq.storage.changes import as_read, change
from cirrusmq.storage.locations import place_note
from cirrusmq.storage.parcels import parcel_key

_TRIES = 4


class RescheduleRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a change of a message's due time: one of the two."""

    delay_seconds: (
        Annotated[int, integer(limits.DELAY_SECONDS, " seconds, from now")] | UnsetType
    ) = msgspec.UNSET
    deliver_at: (
        Annotated[
            str | int | float,
            Meta(description="an RFC 3339 time, or seconds since the beginning of 1970 in UTC"),
        ]
        | UnsetType
    ) = msgspec.UNSET


def cancel(
    core: Core, queue: Queue, source: Source, message_id: str, group: str | None = None
) -> None:
    """Takes a message out of a source before it is received; one write unit.

    group: the message's group in a fair source, which limits the search; None searches all groups.
    A message that was cancelled before is no error. All messages of the id are taken out, or none
    if one was received. Raises MessageNotFound as a look-up does, and Conflict if it was received.
    """
    _check_unordered(source, "cancelled")
    for _ in range(_TRIES):
        live = _unreceived(locate(core, queue, source, message_id, group=group))
        if all(_cancel(core, source, parcel, index) for parcel, index in live):
            return
    raise Unavailable


def _cancel(core: Core, source: Source, parcel: Parcel, index: int) -> bool:
    """Takes a message out of its parcel. Returns False if another worker changed it first."""
    changes = {index: cancelled(core.now_ms())}
    after = changed(parcel, changes)
    ends_ms = cancelled_end_ms(source, after, core.clock.scale)
    still = as_read(parcel, changes, "visible_ms")
    request = change(core.tables.messages, parcel_key(parcel), changes, still, ends_ms=ends_ms)
    return core.store.try_write("UpdateItem", request)


def reschedule(
    core: Core,
    queue: Queue,
    source: Source,
    message_id: str,
    request: RescheduleRequest,
    group: str | None = None,
) -> Found:
    """Makes a message that was never received active from another time on.

    Costs 6 write units for a small message, none if it is due then already. Raises as `cancel`
    does, and InvalidParameter if the time is not before the message's expiry.
    """
    _check_unordered(source, "put off or brought forward")
    if isinstance(request.delay_seconds, UnsetType) == isinstance(request.deliver_at, UnsetType):
        raise InvalidParameter("delay_seconds", "or deliver_at is needed, and not both")
    for tried in range(_TRIES):
        live = _unreceived(locate(core, queue, source, message_id, group=group))
        if not live:
            raise MessageNotFound
        moved = [
            _reschedule(core, queue, source, parcel, index, request, tried)
            for parcel, index in live
        ]
        found = [each for each in moved if each is not None]
        if len(found) == len(live):
            return replace(found[0], others=tuple(found[1:]))
    raise Unavailable


def _reschedule(
    core: Core,
    queue: Queue,
    source: Source,
    parcel: Parcel,
    index: int,
    request: RescheduleRequest,
    tried: int,
) -> Found | None:
    """Moves the message to its due time. Returns None if another worker changed it first."""
    now_ms = core.now_ms()
    due_ms = _due_ms(request, parcel, now_ms)
    if max(parcel.visible_ms[index], now_ms) == due_ms:
        return found_at(core, parcel, index)
    # A key that an earlier change gave it may still be taken by messages that it was with.
    moved = rekeyed_to_due(core, source, parcel, index, due_ms + tried, due_ms, now_ms)
    note = place_note(moved, 0)
    if rekey(core, source, parcel, [index], moved, now_ms, alongside=[note]) is None:
        return None
    if source.id == queue.id:
        wake_receivers(core, queue, [moved], now_ms)
    return found_at(core, moved, 0)


def _due_ms(request: RescheduleRequest, parcel: Parcel, now_ms: int) -> int:
    """Returns when the message is due: a time that has passed means now."""
    if isinstance(request.deliver_at, UnsetType):
        assert isinstance(request.delay_seconds, int)
        name, due_ms = "delay_seconds", now_ms + request.delay_seconds * 1000
    else:
        name = "deliver_at"
        due_ms = max(parse_moment(name, request.deliver_at), now_ms)
    if due_ms >= parcel.expires_ms:
        ends = format_time(parcel.expires_ms)
        raise InvalidParameter(name, f"must be before the end of the message's life, {ends}")
    return due_ms


def _check_unordered(source: Source, done: str) -> None:
    if source.ordered:
        raise InvalidParameter(
            "queue", f"is ordered: its messages cannot be {done}, later ones would pass them"
        )


def _unreceived(found: Sequence[tuple[Parcel, int]]) -> list[tuple[Parcel, int]]:
    """Returns the messages that are not cancelled yet. Raises Conflict if one was received.

    A dead letter's receive count starts again at 0, but its source received it.
    """
    live = [(parcel, index) for parcel, index in found if parcel.live(index)]
    if any(parcel.receives[index] or parcel.dead_letter for parcel, index in live):
        raise Conflict("The message was received; only its receiver can settle it.")
    return live
