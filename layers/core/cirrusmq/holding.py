"""Holding a message longer or shorter, and giving it back before its lease ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, UnsetType

from cirrusmq import limits
from cirrusmq.core import Core
from cirrusmq.parcel import Parcel
from cirrusmq.receipts import (
    Fate,
    Held,
    ReceiptText,
    SourceOf,
    check_count,
    expired,
    holder_conditions,
    settle,
)
from cirrusmq.storage.parcels import read_parcel
from cirrusmq.storage.store import ConditionFailed, key
from cirrusmq.waiting import move_to_due


class VisibilityEntry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One message of a visibility change."""

    receipt: ReceiptText
    visibility_timeout_seconds: Annotated[
        int, Meta(ge=0, le=43_200, description="an integer from 0 to 43,200 seconds")
    ]


class VisibilityRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a visibility change."""

    entries: Annotated[
        list[VisibilityEntry], Meta(min_length=1, description="an array of 1 to 16 entries")
    ]


class GiveBackRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a give-back."""

    receipts: Annotated[
        list[ReceiptText], Meta(min_length=1, description="an array of 1 to 16 receipts")
    ]
    delay_seconds: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=limits.GIVE_BACK_DELAY_SECONDS[1],
                description="an integer from 0 to 43,200 seconds",
            ),
        ]
        | UnsetType
    ) = msgspec.UNSET


def change_visibility(core: Core, request: VisibilityRequest, source_of: SourceOf) -> Fate:
    """Let leases end so many seconds from now; for each receipt when its message is visible.

    Of several entries with one receipt the last counts.
    """
    check_count(request.entries)
    seconds = {entry.receipt: entry.visibility_timeout_seconds for entry in request.entries}

    def change(core: Core, together: Sequence[Held]) -> Fate:
        return _each(core, together, lambda held, now_ms: _hold(core, held, seconds, now_ms))

    return settle(core, list(seconds), source_of, change)


def give_back(core: Core, request: GiveBackRequest, source_of: SourceOf) -> Fate:
    """End receipts: hidden for the delay, else for the ladder's next wait, else active at once."""
    given = request.delay_seconds
    delay_ms = None if isinstance(given, UnsetType) else given * 1000

    def give(core: Core, together: Sequence[Held]) -> Fate:
        return _each(core, together, lambda held, now_ms: _give(core, held, delay_ms, now_ms))

    return settle(core, request.receipts, source_of, give)


def _each(core: Core, together: Sequence[Held], act: Callable[[Held, int], int | None]) -> Fate:
    fates: Fate = {}
    for held in together:
        now_ms = core.now_ms()
        visible_ms = None if expired(held, now_ms) else act(held, now_ms)
        if visible_ms is not None:
            fates[held.text] = visible_ms
    return fates


def _hold(core: Core, held: Held, seconds: dict[str, int], now_ms: int) -> int | None:
    """Let the lease end later or sooner; with 0 the message is active at once, without a wait."""
    until_ms = min(now_ms + seconds[held.text] * 1000, held.receipt.expires_ms)
    place = held.receipt.place
    values: dict[str, Any] = {":until": {"N": str(until_ms)}}
    at_once = not seconds[held.text]
    try:
        _write(core, held, now_ms, f"SET v[{place}] = :until", values, drop_wait=at_once)
    except ConditionFailed as failed:
        return until_ms if _applied_before(failed, held, until_ms) else None
    return until_ms


def _give(core: Core, held: Held, delay_ms: int | None, now_ms: int) -> int | None:
    wait_ms = delay_ms if delay_ms is not None or held.source.retry else 0
    if wait_ms is not None and (wait_ms <= limits.MOVE_WAIT_MS or held.source.ordered):
        return _give_in_place(core, held, wait_ms, now_ms)
    item = core.store.get(core.tables.messages, held.pk, held.receipt.sort_key)
    if item is None:
        return None
    parcel = read_parcel(item)
    if not holds(held, parcel, now_ms):
        return None
    place = held.receipt.place
    wait_ms = parcel.wait_ms(place) if wait_ms is None else wait_ms
    due_ms = min(now_ms + wait_ms, parcel.expires_ms)
    if wait_ms <= limits.MOVE_WAIT_MS or held.source.ordered:
        return _give_in_place(core, held, wait_ms, now_ms)
    nonce = held.receipt.nonce
    moved = move_to_due(core, held.source, parcel, place, due_ms, now_ms, nonce)
    return None if moved is None else due_ms


