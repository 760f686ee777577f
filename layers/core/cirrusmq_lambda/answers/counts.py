"""How many messages a queue or a receiver holds."""

from __future__ import annotations

from typing import Self

from cirrusmq.queues import counts
from cirrusmq_lambda.answers.body import Body


class Counts(Body):
    """Messages by state; exact up to 10,000."""

    active: int
    inactive: int
    delayed: int
    rewindable: int
    oldest_active_age_seconds: int

    @classmethod
    def of(cls, counted: counts.Counts, now_ms: int) -> Self:
        """The answer at a time; the age is 0 where nothing is active."""
        age_ms = 0 if counted.oldest_ms is None else now_ms - counted.oldest_ms
        return cls(
            active=counted.active,
            inactive=counted.inactive,
            delayed=counted.delayed,
            rewindable=counted.rewindable,
            oldest_active_age_seconds=age_ms // 1000,
        )
