"""The system's randomness, read in advance."""

from __future__ import annotations

import os
import random
from collections import deque

_CHUNK_BYTES = 16
_CHUNKS = 256


class DrawnAhead(random.SystemRandom):
    """Random numbers from the system's randomness; each byte is used once.

    A system call for each number lets another thread run, and this one waits to run again: on one
    machine that costs more than the number. Not for a process that is copied while it runs, such
    as by a snapshot: the copies would draw the same numbers.
    """

    def __init__(self) -> None:
        super().__init__()
        # `pop` of a deque is atomic, also between threads.
        self._drawn: deque[bytes] = deque()

    def random(self) -> float:
        """Returns a number from 0.0 to below 1.0."""
        return self.getrandbits(53) * 2.0**-53

    def getrandbits(self, k: int) -> int:
        """Returns an integer of `k` random bits."""
        if k < 0:
            raise ValueError("a number of bits is not negative")
        size = (k + 7) // 8
        return int.from_bytes(self.randbytes(size)) >> (size * 8 - k)

    def randbytes(self, n: int) -> bytes:
        """Returns `n` random bytes."""
        if n > _CHUNK_BYTES:
            return os.urandom(n)
        try:
            return self._drawn.pop()[:n]
        except IndexError:
            drawn = os.urandom(_CHUNKS * _CHUNK_BYTES)
            self._drawn.extend(
                drawn[start : start + _CHUNK_BYTES] for start in range(0, len(drawn), _CHUNK_BYTES)
            )
            return os.urandom(n)
