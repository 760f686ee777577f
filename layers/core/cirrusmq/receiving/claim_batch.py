"""The batch of one receive: reserves messages, and keeps their claims, until it is full."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cirrusmq.base import limits
from cirrusmq.base.errors import Unavailable
from cirrusmq.model.message import answer_too_large
from cirrusmq.model.parcel import Parcel
from cirrusmq.receiving.claim import Claim, NonceOf


class ReceiveLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one receive: its messages, their bytes and their leases."""

    limit: int
    timeout_seconds: int | None
    nonce_of: NonceOf
    answer_bytes: int
    """Bytes of JSON that several messages may have together."""
    alone_bytes: int
    """Bytes that a single message may have: more than several, if the answer may be gzipped."""
    begun: bool = False
    """True if the answer has messages already, so that none is alone."""

    def behind(self, count: int, used_bytes: int) -> ReceiveLimits:
        """Returns the limits for the rest of an answer that has `count` messages already."""
        left_bytes = self.answer_bytes - used_bytes
        return msgspec.structs.replace(
            self, limit=self.limit - count, answer_bytes=left_bytes, begun=True
        )

    @property
    def full(self) -> bool:
        """True if an answer has no room for another message."""
        return self.limit <= 0 or self.answer_bytes <= 0

    @property
    def largest_bytes(self) -> int:
        """Bytes of the largest message that such a receive can return, with nothing beside it."""
        return max(limits.ANSWER_BYTES, self.alone_bytes)

    @property
    def reach(self) -> str:
        """A word for the receives that can return the same messages; empty if they return all."""
        if self.alone_bytes >= limits.LARGEST_ANSWER_BYTES:
            return ""
        return "event" if self.alone_bytes == limits.CALLED_BYTES else "plain"


class Batch(msgspec.Struct):
    """The messages of one receive: claimed, or reserved while they are being claimed."""

    wanted: ReceiveLimits
    pk: str = ""
    """Partition key of the parcels that it claims from; empty if they are of several."""
    claims: list[Claim] = []
    count: int = 0
    bytes: int = 0
    limit: int = 0
    """Messages that may be reserved now: all that are wanted, or up to a group's share."""
    refused: Unavailable | None = None
    """The store's refusal of a claim or a page, if there was one."""
    in_order: bool = False
    """True for an ordered source: nothing behind a message that is passed over may be reserved."""
    passed: dict[str, tuple[Parcel, int]] = {}
    """Messages that no answer to this receive can hold, by id and key, with parcel and index."""

    def __post_init__(self) -> None:
        self.limit = self.wanted.limit

    def reserve(self, parcel: Parcel, indexes: Sequence[int]) -> list[int]:
        """Reserves the first of `indexes` that still fit into the answer, and returns them.

        Messages that no answer can hold are passed over; in an ordered source the first ends it.
        """
        chosen: list[int] = []
        for index in indexes:
            if self.count >= self.limit:
                break
            size = parcel.answer_bytes(index)
            if size > self.wanted.alone_bytes:
                self._pass_over(parcel, index)
                if self.in_order:
                    break
                continue
            alone = not (self.count or self.wanted.begun)
            if self.bytes + size > self.wanted.answer_bytes and not alone:
                break
            chosen.append(index)
            self.bytes += size
            self.count += 1
        return chosen

    def holds_any(self, parcel: Parcel, indexes: Sequence[int]) -> bool:
        """Returns True if an answer to this receive can hold one of the messages at `indexes`."""
        if any(parcel.answer_bytes(index) <= self.wanted.alone_bytes for index in indexes):
            return True
        for index in indexes:
            self._pass_over(parcel, index)
        return False

    def _pass_over(self, parcel: Parcel, index: int) -> None:
        self.passed[f"{parcel.message_id(index)} {parcel.sort_key}"] = parcel, index

    def note(
        self, parcel: Parcel, indexes: Sequence[int], outcome: Claim | Parcel | Unavailable | None
    ) -> bool:
        """Keeps the claim of reserved messages, or undoes their reservation. Returns True if
        kept."""
        if isinstance(outcome, Claim):
            self.claims.append(outcome)
            return True
        self.count -= len(indexes)
        self.bytes -= sum(map(parcel.answer_bytes, indexes))
        if isinstance(outcome, Unavailable):
            self.refused = outcome
        return False

    def claimed(self) -> list[Claim]:
        """Returns the claims. Without any, raises Unavailable if the store refused one, and
        MessageTooLarge if a message was passed over, which stays unclaimed."""
        if self.refused is not None and not self.claims:
            raise self.refused
        if self.passed and not self.claims:
            parcel, index = next(iter(self.passed.values()))
            size, limit = parcel.answer_bytes(index), self.wanted.alone_bytes
            raise answer_too_large(size, limit, parcel.message_id(index))
        return self.claims

    @property
    def ends(self) -> bool:
        """True if no further page is to be read: something was claimed, or the store refused."""
        return bool(self.claims or self.refused is not None)

    @property
    def full(self) -> bool:
        """True if enough messages are reserved, or the answer has no room."""
        return self.count >= self.limit or self.bytes >= self.wanted.answer_bytes
