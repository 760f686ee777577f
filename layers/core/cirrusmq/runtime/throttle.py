"""One environment's counts of each account's calls, and its share of the rate."""

from __future__ import annotations

import threading

import msgspec

_MOST_ACCOUNTS = 10_000
_COUNTED_FOR_SECONDS = 2
"""An older count says nothing about the present rate."""
_KEPT_SHARE_SECONDS = 10
"""A share outlives a counter that fails for so long."""
_THROTTLED_PART = 1_000
"""A throttled item took about as many reports of other environments in that second."""


class Count(msgspec.Struct, frozen=True):
    """Calls of an account that one environment saw in a second."""

    second: int
    calls: int


class _Tally:
    def __init__(self, second: int, share: int) -> None:
        self.second = second
        self.share = share
        self.fair_share = float(share)
        self.failing_since: int | None = None
        self.calls = 0
        self.admitted = 0


class Throttle:
    """One environment's counts by account, and the calls that it lets through."""

    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}
        self._lock = threading.Lock()

    def turn(self, account: str, second: int, rate: int) -> Count | None:
        """Begin a second; answers an earlier one's count to report, to one caller alone."""
        with self._lock:
            last = self._tallies.get(account)
            if last is not None and last.second >= second:
                return None
            recent = last is not None and last.second >= second - _COUNTED_FOR_SECONDS
            if len(self._tallies) >= _MOST_ACCOUNTS:
                self._tallies.clear()
            # Until the counter answers, concurrent calls use the share of before.
            share = last.share if last is not None and recent else rate
            tally = self._tallies[account] = _Tally(second, share)
            if last is not None and recent:
                tally.fair_share, tally.failing_since = last.fair_share, last.failing_since
            return Count(last.second, last.calls) if last is not None and recent else None

    def set_share(self, account: str, share: int) -> None:
        """How many calls may pass in the present second."""
        with self._lock:
            if account in self._tallies:
                tally = self._tallies[account]
                tally.share, tally.fair_share, tally.failing_since = share, float(share), None

    def refused(self, account: str, rate: int, chance: float) -> None:
        """The counter is throttled: about 1,000 others reported, so a thousandth of the rate."""
        with self._lock:
            if account in self._tallies:
                tally = self._tallies[account]
                tally.fair_share = min(tally.fair_share, rate / _THROTTLED_PART)
                tally.share, tally.failing_since = _whole(tally.fair_share, chance), None

    def failed(self, account: str, rate: int) -> None:
        """The counter did not answer: the last share for 10 seconds, then the whole rate."""
        with self._lock:
            tally = self._tallies.get(account)
            if tally is None:
                return
            if tally.failing_since is None:
                tally.failing_since = tally.second
            if tally.second - tally.failing_since >= _KEPT_SHARE_SECONDS:
                tally.share, tally.fair_share = rate, float(rate)

    def take(self, account: str) -> bool:
        """Count a call; whether it may pass."""
        with self._lock:
            tally = self._tallies.get(account)
            if tally is None:
                return True
            tally.calls += 1
            if tally.admitted >= tally.share:
                return False
            tally.admitted += 1
            return True


def share_of(rate: int, calls: int, demand: int, chance: float) -> int:
    """How many calls may pass where `calls` of all `demand` arrived; `chance` is from 0 to 1.

    A fraction of a call is one call, so often: a thousand environments with one call each let
    half of them through for a rate of 500.
    """
    if demand <= rate:
        return rate
    return _whole(rate * calls / demand, chance)


def _whole(share: float, chance: float) -> int:
    return int(share) + (chance < share % 1)
