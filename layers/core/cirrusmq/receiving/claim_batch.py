"""Filling the batch of one receive: reserving messages, and claiming them, until it is full."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cirrusmq.base import limits
from cirrusmq.base.errors import Unavailable
from cirrusmq.model.message import answer_too_large
from cirrusmq.model.parcel import Parcel
from cirrusmq.receiving.claim import Claim, NonceOf


class ReceiveLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The messages that one receive asks for."""

    most: int
    timeout_seconds: int | None
    nonce_of: NonceOf
    answer_bytes: int
    """Bytes of JSON that several messages may have together."""
    alone_bytes: int
    """Bytes that one may have which is alone: more, where the answer may be gzipped."""
    begun: bool = False
    """Whether the answer has messages already, so that none is alone."""

    def behind(self, count: int, used_bytes: int) -> ReceiveLimits:
        """What is still wanted when the answer has so many messages: none of it is alone."""
        left_bytes = self.answer_bytes - used_bytes
        return msgspec.structs.replace(
            self, most=self.most - count, answer_bytes=left_bytes, begun=True
        )

    @property
    def full(self) -> bool:
        """Whether an answer has no room for more."""
        return self.most <= 0 or self.answer_bytes <= 0

    @property
    def largest_bytes(self) -> int:
        """Bytes of the largest message that such a receive can bring, with nothing beside it."""
        return max(limits.ANSWER_BYTES, self.alone_bytes)

    @property
    def reach(self) -> str:
        """A word for the receives that can bring the same messages; empty if they bring all."""
        if self.alone_bytes >= limits.LARGEST_ANSWER_BYTES:
            return ""
        return "event" if self.alone_bytes == limits.CALLED_BYTES else "plain"


class Batch(msgspec.Struct):
    """The messages of one receive: claimed, or reserved while they are being claimed."""

    wanted: ReceiveLimits
    claims: list[Claim] = []
    count: int = 0
    bytes: int = 0
    most: int = 0
    """As many messages as may be reserved now: all that are wanted, or up to a group's share."""
    refused: Unavailable | None = None
    """The store's refusal of a claim or a page, if there was one."""
    in_order: bool = False
    """Whether nothing behind a message may be reserved that is not itself."""
    passed: dict[str, tuple[Parcel, int]] = {}
    """Messages that no answer to this receive holds, by their ids and keys: parcels and places."""

    def __post_init__(self) -> None:
        self.most = self.wanted.most

    def reserve(self, parcel: Parcel, places: Sequence[int]) -> list[int]:
        """The first of `places` that still fit into the answer; they count as taken from now.

        Messages that no answer holds are passed over, but not in an order.
        """
        chosen: list[int] = []
        for place in places:
            if self.count >= self.most:
                break
            size = parcel.answer_bytes(place)
            if size > self.wanted.alone_bytes:
                self._pass_over(parcel, place)
                if self.in_order:
                    break
                continue
            alone = not (self.count or self.wanted.begun)
            if self.bytes + size > self.wanted.answer_bytes and not alone:
                break
            chosen.append(place)
            self.bytes += size
            self.count += 1
        return chosen

    def holds_any(self, parcel: Parcel, places: Sequence[int]) -> bool:
        """Whether an answer to this receive holds one of the messages at `places`."""
        if any(parcel.answer_bytes(place) <= self.wanted.alone_bytes for place in places):
            return True
        for place in places:
            self._pass_over(parcel, place)
        return False

    def _pass_over(self, parcel: Parcel, place: int) -> None:
        self.passed[f"{parcel.message_id(place)} {parcel.sort_key}"] = parcel, place

    def note(
        self, parcel: Parcel, places: Sequence[int], outcome: Claim | Parcel | Unavailable | None
    ) -> bool:
        """Keep the claim of reserved messages, or undo the reservation; whether it was made."""
        if isinstance(outcome, Claim):
            self.claims.append(outcome)
            return True
        self.count -= len(places)
        self.bytes -= sum(map(parcel.answer_bytes, places))
        if isinstance(outcome, Unavailable):
            self.refused = outcome
        return False

    def claimed(self) -> list[Claim]:
        """The claims. Where there are none, raises Unavailable if the store refused, and
        MessageTooLarge if there is a message that no answer holds; it is not claimed."""
        if self.refused is not None and not self.claims:
            raise self.refused
        if self.passed and not self.claims:
            parcel, place = next(iter(self.passed.values()))
            size, most = parcel.answer_bytes(place), self.wanted.alone_bytes
            raise answer_too_large(size, most, parcel.message_id(place))
        return self.claims

    @property
    def ends(self) -> bool:
        """Whether no further page is read: something is claimed, or was refused."""
        return bool(self.claims or self.refused is not None)

    @property
    def full(self) -> bool:
        """Whether nothing more is wanted."""
        return self.count >= self.most or self.bytes >= self.wanted.answer_bytes
