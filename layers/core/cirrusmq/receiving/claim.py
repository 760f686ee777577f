"""Claiming messages of one parcel: the write that makes a receiver their only holder.

    A: reads v = [5]   claims: v[0] = 5 still?  yes ──> v = [35], A's nonce
    B: reads v = [5]                                claims: v[0] = 5 still?  no ──> nothing

The condition also proves that the receive count, on which dead letters depend, has not changed
since the parcel was read: both change in the same write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from cirrusmq.base.errors import Unavailable
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.receipt import Receipt, encode, same_lease
from cirrusmq.model.source import Source
from cirrusmq.model.transitions import Changes, MessageChange, changed, claimed
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed
from cirrusmq.storage.changes import as_read, change
from cirrusmq.storage.parcels import parcel_key, read_parcel

NonceOf = Callable[[Parcel, int, int], bytes]
"""(parcel, index, receive count) -> the bytes that are drawn for the nonce of a new receipt."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of one parcel that a receiver holds; `parcel` is as the claim left it."""

    parcel: Parcel
    indexes: tuple[int, ...]
    before: Parcel | None = None
    """The parcel before the claim; None if an earlier call made it, and may have answered it."""

    def receipt(self, index: int) -> str:
        """Returns the receipt of the message at `index`."""
        return encode(
            Receipt(
                source_id=self.parcel.source_id,
                partition=self.parcel.partition,
                sort_key=self.parcel.sort_key,
                place=index,
                count=self.parcel.count,
                expires_ms=self.parcel.expires_ms,
                nonce=self.parcel.nonces[index],
            )
        )


def claim(
    core: Core,
    source: Source,
    parcel: Parcel,
    indexes: Sequence[int],
    timeout_seconds: int | None,
    nonce_of: NonceOf,
) -> Claim | Parcel | Unavailable | None:
    """Claims the messages at `indexes`.

    timeout_seconds: the receive's visibility timeout; None means the message's or the source's own.
    Returns the claim, the stored parcel if another receiver was faster, None if it is gone, or a
    refusal of the store: other claims may succeed.
    """
    now_ms = core.now_ms()
    changes: dict[int, MessageChange] = {}
    for index in indexes:
        drawn = nonce_of(parcel, index, parcel.receives[index] + 1)
        changes[index] = claimed(
            *(source, parcel, index, timeout_seconds, drawn, core.random.random, now_ms)
        )
    wanted = changed(parcel, changes)
    try:
        core.store.write("UpdateItem", _request(core, source, parcel, wanted, changes))
    except Unavailable as error:
        return error
    except ConditionFailed as failed:
        if failed.item is None:
            return None
        current = read_parcel(failed.item)
        # Our own write, sent twice, or the write of an earlier call with the same attempt, which
        # this call did not read: the lease is as that call left it, and may have ended.
        if all(
            same_lease(current.nonces[index], wanted.nonces[index])
            and current.visible_ms[index] > now_ms
            for index in indexes
        ):
            return Claim(parcel=current, indexes=tuple(indexes))
        return current
    return Claim(parcel=wanted, indexes=tuple(indexes), before=parcel)


def _request(
    core: Core, source: Source, before: Parcel, after: Parcel, changes: Changes
) -> dict[str, Any]:
    return change(
        core.tables.messages,
        parcel_key(before),
        changes,
        as_read(before, changes, "visible_ms"),
        first_waits_ms=() if before.waits_ms else after.waits_ms,
        ends_ms=source.removable_ms(after) if source.rescues else None,
    )
