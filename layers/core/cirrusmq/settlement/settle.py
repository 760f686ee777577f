"""Calls that speak of messages by their receipts: reading the request, and one fate for each."""

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
from cirrusmq.storage.parcels import PARCELS, partition_key

ReceiptText: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.RECEIPT_CHARACTERS,
        description="a receipt of 1 to 2,048 characters",
    ),
]
SourceOf = Callable[[str], Source | None]
"""The source of this id, where the call may speak of its messages."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A message as its receipt names it."""

    text: str
    receipt: Receipt
    source: Source

    @property
    def pk(self) -> str:
        """The partition of its parcel."""
        return partition_key(PARCELS, self.receipt.source_id, self.receipt.partition)


Fate = dict[str, "CirrusMQError | int"]
"""For each receipt what came of it: an error, or the time from which it can be received again."""


def check_count(entries: Sequence[object]) -> None:
    """Raise BatchTooLarge for more than 16 entries."""
    if len(entries) > limits.BATCH_MESSAGES:
        raise BatchTooLarge(f"a call has 1 to {limits.BATCH_MESSAGES} receipts")


def settle(
    core: Core,
    texts: Sequence[str],
    source_of: SourceOf,
    act: Callable[[Core, Sequence[Held]], Fate],
) -> Fate:
    """Let `act` decide the fate of the messages of each parcel; answers it in the order asked.

    What is no receipt of ours, or of another queue, gets ReceiptExpired, as a stale one does.
    """
    check_count(texts)
    parcels: dict[tuple[str, str], list[Held]] = {}
    for text in dict.fromkeys(texts):
        receipt = decode(text)
        source = source_of(receipt.source_id) if receipt else None
        if receipt is None or source is None:
            continue
        held = Held(text=text, receipt=receipt, source=source)
        parcels.setdefault((held.pk, receipt.sort_key), []).append(held)
    fates: Fate = {}
    for fate in core.in_parallel(lambda together: act(core, together), parcels.values()):
        fates |= fate
    return {text: fates.get(text, ReceiptExpired()) for text in dict.fromkeys(texts)}


def holder_conditions(held: Held, now_ms: int, values: dict[str, dict[str, object]]) -> list[str]:
    """The conditions under which a receipt speaks for its message; fills in `values`.

    The receipt is the newest (its nonce), of a message still there (not deleted, moved, expired
    or purged). Where a retry's wait follows, a lease that ran out has passed into it; without one
    it may still be used.
    """
    place, source = held.receipt.place, held.source
    values |= {
        f":k{place}": {"B": held.receipt.nonce},
        f":n{place}": {"N": str(held.receipt.count)},
        f":x{place}": {"N": str(held.receipt.expires_ms)},
        ":none": {"N": "0"},
        ":now": {"N": str(now_ms)},
        ":purged": {"N": str(source.purged_ms)},
    }
    return [
        f"x = :x{place}",
        f"size(v) = :n{place}",
        "t > :purged",
        f"k[{place}] = :k{place}",
        f"v[{place}] > :none",
        f"(attribute_not_exists(w) OR w[{place}] = :none OR v[{place}] > :now)",
    ]


def expired(held: Held, now_ms: int) -> bool:
    """Whether the message's life is over, as its receipt has it (a condition compares it)."""
    return now_ms >= held.receipt.expires_ms
