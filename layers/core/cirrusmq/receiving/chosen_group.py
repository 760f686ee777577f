"""The one group that a receive takes from, and the partitions that its messages may be in."""

from __future__ import annotations

import zlib

import msgspec

from cirrusmq.model.source import Source


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
