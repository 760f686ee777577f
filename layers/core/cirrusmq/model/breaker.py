"""`breaker` of a URL: posts stop while most of them fail, and one message at a time is tried.

    closed   20 outcomes or more in a minute, and `share` of them failed ──> open
    open     one message after 1 s, then 2, 4 … 60 s ── it succeeds ──> closed, counts are cleared

The outcomes are in six parts of ten seconds, so that the state has a bounded size.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from cirrusmq.base import limits

OUTCOMES = 20
"""Fewest outcomes of a minute that open it."""
PART_MS = 10_000
PARTS = 6
"""Parts that are counted together: a minute, of which the last part has just begun."""
FIRST_WAIT_MS = 1_000
LONGEST_WAIT_MS = 60_000
_DOUBLINGS = 6
"""Doublings after which a wait is the longest."""


class Breaker(msgspec.Struct, frozen=True):
    """When posts stop: the share of a minute's outcomes that failed."""

    share: float = limits.BREAKER_SHARE_DEFAULT


class BreakerInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A `breaker` as a caller gives it; members that are not given are UNSET."""

    share: (
        Annotated[
            float,
            Meta(
                ge=limits.BREAKER_SHARE[0],
                le=limits.BREAKER_SHARE[1],
                description="a number from 0.1 to 1",
            ),
        ]
        | UnsetType
    ) = UNSET

    def chosen(self) -> Breaker:
        """Returns the given values over the defaults."""
        return Breaker() if isinstance(self.share, UnsetType) else Breaker(self.share)


class Circuit(msgspec.Struct, frozen=True):
    """The state of a breaker. Times are in milliseconds since the epoch."""

    opened_ms: int = 0
    """Since when it is open; 0 if it is closed."""
    probe_ms: int = 0
    """Open: before this time no message is tried."""
    failed_probes: int = 0
    """Open: how many messages were tried in vain."""
    error: str = ""
    """Open: why the newest post failed."""
    counts: tuple[tuple[int, int, int], ...] = ()
    """Closed: (number of the part, successes, failures), the oldest part first."""

    @property
    def is_open(self) -> bool:
        """True if at most one message at a time is posted."""
        return self.opened_ms > 0


def after_post(circuit: Circuit, breaker: Breaker, now_ms: int, error: str | None) -> Circuit:
    """Returns the state after an outcome of a closed breaker; an open one does not change.

    in flight as it opens   m1 fails: open ── m2 succeeds: it began before, and closes nothing
    """
    if circuit.is_open:
        return circuit
    part = now_ms // PART_MS
    counts = {each[0]: each for each in circuit.counts if part - PARTS < each[0] <= part + 1}
    _, succeeded, failed = counts.get(part, (part, 0, 0))
    counts[part] = (part, succeeded + (error is None), failed + (error is not None))
    failures = sum(each[2] for each in counts.values())
    outcomes = failures + sum(each[1] for each in counts.values())
    if error is not None and outcomes >= OUTCOMES and failures >= breaker.share * outcomes:
        return Circuit(opened_ms=now_ms, probe_ms=now_ms + FIRST_WAIT_MS, error=error)
    return Circuit(counts=tuple(sorted(counts.values())[-PARTS:]))


def after_probe(circuit: Circuit, now_ms: int, error: str | None, asked_ms: int = 0) -> Circuit:
    """Returns the state after the message that an open breaker tried.

    asked_ms: how long the subscriber asked to wait by `Retry-After`.
    """
    if error is None:
        return Circuit()
    failed = circuit.failed_probes + 1
    wait_ms = min(FIRST_WAIT_MS << min(failed, _DOUBLINGS), LONGEST_WAIT_MS)
    return replace(
        circuit,
        probe_ms=now_ms + max(wait_ms, asked_ms),
        failed_probes=failed,
        error=error,
    )


def packed(circuit: Circuit) -> tuple[int, ...]:
    """Returns the numbers of a state, as an item keeps them."""
    counts = (number for part in circuit.counts for number in part)
    return circuit.opened_ms, circuit.probe_ms, circuit.failed_probes, *counts


def unpack(numbers: tuple[int, ...], error: str) -> Circuit:
    """Returns the state of these numbers; a closed one without outcomes if there are none."""
    if len(numbers) < 3:
        return Circuit()
    rest = numbers[3:]
    parts = zip(rest[::3], rest[1::3], rest[2::3], strict=False)
    return Circuit(numbers[0], numbers[1], numbers[2], error, tuple(parts))
