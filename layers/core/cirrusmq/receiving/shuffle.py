"""The choices of a receive: its nonces, its partitions in order, the group it begins at or is for.

With an attempt all of it derives from the attempt: the nonces, so that a repeat knows what the
first receive took; the order, so that it polls the partitions that the first one polled.
"""

from __future__ import annotations

import random
import zlib

import msgspec

from cirrusmq.base.request_token import check_attempt
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.receipt import NONCE_BYTES
from cirrusmq.model.source import Source
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.secret import derive

_RING_BITS = 96


class ChosenGroup(msgspec.Struct, frozen=True):
    """A group of an ordered or a fair source, by its hash of 24 hex digits."""

    hash: str

    @property
    def prefix(self) -> str:
        """The beginning of its messages' keys."""
        return f"{self.hash}#"

    def partitions(self, source: Source) -> list[int]:
        """The partitions that have its messages: one, unless a fair queue has got more.

        A message stays where the number of partitions put it that was in force when it was sent,
        for as long as it lives; the numbers themselves are kept for minutes.
        """
        if source.ordered:
            return [zlib.crc32(self.hash.encode()) % source.partitions]
        number = zlib.crc32(self.prefix.encode())
        counts = range(source.partitions, 0, -1) if source.grown else (source.partitions,)
        return list(dict.fromkeys(number % count for count in counts))


class RandomOrder:
    """The choices of one receive."""

    def __init__(
        self,
        core: Core,
        owner_id: str,
        key_id: str,
        attempt: str | None,
        group: ChosenGroup | None = None,
    ) -> None:
        """Raises InvalidParameter if the attempt is not fresh."""
        self.group = group
        """The only group that it takes from; None: any."""
        self._random: random.Random = core.random
        self._secret, self._parts = b"", (key_id, owner_id, attempt or "")
        self.begun_ms = 0
        """When the client began, by its own clock, the first receive of the attempt; 0 without."""
        if attempt is not None:
            self.begun_ms = check_attempt(attempt, core.now_ms(), core.clock.scale)
            # The secret of the attempt's time, so that a repeat after a rotation derives the same.
            self._secret = core.secret.key_at(self.begun_ms)
            self._random = random.Random(self._derived("order"))
        self.ring_start = f"{self._random.getrandbits(_RING_BITS):024x}"
        """A place among the hashes of groups: 24 hex digits."""
        if group is not None:
            self.ring_start = group.hash
        self._order: list[int] = []

    def nonce_of(self, parcel: Parcel, index: int, receive_count: int) -> bytes:
        """Returns the nonce of the receipt of a message's claim."""
        if self._secret:
            return self._derived(f"{parcel.sort_key}#{index}#{receive_count}")
        return self._random.getrandbits(8 * NONCE_BYTES).to_bytes(NONCE_BYTES, "big")

    def partitions(self, source: Source) -> list[int]:
        """Returns a source's partitions in the receive's order, later ones behind the others."""
        if self.group is not None:
            return self.group.partitions(source)
        count = source.partitions
        more = list(range(len(self._order), count))
        self._random.shuffle(more)
        self._order += more
        return self._order

    def _derived(self, message: str) -> bytes:
        """Returns what the attempt's key and text always lead to: 16 bytes."""
        return derive(self._secret, *self._parts, message)[:NONCE_BYTES]
