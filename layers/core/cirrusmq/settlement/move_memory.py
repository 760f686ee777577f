"""The number of given-back messages that an environment may still move in this second."""

from __future__ import annotations

import threading
from collections import defaultdict

import msgspec

from cirrusmq.base import limits


class _Moves(msgspec.Struct):
    left: float = limits.MOVES_PER_SECOND
    at_ms: int = 0


class MoveMemory:
    """Moves by partition key (`Q#<source id>#<partition>`). Safe to share between threads."""

    def __init__(self) -> None:
        self._moves: defaultdict[str, _Moves] = defaultdict(_Moves)
        self._lock = threading.Lock()

    def may_move(self, pk: str, now_ms: int) -> bool:
        """Takes one move of this second's budget. Returns False if none is left."""
        with self._lock:
            known = self._moves[pk]
            gained = max(0, now_ms - known.at_ms) * limits.MOVES_PER_SECOND / 1000
            moves = min(limits.MOVES_PER_SECOND, known.left + gained)
            known.left, known.at_ms = max(0.0, moves - 1), now_ms
            if moves < 1:
                known.left = moves
            return moves >= 1
