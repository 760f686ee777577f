"""`breaker` of a URL or a function: while most messages fail, one at a time is tried.

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
    """When it opens: the share of a minute's outcomes that failed."""

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
    counts = {each[0]: each for each in _of_the_minute(circuit, now_ms)}
    _, succeeded, failed = counts.get(part, (part, 0, 0))
    counts[part] = (part, succeeded + (error is None), failed + (error is not None))
    known = tuple(sorted(counts.values()))
    if error is not None and must_open(Circuit(counts=known), breaker, now_ms):
        return opened(now_ms, error)
    return Circuit(counts=known[-PARTS:])


def must_open(circuit: Circuit, breaker: Breaker, now_ms: int) -> bool:
    """Returns True if the outcomes of the last minute open a closed breaker."""
    counts = _of_the_minute(circuit, now_ms)
    failures = sum(each[2] for each in counts)
    outcomes = failures + sum(each[1] for each in counts)
    return outcomes >= OUTCOMES and failures >= breaker.share * outcomes


def opened(now_ms: int, error: str) -> Circuit:
    """Returns the state of a breaker that opens now."""
    return Circuit(opened_ms=now_ms, probe_ms=now_ms + FIRST_WAIT_MS, error=error)


def wait_after(failed_probes: int) -> int:
    """Returns the milliseconds to the next try, after this number of tries that failed."""
    return min(FIRST_WAIT_MS << min(failed_probes, _DOUBLINGS), LONGEST_WAIT_MS)


def _of_the_minute(circuit: Circuit, now_ms: int) -> list[tuple[int, int, int]]:
    part = now_ms // PART_MS
    return [each for each in circuit.counts if part - PARTS < each[0] <= part + 1]


def after_probe(circuit: Circuit, now_ms: int, error: str | None, asked_ms: int = 0) -> Circuit:
    """Returns the state after the message that an open breaker tried.

    asked_ms: how long the subscriber asked to wait by `Retry-After`.
    """
    if error is None:
        return Circuit()
    failed = circuit.failed_probes + 1
    return replace(
        circuit,
        probe_ms=now_ms + max(wait_after(failed), asked_ms),
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
