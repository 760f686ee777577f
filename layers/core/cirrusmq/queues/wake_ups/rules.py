"""Wake-ups: a send names a partition to the receivers that wait.

A receiver that waits polls each of up to four partitions in turn, soon enough. More of them are too
many to poll within a receive's units, so there it notes that it waits, and reads the source's
wake-ups instead, which are under one key:

    receiver   notes that it waits until T ..... reads wake-ups ── polls 7 ── receives
    sender           puts into partition 7 ── does anybody wait? ── wake-up 7

Nothing depends on wake-ups: a message without one is found by the polls of all partitions in turn.
"""

from __future__ import annotations

from cirrusmq.base import limits
from cirrusmq.model.source import Source

FEW_PARTITIONS = 4
WAITS_MS = 30_000
"""Time for which a receiver's note counts as a wait; it notes it again after half of it."""
LATE_MS = 2_000
"""No wake-up is written longer after its message than this."""
SEEN_MS = limits.CLOCK_SKEW_MS + LATE_MS
"""How much older a wake-up's key may be than the wake-up: the sender's clock may be behind."""


def in_use(partitions: int) -> bool:
    """Returns True if a queue with this number of partitions has wake-ups."""
    return partitions > FEW_PARTITIONS


def wakes(source: Source) -> bool:
    """Returns True if sends wake a receiver that waits here.

    Receivers as sources, and subscriptions, get copies, each of which would need a wake-up: they
    have none.
    """
    return source.receiver is None and source.subscription is None and in_use(source.partitions)


def wake_up_key(moment_ms: int, partition: int, chance: str) -> str:
    """Returns the sort key of a wake-up for a message that can be received from `moment_ms` on.

    chance: makes the keys of one millisecond differ.
    """
    return f"{moment_ms:013d}#{partition}#{chance}"


def partition_in(key: str) -> int:
    """Returns the partition in the sort key of a wake-up."""
    return int(key.split("#")[1])


def due_between(since_ms: int, now_ms: int) -> tuple[str, str]:
    """Returns the sort keys between which the wake-ups are that were due since then."""
    return f"{since_ms - SEEN_MS:013d}", f"{now_ms:013d}~"