def _give_in_place(core: Core, held: Held, wait_ms: int, now_ms: int) -> int | None:
    """End the lease where the message stands."""
    due_ms = min(now_ms + wait_ms, held.receipt.expires_ms)
    place = held.receipt.place
    values: dict[str, Any] = {":due": {"N": str(due_ms)}, ":ended": {"B": b""}}
    update = f"SET v[{place}] = :due, k[{place}] = :ended"
    try:
        _write(core, held, now_ms, update, values, drop_wait=True)
    except ConditionFailed as failed:
        # The nonce is gone in either case: only an earlier try of ours leaves this very time.
        return due_ms if _ended_before(failed, held, due_ms) else None
    return due_ms


def _write(
    core: Core,
    held: Held,
    now_ms: int,
    update: str,
    values: dict[str, Any],
    *,
    drop_wait: bool,
) -> None:
    """Change a message where it stands; with `drop_wait` no retry's wait follows its lease.

    Only parcels that were received under a ladder have a list of waits. Whether this one has is
    guessed from the source's present ladder, and a second write follows where that was wrong.
    """
    if not drop_wait:
        core.store.write("UpdateItem", _request(core, held, now_ms, update, values))
    else:
        waits = held.source.retry is not None
        try:
            core.store.write("UpdateItem", _drop_wait(core, held, now_ms, update, values, waits))
        except ConditionFailed as failed:
            if failed.item is None or waits == ("w" in failed.item):
                raise
            request = _drop_wait(core, held, now_ms, update, values, not waits)
            core.store.write("UpdateItem", request)
    core.hints.forget(held.pk, held.receipt.sort_key)


def _drop_wait(
    core: Core, held: Held, now_ms: int, update: str, values: dict[str, Any], waits: bool
) -> dict[str, Any]:
    if waits:
        update += f", w[{held.receipt.place}] = :none"
    request = _request(core, held, now_ms, update, values)
    exists = "attribute_exists(w)" if waits else "attribute_not_exists(w)"
    request["ConditionExpression"] += f" AND {exists}"
    return request


def holds(held: Held, parcel: Parcel, now_ms: int) -> bool:
    """Whether a receipt speaks for its message, in a parcel that was read."""
    receipt, place = held.receipt, held.receipt.place
    return (
        parcel.count == receipt.count
        and parcel.expires_ms == receipt.expires_ms
        and parcel.sent_ms > held.source.purged_ms
        and parcel.nonces[place] == receipt.nonce
        and parcel.live(place)
        and not parcel.waiting(place, now_ms)
    )


def _applied_before(failed: ConditionFailed, held: Held, until_ms: int) -> bool:
    if not failed.repeated or failed.item is None:
        return False
    parcel, place = read_parcel(failed.item), held.receipt.place
    return (
        place < parcel.count
        and parcel.nonces[place] == held.receipt.nonce
        and parcel.visible_ms[place] == until_ms
    )


def _ended_before(failed: ConditionFailed, held: Held, due_ms: int) -> bool:
    if not failed.repeated or failed.item is None:
        return False
    parcel, place = read_parcel(failed.item), held.receipt.place
    return place < parcel.count and not parcel.nonces[place] and parcel.visible_ms[place] == due_ms


def _request(
    core: Core, held: Held, now_ms: int, update: str, values: dict[str, Any]
) -> dict[str, Any]:
    conditions = holder_conditions(held, now_ms, values)
    return {
        "TableName": core.tables.messages,
        "Key": key(held.pk, held.receipt.sort_key),
        "ConditionExpression": " AND ".join(conditions),
        "UpdateExpression": update,
        "ExpressionAttributeValues": values,
    }
