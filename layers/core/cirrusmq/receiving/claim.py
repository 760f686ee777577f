"""Claiming messages of one parcel: the write that makes a receiver their only holder.

    A: reads v = [5]   claims: v[0] = 5 still?  yes ──> v = [35], A's nonce
    B: reads v = [5]                                claims: v[0] = 5 still?  no ──> nothing

Comparing with the very value that was read also proves that the receive count, on which dead
letters depend, is the one that was read: both change in the same write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from cirrusmq.base.errors import Unavailable
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.receipt import Receipt, encode
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed, key
from cirrusmq.storage.parcels import PARCELS, partition_key, read_parcel

NonceOf = Callable[[Parcel, int, int], bytes]
"""(parcel, place, receive count) -> the nonce of a new receipt."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of one parcel that a receiver holds; `parcel` is as the claim left it."""

    parcel: Parcel
    places: tuple[int, ...]
    before: Parcel | None = None
    """The parcel as it was; None where an earlier call made the claim, and may have answered it."""

    def receipt(self, place: int) -> str:
        """The receipt of the message at `place`."""
        return encode(
            Receipt(
                source_id=self.parcel.source_id,
                partition=self.parcel.partition,
                sort_key=self.parcel.sort_key,
                place=place,
                count=self.parcel.count,
                expires_ms=self.parcel.expires_ms,
                nonce=self.parcel.nonces[place],
            )
        )


def claim(
    core: Core,
    source: Source,
    parcel: Parcel,
    places: Sequence[int],
    timeout_seconds: int | None,
    nonce_of: NonceOf,
) -> Claim | Parcel | None:
    """Take the messages at `places`, for the receive's own timeout or the message's or source's.

    Answers the claim; the parcel as it stands where somebody was faster; None where it is gone.
    """
    now_ms = core.now_ms()
    wanted = _claimed(core, source, parcel, places, timeout_seconds, nonce_of, now_ms)
    try:
        core.store.write("UpdateItem", _update(core, parcel, wanted, places))
    except ConditionFailed as failed:
        if failed.item is None:
            return None
        current = read_parcel(failed.item)
        # Our own write, sent twice; or an earlier call's with the same attempt, of which this one
        # read nothing: its lease is as that call left it, and may have ended.
        if all(
            current.nonces[place] == wanted.nonces[place] and current.visible_ms[place] > now_ms
            for place in places
        ):
            return Claim(parcel=current, places=tuple(places))
        return current
    return Claim(parcel=wanted, places=tuple(places), before=parcel)


def try_claim(
    core: Core,
    source: Source,
    parcel: Parcel,
    places: Sequence[int],
    timeout_seconds: int | None,
    nonce_of: NonceOf,
) -> Claim | Parcel | Unavailable | None:
    """As `claim`; a store that refuses is an outcome too, for others of the receive may succeed."""
    try:
        return claim(core, source, parcel, places, timeout_seconds, nonce_of)
    except Unavailable as error:
        return error


def _claimed(
    core: Core,
    source: Source,
    parcel: Parcel,
    places: Sequence[int],
    timeout_seconds: int | None,
    nonce_of: NonceOf,
    now_ms: int,
) -> Parcel:
    visible = list(parcel.visible_ms)
    nonces = list(parcel.nonces)
    receives = list(parcel.receives)
    first = list(parcel.first_received_ms)
    waits = list(parcel.waits_ms) or ([0] * parcel.count if source.retry else [])
    for place in places:
        own = parcel.visibility_seconds[place] if parcel.visibility_seconds else 0
        timeout = timeout_seconds or own or source.visibility_timeout_seconds
        visible[place] = min(now_ms + timeout * 1000, parcel.expires_ms)
        receives[place] += 1
        nonces[place] = nonce_of(parcel, place, receives[place])
        first[place] = first[place] or now_ms
        if waits:
            waits[place] = _wait_ms(core, source, parcel, visible[place], receives[place])
    return replace(
        parcel,
        visible_ms=tuple(visible),
        nonces=tuple(nonces),
        receives=tuple(receives),
        first_received_ms=tuple(first),
        waits_ms=tuple(waits),
    )


def _wait_ms(
    core: Core, source: Source, parcel: Parcel, visible_ms: int, receive_count: int
) -> int:
    if source.retry is None:
        return 0
    wait_ms = source.retry.wait_ms(receive_count, core.random.random)
    if wait_ms is None and source.keeps_used_up:
        return parcel.expires_ms - visible_ms
    return wait_ms or 0


def _update(core: Core, before: Parcel, after: Parcel, places: Sequence[int]) -> dict[str, Any]:
    conditions, changes = [], []
    values: dict[str, Any] = {}
    for place in places:
        conditions.append(f"v[{place}] = :s{place}")
        changes += [f"v[{place}] = :v{place}", f"k[{place}] = :k{place}", f"r[{place}] = :r{place}"]
        values |= {
            f":s{place}": {"N": str(before.visible_ms[place])},
            f":v{place}": {"N": str(after.visible_ms[place])},
            f":k{place}": {"B": after.nonces[place]},
            f":r{place}": {"N": str(after.receives[place])},
        }
        if not before.first_received_ms[place]:
            changes.append(f"f[{place}] = :f{place}")
            values[f":f{place}"] = {"N": str(after.first_received_ms[place])}
        if before.waits_ms:
            changes.append(f"w[{place}] = :w{place}")
            values[f":w{place}"] = {"N": str(after.waits_ms[place])}
    if after.waits_ms and not before.waits_ms:
        conditions.append("attribute_not_exists(w)")
        changes.append("w = :w")
        values[":w"] = {"L": [{"N": str(wait)} for wait in after.waits_ms]}
    pk = partition_key(PARCELS, before.source_id, before.partition)
    return {
        "TableName": core.tables.messages,
        "Key": key(pk, before.sort_key),
        "ConditionExpression": " AND ".join(conditions),
        "UpdateExpression": "SET " + ", ".join(changes),
        "ExpressionAttributeValues": values,
    }
