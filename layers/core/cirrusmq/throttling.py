"""Refusing calls of an account that makes too many, without a write for each call.

Every execution environment counts each account's calls by itself. At its first call of a second
it adds what it counted in the second before to a counter that all environments share, is answered
what all of them counted so far, and takes a share of the rate as large as its part of the calls:

    second           10                 11                        12
    environment A    40 calls           add 40 ──> 40 in all      add 40 ──> 120 and 40: 33 %
    environment B    80 calls           add 80 ──> 120 in all     add 80 ──> 120 and 120: 67 %

So the limit is approximate. What an environment lets through in its first second, and what a load
that grows brings within about two, comes on top; no environment by itself lets more through than
the whole rate. The second in which a minute begins knows only what was counted in it so far, and
may let more through as well. Refused calls count, so an account that goes on is held at its rate.

It costs, while an account calls, one write unit a second for each environment that it reaches, and
those calls wait for the write. A counter that fails refuses nobody. Without a rate nothing is
counted and nothing is written.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from cirrusmq.errors import Throttled
from cirrusmq.storage.store import key

if TYPE_CHECKING:
    from cirrusmq.core import Core

_MOST_ACCOUNTS = 10_000
_COUNTED_FOR_SECONDS = 2
"""What was counted longer ago says nothing about the present."""
_KEPT_SECONDS = 120


class Count(NamedTuple):
    """Calls of an account that one environment saw in a second."""

    second: int
    calls: int


class _Tally:
    def __init__(self, second: int, share: int) -> None:
        self.second = second
        self.share = share
        self.calls = 0
        self.admitted = 0


class Throttle:
    """What one environment counted, and how many calls it lets through."""

    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}
        self._lock = threading.Lock()

    def turn(self, account: str, second: int, rate: int) -> Count | None:
        """Begin a second; answers what is to be reported of an earlier one, to one caller alone."""
        with self._lock:
            last = self._tallies.get(account)
            if last is not None and last.second >= second:
                return None
            recent = last is not None and last.second >= second - _COUNTED_FOR_SECONDS
            if len(self._tallies) >= _MOST_ACCOUNTS:
                self._tallies.clear()
            # Until the answer is there, calls side by side go by the share of before.
            share = last.share if last is not None and recent else rate
            self._tallies[account] = _Tally(second, share)
            return Count(last.second, last.calls) if last is not None and recent else None

    def set_share(self, account: str, share: int) -> None:
        """How many calls may pass in the present second."""
        with self._lock:
            if account in self._tallies:
                self._tallies[account].share = share

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
    share = rate * calls / demand
    return int(share) + (chance < share % 1)


def admit(core: Core, account: str) -> None:
    """Count a call of the account; Throttled where it makes more than its rate."""
    rate = core.settings.account_requests_per_second
    if not rate:
        return
    ended = core.throttle.turn(account, core.now_ms() // 1000, rate)
    if ended is not None:
        demand = _report(core, account, ended)
        share = share_of(rate, ended.calls, demand, core.random.random())
        core.throttle.set_share(account, share)
    if not core.throttle.take(account):
        raise Throttled(f"account {account} makes more than {rate:,} calls a second")


def counter_place(account: str, second: int) -> tuple[str, str]:
    """Key in the Usage table of an account's calls in the minute of that second."""
    return f"T#{account}", str(second // 60)


def _report(core: Core, account: str, ended: Count) -> int:
    """Add a count to those of the other environments; answers the calls a second of all."""
    name = str(ended.second % 60)
    request = {
        "TableName": core.tables.usage,
        "Key": key(*counter_place(account, ended.second)),
        "UpdateExpression": "ADD #second :calls SET #expires = :expires",
        "ExpressionAttributeNames": {"#second": name, "#expires": "expires_at"},
        "ExpressionAttributeValues": {
            ":calls": {"N": str(ended.calls)},
            ":expires": {"N": str(ended.second + _KEPT_SECONDS)},
        },
        "ReturnValues": "ALL_NEW",
    }
    try:
        counted = core.store.write("UpdateItem", request) or {}
    except Exception:
        return 0  # whatever is wrong with the counter, no call is to suffer for it
    # Not everybody has reported the last second yet; the one before is told in full.
    seconds = (name, str(ended.second % 60 - 1))
    return max(int(counted.get(each, {"N": "0"})["N"]) for each in seconds)
