"""Chores: parcels found by a scan that are spent, wait long, or are to be dead-lettered.

    a scan        remembers their keys: a receive finds and claims, and does nothing else
    the claims    are first, since a client waits for their answer
    then          an event names them to `replay`: at once, and then once a second
    replay        reads them, and does what their state asks for (`tidying`)

If an event is lost, or an environment ends, the next scan from the beginning finds them again. In
an ordered source a dead letter is no chore, but moved by the scan: the group's next message waits
for it. Only spent parcels are named there.
"""

from __future__ import annotations

import logging

from cirrusmq.base import limits
from cirrusmq.lifecycle.chore_memory import ChoreMemory
from cirrusmq.lifecycle.dead_letters.move import OWN_QUEUE, due, has_place
from cirrusmq.lifecycle.tombstones import may_vanish
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import PARCELS, partition_key

_logger = logging.getLogger(__name__)


def note(core: Core, source: Source, pk: str, parcels: list[Parcel], now_ms: int) -> None:
    """Remembers the chores among parcels of a partition. A client's process has none."""
    if core.settings.in_process:
        return
    keys = [key for each in parcels if (key := _key(core, source, each, now_ms)) is not None]
    if keys:
        core.memory(ChoreMemory).remember(pk, keys, now_ms)


def tell(core: Core, source: Source, pk: str) -> None:
    """Sends remembered chores to `replay`, unless others were sent within the last second."""
    keys = core.memory(ChoreMemory).take(pk, core.now_ms())
    if not keys:
        return
    event = {"resource": source.id, "partition": int(pk.rpartition("#")[2]), "parcels": keys}
    try:
        core.invoke("replay", {"aged": event})
    except Exception as error:
        _logger.warning("replay is not told of %d parcels of %s: %r", len(keys), pk, error)


def tell_rest(core: Core, source: Source) -> None:
    """Sends the rest of the source's chores, in a second at most, since no scan may follow."""
    memory = core.memory(ChoreMemory)
    for partition in range(source.partitions):
        pk = partition_key(PARCELS, source.id, partition)
        while (next_ms := memory.next_ms(pk)) is not None:
            core.wait_until(next_ms)
            tell(core, source, pk)


def waits_long(parcel: Parcel, index: int, now_ms: int) -> bool:
    """Returns True if a message whose lease ran out has a long wait for its retry ahead."""
    waits = parcel.waiting(index, now_ms)
    return waits and parcel.ready_ms(index) - now_ms > limits.MOVE_WAIT_MS


def _key(core: Core, source: Source, parcel: Parcel, now_ms: int) -> str | None:
    """Returns the key to name for a parcel with a chore, or None: its own, or `OWN_QUEUE` if a
    used-up message is still received, since there is no queue for it."""
    if source.is_over(parcel, now_ms):
        return None
    if parcel.spent():
        states, scale = parcel.visible_ms, core.clock.scale
        vanishes = may_vanish(source, states, parcel, now_ms, scale)
        return parcel.sort_key if vanishes else None
    if source.ordered:
        return None
    indexes = range(parcel.count)
    if parcel.waits_ms and any(waits_long(parcel, index, now_ms) for index in indexes):
        return parcel.sort_key
    if not source.gives_up or not due(source, parcel, now_ms):
        return None
    if has_place(core, source):
        return parcel.sort_key
    return OWN_QUEUE if source.makes_dead_letter_queue else None
