"""Counts of a queue's or a receiver's messages in answers."""

from __future__ import annotations

from typing import Annotated, Self, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from cirrusmq.queues import counts
from cirrusmq_lambda.answers.body import Body

Approximate: TypeAlias = (
    Annotated[
        bool,
        Meta(description="left out: exact; true: not all were read, the rest is counted late"),
    ]
    | UnsetType
)


class Counts(Body):
    """Messages by state."""

    active: int
    inactive: int
    delayed: int
    rewindable: int
    oldest_active_age_seconds: int
    active_by_priority: (
        Annotated[
            dict[str, int],
            Meta(
                description="with priorities: the active ones by priority; with approximate, those "
                "not read are parted by a count of each priority that may be a minute old"
            ),
        ]
        | UnsetType
    ) = UNSET
    approximate: Approximate = UNSET

    @classmethod
    def of(cls, counted: counts.Counts, now_ms: int) -> Self:
        """Returns the answer for counts at a time; the age is 0 if no message is active."""
        age_ms = 0 if counted.oldest_ms is None else now_ms - counted.oldest_ms
        return cls(
            active=counted.active,
            inactive=counted.inactive,
            delayed=counted.delayed,
            rewindable=counted.rewindable,
            oldest_active_age_seconds=age_ms // 1000,
            active_by_priority=_by_priority(counted),
            approximate=counted.approximate or UNSET,
        )


def _by_priority(counted: counts.Counts) -> dict[str, int] | UnsetType:
    if counted.by_priority is None:
        return UNSET
    levels = sorted(counted.by_priority.items(), reverse=True)
    return {str(priority): count for priority, count in levels}
