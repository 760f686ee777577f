"""The work of `replay` on parcels that scans named: the other end of `chores`.

It holds no lease. Each step is a conditional write or a transaction of values that were read here,
so two at once, or a second try of Lambda, are a refusal:

    a scan   names p ── purge, or a rewind ── p is nobody's, or held: nothing is done
    two events name p      both read it ── one moves it, the other one is refused
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cirrusmq.lifecycle import tombstones
from cirrusmq.lifecycle.chores import waits_long
from cirrusmq.lifecycle.dead_letters.move import (
    OWN_QUEUE,
    dead_letter_queue,
    due,
    give_up,
    has_place,
)
from cirrusmq.lifecycle.rekey import rekey, rekeyed
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.isolation import log_and_continue
from cirrusmq.storage.parcels import PARCELS, partition_key, read_parcel
from cirrusmq.subscriptions.sources import source_of_resource


def tidy(core: Core, resource_id: str, partition: int, keys: Sequence[str], max_ms: int) -> None:
    """Removes, re-keys or dead-letters parcels of a partition by their present state, in parallel.

    keys: their sort keys, or `OWN_QUEUE`. most_ms: time for the work; later scans name the rest.
    """
    source = source_of_resource(core, resource_id)
    if source is None:
        return
    pk, until_ms = partition_key(PARCELS, source.id, partition), core.now_ms() + max_ms
    places = [(pk, key) for key in keys if key != OWN_QUEUE]
    found = core.store.get_many(core.tables.messages, places, consistent=True)
    parcels = list(map(read_parcel, found.values()))
    letters = any(due(source, each, core.now_ms()) for each in parcels)
    if source.makes_dead_letter_queue and (letters or len(places) < len(keys)):
        # Once, and not by each letter side by side; the source names it then.
        dead_letter_queue(core, source)
        source = source_of_resource(core, source.id) or source
    list(core.in_parallel(partial(_clean, core, source, until_ms), parcels))


def _clean(core: Core, source: Source, until_ms: int, parcel: Parcel) -> None:
    now_ms = core.now_ms()
    if source.is_over(parcel, now_ms) or now_ms >= until_ms:
        return
    with log_and_continue(f"{parcel.sort_key} is not tidied up now"):
        if parcel.spent():
            tombstones.clear(core, source, parcel, now_ms)
        elif not source.ordered:
            parcel = _move_long(core, source, parcel, now_ms)
            if has_place(core, source):
                give_up(core, source, parcel, now_ms)


def _move_long(core: Core, source: Source, parcel: Parcel, now_ms: int) -> Parcel:
    """Re-keys every message that has a long wait ahead, out of the partition's head. Returns the
    rest of the parcel."""
    together: dict[int, list[int]] = {}
    for index in range(parcel.count):
        if waits_long(parcel, index, now_ms):
            due_ms = min(parcel.ready_ms(index), parcel.expires_ms)
            together.setdefault(due_ms, []).append(index)
    for due_ms, indexes in together.items():
        moved = rekeyed(core, source, parcel, indexes, due_ms, due_ms, now_ms)
        left = rekey(core, source, parcel, indexes, moved, now_ms)
        if left is None:
            break
        parcel = left
    return parcel
