"""One environment's counts of each account's calls, its reports of them, and its share of the rate.

An environment reports every `interval` seconds on average, 1, 2, 4 or 8: the more environments
there are, the longer. So one item takes the reports of thousands, at 400 writes a second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

INTERVALS = (1, 8)
"""Seconds between two reports, on average: the shortest and the longest. Each is a power of two."""
REPORTS_PER_SECOND = (100, 400)
"""Reports of all environments: the interval is halved below the first, doubled above the last."""
_MAX_ACCOUNTS = 10_000
_COUNTED_FOR_SECONDS = 2
"""An older count does not show the present rate, nor do two intervals without a call."""
_KEPT_SHARE_SECONDS = 10
"""Seconds for which a share stays in use while the counter fails."""
_THROTTLED_PART = 1_000
"""A throttled item took about as many reports of other environments in that second."""


class Count(msgspec.Struct, frozen=True):
    """Calls of an account that one environment saw since its last report."""

    second: int
    """The last second of the count."""
    calls: int
    """Calls, with the owed ones."""
    owed: int
    """Calls that count though they were never made, and are not worked off yet."""
    seconds: int
    """Seconds since the last report."""
    interval: int
    demand: float | None
    """All calls a second at the last report. None if none was made."""

    @property
    def calls_per_second(self) -> float:
        """The calls of one second."""
        return self.calls / self.seconds


class _Tally:
    def __init__(self, second: int, rate: int) -> None:
        self.second = second
        self.share = float(rate)
        """Calls a second that may pass."""
        self.allowed = rate
        """Calls that may pass in this second."""
        self.admitted = 0
        self.calls = 0
        """Since the last report."""
        self.since = second
        self.due = second + 1
        """The next report is made then."""
        self.interval = INTERVALS[0]
        self.demand: float | None = None
        self.failing_since: int | None = None
        self.owed = 0.0
        """Calls that count though they were never made, and are not worked off yet."""

    def owed_in(self, seconds: int) -> float:
        """Returns the calls owed after `seconds`: unused shares of the rate work them off."""
        left = max(0, self.allowed - self.admitted) + self.share * (seconds - 1)
        return max(0.0, self.owed - left)

    @property
    def counts_for(self) -> int:
        return max(_COUNTED_FOR_SECONDS, 2 * self.interval)


class Throttle:
    """One environment's counts by account, and the calls that it lets through."""

    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}
        self._lock = threading.Lock()

    def turn(self, account: str, second: int, rate: int, draw: Callable[[], float]) -> Count | None:
        """Begins a second. Returns the count that is to be reported now, to one caller alone.

        draw: a number from 0 to below 1, by which a fraction of a call is one call.
        """
        with self._lock:
            tally = self._tallies.get(account)
            if tally is not None and tally.second >= second:
                return None
            if tally is None or tally.second < second - tally.counts_for:
                if len(self._tallies) >= _MAX_ACCOUNTS:
                    self._tallies.clear()
                begun = self._tallies[account] = _Tally(second, rate)
                if tally is not None:
                    begun.owed = tally.owed_in(second - tally.second)
                return None
            owed, tally.owed = round(tally.owed), tally.owed_in(second - tally.second)
            tally.second, tally.admitted = second, 0
            # Until the counter answers, concurrent calls use the share of before.
            tally.allowed = _whole(tally.share, draw())
            if second < tally.due:
                return None
            seconds = second - tally.since
            calls = tally.calls + owed
            count = Count(second - 1, calls, owed, seconds, tally.interval, tally.demand)
            tally.calls, tally.since, tally.due = 0, second, second + 1
            return count

    def reported(
        self, account: str, share: float, demand: float, interval: int, chance: float
    ) -> None:
        """Notes an answer of the counter. share: calls a second that may pass from now on."""
        with self._lock:
            tally = self._tallies.get(account)
            if tally is None:
                return
            tally.demand, tally.failing_since = demand, None
            self._go_on(tally, share, interval, chance)

    def refused(self, account: str, count: Count, rate: int, chance: float) -> None:
        """Notes a throttled counter: about 1,000 others reported, so a thousandth of the rate.

        The count is kept for the next report, which is later.
        """
        with self._lock:
            tally = self._tallies.get(account)
            if tally is None:
                return
            tally.calls += count.calls - count.owed
            tally.since -= count.seconds
            tally.failing_since = None
            share = min(tally.share, rate / _THROTTLED_PART)
            self._go_on(tally, share, longer(tally.interval), chance)

    def failed(self, account: str, rate: int) -> None:
        """Notes a failed counter: the last share holds for 10 seconds, then the whole rate."""
        with self._lock:
            tally = self._tallies.get(account)
            if tally is None:
                return
            if tally.failing_since is None:
                tally.failing_since = tally.second
            if tally.second - tally.failing_since >= _KEPT_SHARE_SECONDS:
                tally.share, tally.allowed = float(rate), rate

    def take(self, account: str) -> bool:
        """Counts a call. Returns True if it may pass."""
        with self._lock:
            tally = self._tallies.get(account)
            if tally is None:
                return True
            tally.calls += 1
            if tally.admitted + tally.owed >= tally.allowed:
                return False
            tally.admitted += 1
            return True

    def owe(self, account: str, calls: float, limit: float) -> None:
        """Counts further calls of an account: later ones wait for them, at most `limit`."""
        with self._lock:
            tally = self._tallies.get(account)
            if tally is not None:
                tally.owed = min(tally.owed + calls, limit)

    @staticmethod
    def _go_on(tally: _Tally, share: float, interval: int, chance: float) -> None:
        tally.share, tally.allowed = share, _whole(share, chance)
        tally.interval = interval
        # From 1 to 2 * interval - 1 seconds, so that environments do not report together.
        tally.due = tally.second + 1 + int(chance * (2 * interval - 1))


def longer(interval: int) -> int:
    """Twice the interval, if it is not the longest."""
    return min(2 * interval, INTERVALS[-1])


def next_interval(interval: int, reports_per_second: float) -> int:
    """Returns the interval of an environment that sees these reports of all environments."""
    few, many = REPORTS_PER_SECOND
    if reports_per_second > many:
        return longer(interval)
    return max(interval // 2, INTERVALS[0]) if reports_per_second < few else interval


def fair_share(rate: int, calls: float, demand: float) -> float:
    """Returns the calls a second that may pass where `calls` of all `demand` a second arrived."""
    return float(rate) if demand <= rate else rate * calls / demand


def _whole(share: float, chance: float) -> int:
    """Rounds up if `chance` is below the fraction: a thousand environments with one call each let
    half of them through for a rate of 500."""
    return int(share) + (chance < share % 1)
