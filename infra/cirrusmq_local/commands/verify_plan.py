"""Prices of a run before it is made: an upper bound, by the published prices."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass

from cirrusmq_local.commands import prices
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.verifying.failing import SENDERS
from cirrusmq_local.verifying.run import MAX_AT_ONCE
from cirrusmq_local.verifying.wave import CALM_WAVES

PLAYED = 2
"""Waves in which a URL or a function is played."""
URLS = 4 * PLAYED
"""URLs and functions that ask this machine, twice two of each: each has its own senders."""
MIN_SHARE, MAX_SHARE = 0.4, 0.6
"""Share of a wave in which actors work; the rest is for making, draining and judging."""
REST_SECONDS = 12.0
"""The rest of a wave, if it is short: longer waves leave more to be received."""
CALLS_PER_SECOND = 4.0
"""Most calls of one actor: it waits between its steps."""
MESSAGES_PER_CALL = 1.0
"""Sent, in the mean over all calls."""
WRITES_PER_MESSAGE, READS_PER_CALL = 8.0, 2.0
"""Units: a message is sent, received, held or given back, and deleted; some are moved or copied."""
READS_PER_URL_SECOND = 40.0
"""Units that posters and workers read for a URL or function while it is played; up to 27 were."""
SECONDS_PER_CALL = 0.1
RECOVERY_SECONDS = 105.0
"""Time until the sweep finds a killed worker's messages, in each wave with functions and faults:
6 minutes took 9.5 on a quiet machine."""
GB = 0.5


@dataclass(frozen=True)
class Plan:
    """The most that a run does, and its price in an account."""

    scenes: int
    lasts_minutes: float
    """How long it takes, about: more than was asked for, if that is too short for its scenes."""
    play_seconds: float
    """Seconds of each scene."""
    calls: int
    messages: int
    write_units: int
    read_units: int
    dollars: float

    def as_dict(self) -> dict[str, float]:
        """The plan as the result shows it."""
        return asdict(self)


def plan(
    minutes: float, chosen: Collection[Scenario], urls: int = 0, *, kills: bool = False
) -> Plan:
    """The plan of a run of some scenes, and of some URLs and functions of this machine.

    kills: True if the service is killed.
    """
    waves = max(1, -(-len(chosen) // MAX_AT_ONCE))
    wave = 60 * minutes / waves
    seconds = round(min(MAX_SHARE * wave, max(MIN_SHARE * wave, wave - REST_SECONDS)), 1)
    lasts = max(minutes, waves * (seconds + REST_SECONDS) / 60)
    if kills:
        lasts += min(PLAYED, max(1, waves - CALM_WAVES)) * RECOVERY_SECONDS / 60
    lasts = round(lasts, 1)
    actors = sum(len(each.cast) for each in chosen) + SENDERS * urls
    calls = int(actors * seconds * CALLS_PER_SECOND)
    messages = int(calls * MESSAGES_PER_CALL)
    messages += int(SENDERS * urls * seconds * CALLS_PER_SECOND)  # two in each publish
    written, read = int(messages * WRITES_PER_MESSAGE), int(calls * READS_PER_CALL)
    read += int(urls * seconds * READS_PER_URL_SECOND)
    amount = dollars(written, read, calls)
    return Plan(len(chosen), lasts, seconds, calls, messages, written, read, round(amount, 4))


def dollars(written: float, read: float, calls: int) -> float:
    """Dollars for units and calls in an account."""
    amount = (
        written * prices.WRITE_UNITS_PER_MILLION
        + read * prices.READ_UNITS_PER_MILLION
        + calls * prices.HTTP_API_PER_MILLION
        + calls * prices.LAMBDA_REQUESTS_PER_MILLION
    ) / prices.MILLION
    return amount + calls * SECONDS_PER_CALL * GB * prices.LAMBDA_GB_SECOND
