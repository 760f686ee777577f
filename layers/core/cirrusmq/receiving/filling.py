"""Filling the batch of one receive: reserving messages, and claiming them, until it is full."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cirrusmq.base.errors import Unavailable
from cirrusmq.model.message import answer_too_large
from cirrusmq.model.parcel import Parcel
from cirrusmq.receiving.claim import Claim, NonceOf


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The messages that one receive asks for."""

    most: int
    timeout_seconds: int | None
    nonce_of: NonceOf
    answer_bytes: int
    """Bytes of JSON that several messages may have together."""
    alone_bytes: int
    """Bytes that one may have which is alone: more, where the answer may be gzipped."""

    def behind(self, count: int, used_bytes: int) -> Wanted:
        """What is still wanted when the answer has so many messages: none of it is alone."""
        left_bytes = self.answer_bytes - used_bytes
        return msgspec.structs.replace(
            self, most=self.most - count, answer_bytes=left_bytes, alone_bytes=left_bytes
        )

    @property
    def full(self) -> bool:
        """Whether an answer has no room for more."""
        return self.most <= 0 or self.answer_bytes <= 0


class Batch(msgspec.Struct):
    """The messages of one receive: claimed, or reserved while they are being claimed."""

    wanted: Wanted
    claims: list[Claim] = []
    count: int = 0
    bytes: int = 0
    most: int = 0
    """As many messages as may be reserved now: all that are wanted, or up to a group's share."""
    refused: Unavailable | None = None
    """The store's refusal of a claim or a page, if there was one."""
    too_large: int = 0
    """Bytes of the first message that is not reserved since no answer to this receive holds it."""

    def __post_init__(self) -> None:
        self.most = self.wanted.most

    def reserve(self, parcel: Parcel, places: Sequence[int]) -> list[int]:
        """The first of `places` that still fit into the answer; they count as taken from now."""
        chosen: list[int] = []
        for place in places[: self.most - self.count]:
            size = parcel.answer_bytes(place)
            if self.bytes + size > self.wanted.answer_bytes and (chosen or self.count):
                break
            if size > self.wanted.alone_bytes:
                self.too_large = self.too_large or size
                break
            chosen.append(place)
            self.bytes += size
        self.count += len(chosen)
        return chosen

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
        if self.too_large and not self.claims:
            raise answer_too_large(self.too_large, self.wanted.alone_bytes)
        return self.claims

    @property
    def full(self) -> bool:
        """Whether nothing more is wanted."""
        return self.count >= self.most or self.bytes >= self.wanted.answer_bytes
