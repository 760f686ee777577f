"""Holding a message longer or shorter, and giving it back before its lease ends."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, UnsetType
from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.shapes import integer
from cirrusmq.model import transitions
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.transitions import MessageChange
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed
from cirrusmq.settlement import requeue
from cirrusmq.settlement.settle import (
    Held,
    Receipts,
    ReceiptText,
    Results,
    SourceOf,
    check_count,
    expired,
    holds_still,
    left_by_earlier_try,
    settle,
)
from cirrusmq.storage.changes import HAS_NO_WAITS, HAS_WAITS, all_of, change
from cirrusmq.storage.parcels import read_parcel

_TRIES = 4


class _Ending(NamedTuple):
    """The end of a lease: how long its message is hidden, and whether its receive counts."""

    wait_ms: int
    tried: bool


class VisibilityEntry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One message of a visibility change."""

    receipt: ReceiptText
    visibility_timeout_seconds: Annotated[
        int, integer((0, limits.VISIBILITY_SECONDS[1]), " seconds")
    ]


class VisibilityRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a visibility change."""

    entries: Annotated[
        list[VisibilityEntry], Meta(min_length=1, description="an array of 1 to 16 entries")
    ]


class GiveBackRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a give-back."""

    receipts: Receipts
    delay_seconds: (
        Annotated[int, integer(limits.GIVE_BACK_DELAY_SECONDS, " seconds")] | UnsetType
    ) = msgspec.UNSET
    tried: Annotated[
        bool,
        Meta(
            description="a boolean; false: nothing began to handle these messages, and their"
            " receive counts are as before the receive"
        ),
    ] = True


def change_visibility(core: Core, request: VisibilityRequest, source_of: SourceOf) -> Results:
    """Changes the ends of leases. The result for each receipt is when its message is visible.

    0 seconds is a give-back. If several entries have one receipt, the last one counts.
    """
    check_count(request.entries)
    seconds = {entry.receipt: entry.visibility_timeout_seconds for entry in request.entries}

    def act(core: Core, together: Sequence[Held]) -> Results:
        given = [held for held in together if not seconds[held.text]]
        results = _give_all(core, given, delay_ms=0) if given else {}
        for held in together:
            now_ms = core.now_ms()
            if seconds[held.text] and not expired(held, now_ms):
                until_ms = _hold(core, held, seconds[held.text], now_ms)
                results |= {} if until_ms is None else {held.text: until_ms}
        return results

    return settle(core, list(seconds), source_of, act)


def give_back(core: Core, request: GiveBackRequest, source_of: SourceOf) -> Results:
    """Ends leases: messages are hidden for the delay, else for the retry's wait, else active.

    Messages that were not tried have no retry's wait, and keep their receive count:

        receive: r = 3, tries 3 ──> given back untried: r = 3, g = 1, tries 2 ──> receive: tries 3
        the same give-back again: its nonce is gone, nothing changes
    """
    given = request.delay_seconds
    delay_ms = None if isinstance(given, UnsetType) else given * 1000
    if delay_ms is None and not request.tried:
        delay_ms = 0
    give = partial(_give_all, delay_ms=delay_ms, tried=request.tried)
    return settle(core, request.receipts, source_of, give)


def _hold(core: Core, held: Held, seconds: int, now_ms: int) -> int | None:
    """Makes the lease end later or sooner. Returns its new end, or None if the receipt is stale."""
    later = transitions.held(seconds, held.receipt.expires_ms, now_ms)
    changes, still = {held.receipt.place: later}, holds_still(held, now_ms)
    try:
        core.store.write("UpdateItem", change(core.tables.messages, held.key, changes, still))
    except ConditionFailed as failed:
        nonce = held.receipt.nonce
        done = left_by_earlier_try(failed, held, later.visible_ms, nonce)
        return later.visible_ms if done else None
    return later.visible_ms


