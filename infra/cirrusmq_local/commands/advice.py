"""Compares two ways of paying for DynamoDB's units, from the units used in each minute. Pure.

Auto scaling is simulated minute by minute, as Amazon documents it: capacity rises after two minutes
above the target, and falls after fifteen minutes below the target minus 20 %, at most
four times a day and then once an hour. Capacity does not fall if no unit is used, because then
CloudWatch has no figure. Unused units are kept for five minutes, and serve later peaks (burst).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from cirrusmq_local.commands import prices

MINUTE_SECONDS = 60
BURST_SECONDS = 300
MINUTES_UP, MINUTES_DOWN = 2, 15
BELOW_TARGET = 0.2
FREE_DECREASES, DAY_MINUTES, HOUR_MINUTES = 4, 1_440, 60
ROUNDED_TO = 50


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Settings of auto scaling: units a second, and the target share of used units."""

    least: int
    limit: int
    target: float = 0.7


@dataclass(frozen=True, kw_only=True)
class Held:
    """Result of the simulation: capacity and throttled units."""

    unit_hours: int
    """Sum of the highest capacity of each hour. AWS bills this."""
    throttled: float
    """Units above the capacity and the burst, which would be throttled."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Dollars for the same minutes, by both ways of paying."""

    hours: int
    on_demand: float
    provisioned: float
    used: float
    """Share of the paid write units that were used."""
    throttled: float
    """Share of all units that would have been throttled at first."""
    bounds: tuple[Bounds, Bounds]
    """Settings of auto scaling for reads and for writes."""

    @property
    def cheaper(self) -> str:
        """The value of the parameter Capacity."""
        return "provisioned" if self.provisioned < self.on_demand else "on-demand"


@dataclass(kw_only=True)
class _Scaling:
    """The state of auto scaling in one minute."""

    bounds: Bounds
    capacity: int
    kept: float = 0.0
    throttled: float = 0.0
    above: int = 0
    below: int = 0
    decreases: list[int] = field(default_factory=list)

    def pass_minute(self, minute: int, units: float) -> None:
        """Serve the units of one minute, then scale."""
        room = self.capacity * MINUTE_SECONDS
        left = self.kept + room - units
        self.throttled += max(0.0, -left)
        self.kept = min(max(0.0, left), float(self.capacity * BURST_SECONDS))
        target = self.bounds.target
        used = units / room
        self.above = self.above + 1 if used > target else 0
        if units:  # without any there is no figure, and the alarm waits
            self.below = self.below + 1 if used < target - BELOW_TARGET else 0
        wanted = _whole(units / MINUTE_SECONDS / target)
        wanted = min(max(wanted, self.bounds.least), self.bounds.limit)
        if self.above >= MINUTES_UP:
            self.capacity, self.above = max(self.capacity, wanted), 0
        elif units and self.below >= MINUTES_DOWN and self._may_fall(minute):
            if wanted < self.capacity:
                self.decreases.append(minute)
                self.capacity = wanted
            self.below = 0

    def _may_fall(self, minute: int) -> bool:
        day = minute // DAY_MINUTES
        today = [each for each in self.decreases if each // DAY_MINUTES == day]
        return len(today) < FREE_DECREASES or minute - today[-1] >= HOUR_MINUTES


def scaled(minutes: Sequence[float], bounds: Bounds, first_minute: int = 0) -> Held:
    """Simulate auto scaling over the units of each minute; `first_minute` counts from the epoch."""
    scaling = _Scaling(bounds=bounds, capacity=bounds.least)
    hours: dict[int, int] = {}
    for number, units in enumerate(minutes, first_minute):
        hour = number // HOUR_MINUTES
        hours[hour] = max(hours.get(hour, 0), scaling.capacity)
        scaling.pass_minute(number, units)
        hours[hour] = max(hours[hour], scaling.capacity)
    return Held(unit_hours=sum(hours.values()), throttled=scaling.throttled)


def advise(
    units: Mapping[int, tuple[float, float]], least: tuple[int, int], others: tuple[int, int]
) -> Advice:
    """Compare both ways for a table, by its (write units, read units) of each minute.

    `least`: its lowest (read, write) capacity; `others`: the capacity of the other tables, which
    are paid in the same way and hardly used. Whole hours are compared.
    """
    first = min(units) // HOUR_MINUTES * HOUR_MINUTES
    hours = max(units) // HOUR_MINUTES + 1 - first // HOUR_MINUTES
    span = range(first, first + hours * HOUR_MINUTES)
    writes = [units.get(minute, (0.0, 0.0))[0] for minute in span]
    reads = [units.get(minute, (0.0, 0.0))[1] for minute in span]
    bounds = _bounds(reads, least[0]), _bounds(writes, least[1])
    held = scaled(reads, bounds[0], first), scaled(writes, bounds[1], first)
    needed = sum(reads) + sum(writes)
    return Advice(
        hours=hours,
        on_demand=sum(writes) * prices.WRITE_UNITS_PER_MILLION / prices.MILLION
        + sum(reads) * prices.READ_UNITS_PER_MILLION / prices.MILLION,
        provisioned=(held[0].unit_hours + hours * others[0]) * prices.READ_UNIT_HOUR
        + (held[1].unit_hours + hours * others[1]) * prices.WRITE_UNIT_HOUR,
        used=sum(writes) / (held[1].unit_hours * HOUR_MINUTES * MINUTE_SECONDS),
        throttled=(held[0].throttled + held[1].throttled) / needed if needed else 0.0,
        bounds=bounds,
    )


def _bounds(minutes: Sequence[float], least: int) -> Bounds:
    """Capacities from `least` to twice the need of the busiest minute, in steps of 50."""
    target = Bounds.target
    peak = 2 * max(minutes) / MINUTE_SECONDS / target
    return Bounds(least=least, limit=max(least, _whole(peak / ROUNDED_TO) * ROUNDED_TO))


def _whole(units: float) -> int:
    """Round up, but ignore a rounding error of the division."""
    return ceil(round(units, 6))
