"""Calls that settle messages by their receipts: reading the request, and the result for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from cirrusmq.base import limits
from cirrusmq.base.errors import BatchTooLarge, CirrusMQError, ReceiptExpired
from cirrusmq.model.receipt import Receipt, decode
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed, Item, key
from cirrusmq.storage.changes import Condition, all_of, having
from cirrusmq.storage.parcels import PARCELS, partition_key, read_parcel

ReceiptText: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.RECEIPT_CHARACTERS,
        description="a receipt of 1 to 2,048 characters",
    ),
]
Receipts: TypeAlias = Annotated[
    list[ReceiptText], Meta(min_length=1, description="an array of 1 to 16 receipts")
]
SourceOf = Callable[[str], Source | None]
"""Returns the source of this id, or None if the call may not settle its messages."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A message as its receipt names it."""

    text: str
    receipt: Receipt
    source: Source

    @property
    def pk(self) -> str:
        """The partition of its parcel."""
        return partition_key(PARCELS, self.receipt.source_id, self.receipt.partition)

    @property
    def key(self) -> Item:
        """The key of its parcel's item."""
        return key(self.pk, self.receipt.sort_key)


Results = dict[str, "CirrusMQError | int"]
"""The result for each receipt: an error, or the time from which it can be received again."""


def check_count(entries: Sequence[object]) -> None:
    """Raises BatchTooLarge for more than 16 entries."""
    if len(entries) > limits.BATCH_MESSAGES:
        raise BatchTooLarge(f"a call has 1 to {limits.BATCH_MESSAGES} receipts")


def settle(
    core: Core,
    texts: Sequence[str],
    source_of: SourceOf,
    act: Callable[[Core, Sequence[Held]], Results],
) -> Results:
    """Lets `act` settle the messages of each parcel. Returns the results in the order asked.

    A text that is no receipt of ours, or one of another queue, gets ReceiptExpired, as a stale one.
    """
    check_count(texts)
    sources: dict[str, Source | None] = {}
    parcels: dict[tuple[str, str, int, int], list[Held]] = {}
    for text in dict.fromkeys(texts):
        receipt = decode(text)
        if receipt is None:
            continue
        if receipt.source_id not in sources:
            sources[receipt.source_id] = source_of(receipt.source_id)
        source = sources[receipt.source_id]
        if source is None:
            continue
        held = Held(text=text, receipt=receipt, source=source)
        # Receipts of an earlier parcel under this key have a different condition.
        parcel = (held.pk, receipt.sort_key, receipt.expires_ms, receipt.count)
        parcels.setdefault(parcel, []).append(held)
    results: Results = {}
    for some in core.in_parallel(lambda together: act(core, together), parcels.values()):
        results |= some
    return {text: results.get(text, ReceiptExpired()) for text in dict.fromkeys(texts)}


def holds_still(held: Held, now_ms: int) -> Condition:
    """Returns the condition under which a receipt is valid for its message.

    The receipt is the newest (its nonce), of a message still there (not deleted, moved, expired
    or purged). If a retry's wait follows, a lease that ran out has passed into it; without one the
    receipt may still be used.
    """
    receipt, index = held.receipt, held.receipt.place
    parcel = Condition(
        ("x = :expires", "size(v) = :count", "t > :purged"),
        {
            ":expires": {"N": str(receipt.expires_ms)},
            ":count": {"N": str(receipt.count)},
            ":purged": {"N": str(held.source.purged_ms)},
        },
    )
    if held.source.ends_ms is not None:
        parcel = all_of([parcel, _kept(held, held.source.ends_ms)])
    live = Condition(
        (
            f"v[{index}] > :none",
            f"(attribute_not_exists(w) OR w[{index}] = :none OR v[{index}] > :now)",
        ),
        {":none": {"N": "0"}, ":now": {"N": str(now_ms)}},
    )
    return all_of([parcel, having("nonces", {index: receipt.nonce}), live])


def left_by_earlier_try(failed: ConditionFailed, held: Held, visible_ms: int, nonce: bytes) -> bool:
    """Returns True if an earlier try of this very call left the message in this state."""
    if not failed.repeated or failed.item is None:
        return False
    parcel, index = read_parcel(failed.item), held.receipt.place
    same = index < parcel.count and parcel.nonces[index] == nonce
    return same and parcel.visible_ms[index] == visible_ms


def _kept(held: Held, ends_ms: int) -> Condition:
    """Returns the condition that a rewound group's former source keeps the message."""
    ends, values = "t < :ends", {":ends": {"N": str(ends_ms)}}
    if held.source.ordered:  # where the key does not have the parcel's id
        clause = f"({ends} OR contains(i, :dot))"
        return Condition((clause,), values | {":dot": {"S": "."}})
    alone = held.receipt.sort_key.count(".") == 2
    return Condition((), {}) if alone else Condition((ends,), values)


def expired(held: Held, now_ms: int) -> bool:
    """Returns True if the message's life is over by its receipt, which a condition compares."""
    return now_ms >= held.receipt.expires_ms