def _give_all(
    core: Core, together: Sequence[Held], delay_ms: int | None, *, tried: bool = True
) -> Results:
    """Gives messages of one parcel back: in place if that is as good, else under a later key.

    delay_ms: None lets each message wait for its retry.
    """
    now_ms = core.now_ms()
    alive = [held for held in together if not expired(held, now_ms)]
    if not alive:
        return {}
    source, sort_key = alive[0].source, alive[0].receipt.sort_key
    wait_ms = delay_ms if delay_ms is not None or source.retry else 0
    if wait_ms is not None and requeue.stays(source, sort_key, wait_ms, now_ms):
        return _give_each_in_place(core, alive, _Ending(wait_ms, tried), now_ms)
    results: Results = {}
    waits: dict[int, int] = {}
    for _ in range(_TRIES):
        alive = [held for held in alive if held.text not in results]
        item = core.store.get(core.tables.messages, alive[0].pk, sort_key) if alive else None
        if item is None:
            return results
        parcel = read_parcel(item)
        alive = [held for held in alive if holds(held, parcel, now_ms)]
        nonces = {held.receipt.place: held.receipt.nonce for held in alive}
        if not tried:
            parcel = transitions.untried(parcel, [*nonces])
        texts = {held.receipt.place: held.text for held in alive}
        parcel, went = requeue.give_up_aged(core, source, parcel, nonces, now_ms)
        results |= {texts[index]: now_ms for index in went}
        left = [index for index in nonces if index not in went]
        for portion in requeue.portions(parcel, left, wait_ms):
            waits |= dict.fromkeys(portion.indexes, portion.wait_ms)
            own = {index: nonces[index] for index in portion.indexes}
            outcome = requeue.move(core, source, parcel, portion, own, now_ms)
            if isinstance(outcome, requeue.InPlace):
                some = [held for held in alive if held.receipt.place in own]
                ending = _Ending(portion.wait_ms, tried)
                results |= _give_each_in_place(core, some, ending, now_ms, outcome.instead_of)
            elif outcome is not None:
                parcel = outcome.left
                results |= {texts[index]: outcome.due_ms for index in own}
    # Neighbours in the parcel change often. A give-back in place has no condition on them.
    for held in alive:
        if held.text not in results:
            ending = _Ending(waits[held.receipt.place], tried)
            results |= _give_each_in_place(core, [held], ending, now_ms)
    return results


def _give_each_in_place(
    core: Core,
    together: Sequence[Held],
    ending: _Ending,
    now_ms: int,
    instead_of: Parcel | None = None,
) -> Results:
    """Ends the leases in place.

    instead_of: a parcel of a move whose answer was lost, which may have the messages; else None.
    """
    results: Results = {}
    for held in together:
        due_ms = _give_in_place(core, held, ending, now_ms)
        if due_ms is None and instead_of is not None:
            moved = core.store.get(core.tables.messages, held.pk, instead_of.sort_key)
            due_ms = None if moved is None else instead_of.visible_ms[0]
        if due_ms is not None:
            results[held.text] = due_ms
    return results


def _give_in_place(core: Core, held: Held, ending: _Ending, now_ms: int) -> int | None:
    """Ends the lease in place. Returns when the message is due, or None if the receipt is stale."""
    expires_ms = held.receipt.expires_ms
    ended = transitions.given_back(ending.wait_ms, expires_ms, now_ms, tried=ending.tried)
    try:
        _end_lease(core, held, ended, now_ms)
    except ConditionFailed as failed:
        # The nonce is gone in either case: only an earlier try of ours leaves this very time.
        done = left_by_earlier_try(failed, held, ended.visible_ms, b"")
        return ended.visible_ms if done else None
    return ended.visible_ms


def _end_lease(core: Core, held: Held, ended: MessageChange, now_ms: int) -> None:
    """Writes a give-back in place.

    Only parcels that were received under a retry policy have a list of waits. The first write
    assumes the source's present policy; a second one follows if that was wrong.
    """
    waits = held.source.retry is not None
    try:
        core.store.write("UpdateItem", _ending(core, held, ended, now_ms, waits=waits))
    except ConditionFailed as failed:
        if failed.item is None or waits == ("w" in failed.item):
            raise
        core.store.write("UpdateItem", _ending(core, held, ended, now_ms, waits=not waits))


def _ending(
    core: Core, held: Held, ended: MessageChange, now_ms: int, *, waits: bool
) -> dict[str, Any]:
    changes = {held.receipt.place: ended if waits else replace(ended, wait_ms=None)}
    still = all_of([holds_still(held, now_ms), HAS_WAITS if waits else HAS_NO_WAITS])
    return change(core.tables.messages, held.key, changes, still)


def holds(held: Held, parcel: Parcel, now_ms: int) -> bool:
    """Returns True if a receipt is valid for its message, in a parcel that was read."""
    receipt, index = held.receipt, held.receipt.place
    return (
        parcel.count == receipt.count
        and parcel.expires_ms == receipt.expires_ms
        and held.source.keeps(parcel)
        and parcel.nonces[index] == receipt.nonce
        and parcel.live(index)
        and not parcel.waiting(index, now_ms)
    )
