"""Giving messages back under a later key, so that they lose their turn and starve no others.

In place (1 write unit): the message keeps its key. As good while the key is fresh and the wait
short, since young keys are read again and again; and the fallback if too many messages fail.
Moved (4 units for all messages given back together): re-keyed to their due time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from cirrusmq.base import limits
from cirrusmq.base.errors import Unavailable
from cirrusmq.lifecycle.dead_letters.move import dead_letter_queue
from cirrusmq.lifecycle.rekey import rekey, rekeyed, turn_ms
from cirrusmq.model.parcel import Parcel, key_in_group, key_ms
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.settlement.move_memory import MoveMemory
from cirrusmq.storage.parcels import PARCELS, partition_key

_logger = logging.getLogger(__name__)


class Portion(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of a parcel with the same wait."""

    indexes: Sequence[int]
    wait_ms: int


class Moved(msgspec.Struct, frozen=True):
    """The messages have moved to another parcel."""

    left: Parcel
    """Their parcel without them."""
    due_ms: int


class InPlace(msgspec.Struct, frozen=True):
    """The messages are to be given back under their key."""

    instead_of: Parcel | None
    """The parcel of a move whose answer was lost; None if no move was tried."""


def stays(source: Source, sort_key: str, wait_ms: int, now_ms: int) -> bool:
    """Returns True if giving a message back in place is as good as moving it."""
    if source.ordered or not key_in_group(sort_key)[:13].isdecimal():
        return True  # of a forged receipt, which the write in place refuses
    fresh = now_ms - key_ms(sort_key) < limits.FRESH_KEY_MS
    return fresh and wait_ms < limits.FRESH_KEY_MS


def portions(parcel: Parcel, indexes: Sequence[int], wait_ms: int | None) -> Iterator[Portion]:
    """Yields the places by their waits; None as `wait_ms` means the wait drawn at the receive."""
    together: dict[int, list[int]] = {}
    for index in indexes:
        wait = parcel.wait_ms(index) if wait_ms is None else wait_ms
        together.setdefault(wait, []).append(index)
    for wait, held in together.items():
        yield Portion(indexes=held, wait_ms=wait)


def move(
    core: Core,
    source: Source,
    parcel: Parcel,
    portion: Portion,
    nonces: Mapping[int, bytes],
    now_ms: int,
) -> Moved | InPlace | None:
    """Moves a portion to its due time. Returns None if the parcel is not as it was read."""
    pk = partition_key(PARCELS, parcel.source_id, parcel.partition)
    in_place = stays(source, parcel.sort_key, portion.wait_ms, now_ms)
    if in_place or not core.memory(MoveMemory).may_move(pk, now_ms):
        return InPlace(None)
    due_ms = min(now_ms + portion.wait_ms, parcel.expires_ms)
    at_once = portion.wait_ms < limits.FRESH_KEY_MS
    key = turn_ms(parcel, portion.indexes, now_ms) if at_once else due_ms
    moved = rekeyed(core, source, parcel, portion.indexes, key, due_ms, now_ms)
    try:
        left = rekey(core, source, parcel, portion.indexes, moved, now_ms, nonces)
    except Unavailable as error:
        # Consumers that fail must not throttle senders: one unit instead of four.
        _logger.warning("messages of %s are given back in place: %r", pk, error.__cause__)
        return InPlace(moved)
    return None if left is None else Moved(left, due_ms)


def give_up_aged(
    core: Core, source: Source, parcel: Parcel, nonces: Mapping[int, bytes], now_ms: int
) -> tuple[Parcel, list[int]]:
    """Dead-letters messages that are too old. Returns the rest of the parcel, and their places.

    nonces: by index. A message that cannot be moved now is given back like any other.
    """
    max_age = source.dead_letter.max_age_seconds if source.dead_letter else None
    went: list[int] = []
    if max_age is None or source.ordered or now_ms - parcel.sent_ms <= max_age * 1000:
        return parcel, went
    # Few messages are too old when they are given back: cold starts do without.
    from cirrusmq.lifecycle.transfer import move_to_queue

    try:
        target = dead_letter_queue(core, source)
        for index, nonce in nonces.items() if target else ():
            assert target is not None
            left = move_to_queue(core, source, parcel, index, target, "max_age", now_ms, nonce)
            if left is not None:
                parcel = left
                went.append(index)
    except Unavailable as error:
        _logger.warning("a message of %s is not given up: %r", source.id, error.__cause__)
    return parcel, went
