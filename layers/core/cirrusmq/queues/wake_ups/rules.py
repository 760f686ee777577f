"""Wake-ups: a send tells the receivers that wait which partition to look at.

A receiver that waits looks at each of up to four partitions in turn, soon enough. More of them are
too many to look at within a poll's units, so there it says that it waits, and looks at the source's
wake-ups instead, which are under one key:

    receiver   says that it waits until T ...... reads wake-ups ── looks at 7 ── receives
    sender           puts into partition 7 ── does anybody wait? ── wake-up 7

Nothing depends on wake-ups: a message without one is found by the turning looks at all partitions.
"""

from __future__ import annotations

from cirrusmq.base import limits
from cirrusmq.model.source import Source

FEW_PARTITIONS = 4
WAITS_MS = 30_000
"""A receiver that says so is believed to wait for so long; it says so again after half of it."""
LATE_MS = 2_000
"""No wake-up is written longer after its message than this."""
SEEN_MS = limits.CLOCK_SKEW_MS + LATE_MS
"""A wake-up's key may be so much older than the wake-up: the sender's clock may be behind."""


def in_use(partitions: int) -> bool:
    """Whether a queue with so many partitions has wake-ups."""
    return partitions > FEW_PARTITIONS


def wakes(source: Source) -> bool:
    """Whether sends wake a receiver that waits here.

    Receivers of their own and subscriptions get copies, for each of which a wake-up would be
    written: they have none.
    """
    return source.receiver is None and source.subscription is None and in_use(source.partitions)


def wake_up_key(moment_ms: int, partition: int, chance: str) -> str:
    """The sort key of a wake-up for a message that can be received from `moment_ms` on.

    `chance` tells two of one millisecond apart.
    """
    return f"{moment_ms:013d}#{partition}#{chance}"


def partition_in(key: str) -> int:
    """The partition in the sort key of a wake-up."""
    return int(key.split("#")[1])


def due_between(since_ms: int, now_ms: int) -> tuple[str, str]:
    """The sort keys between which there are the wake-ups that were due since then."""
    return f"{since_ms - SEEN_MS:013d}", f"{now_ms:013d}~"
