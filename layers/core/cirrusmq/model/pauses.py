"""When a queue or receiver was paused: its messages do not age in that time.

    sent ──── 10 min ──── paused ──── 3 h ──── resumed ──── 5 min ──── now        its age: 15 min

A pause is (from, until) in milliseconds since the epoch; until is 0 while it lasts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from cirrusmq.base.limits import RETENTION_SECONDS

Pause: TypeAlias = tuple[int, int]
MAX_PAUSES = 32
"""Kept of a queue or receiver. Two that are older become one, as if it had not been resumed."""
_KEPT_MS = 1_000 * RETENTION_SECONDS[1]


def changed(pauses: Sequence[Pause], now_ms: int, *, paused: bool) -> list[Pause]:
    """Returns the pauses once one has begun, or the last one has ended, if that is a change."""
    kept = [each for each in pauses if not each[1] or each[1] > now_ms - _KEPT_MS]
    lasts = bool(kept) and not kept[-1][1]
    if paused and not lasts:
        kept.append((now_ms, 0))
    elif lasts and not paused:
        from_ms, _ = kept.pop()
        kept.append((from_ms, max(now_ms, from_ms + 1)))
    while len(kept) > MAX_PAUSES:
        kept = [(kept[0][0], kept[1][1]), *kept[2:]]
    return kept


def paused_ms(pauses: Sequence[Pause], since_ms: int, now_ms: int) -> int:
    """Returns how long of the time since a message was sent it was paused."""
    ends = ((max(since_ms, from_ms), until_ms or now_ms) for from_ms, until_ms in pauses)
    return sum(max(0, min(until, now_ms) - begin) for begin, until in ends)
