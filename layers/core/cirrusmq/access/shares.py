"""An account's share of the functions that accounts have in common, where work of one may last.

push_slow, call   an account has a quarter of the concurrent invocations, and three quarters while
                  no other account has any; above that an invocation ends, and the sweep, or the
                  execution that invoked it, comes back
push              25 subscriptions of an account that became slow within an hour: it posts for
                  none of the account's for as long, so that none of them holds it up in turn

A quarter is left to the next account, since nothing ends a call that has begun. Here 40 may run:

    alice   30 ──────────────── each ends with its post or call ── 10
    bob            1 ── 10: none of them waits
    carol              waits for the first of alice's to end ── 10
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from cirrusmq.access import running
from cirrusmq.access.running import Place
from cirrusmq.runtime.core import Core

MAX_DEMOTIONS = 25
"""Subscriptions of an account that may become slow in an hour before all of it is."""
HOUR_SECONDS = 3_600
MAX_ACCOUNTS = 100
"""Accounts of a pool that are looked at; with more in an hour each keeps to its quarter."""
LOOK_MS = 1_000
"""Real milliseconds for which an invocation above the quarter caches the others' counts."""
_STEP_SECONDS = 300
"""Demotions are counted in slots of these seconds: the item stays small."""
_POSTING, _CALLING, _SLOW = "posting", "calling", "slow"


class _Seen(NamedTuple):
    own: int
    """Invocations of the account that run."""
    others: bool
    """True if another account has any, or may have."""


class PoolShare:
    """The share of one invocation for an account in a pool, counted while it runs."""

    def __init__(self, core: Core, account: str, pool: str, size: int, number: int) -> None:
        """number: the account's invocations in the pool with this one; 0 if that is unknown."""
        self._core, self._account, self._pool = core, account, pool
        self._quarter = -(-size // 4)
        self._number = number
        self._looked_ms: int | None = None
        self._seen: _Seen
        self.admitted = self._begins(size)
        """True if it may begin."""

    def may_go_on(self) -> bool:
        """Returns True if one more post or call may begin.

        An invocation above the quarter gives way once another account has come, until its own
        account is down to its quarter.
        """
        if not self.admitted or self._number <= self._quarter:
            return self.admitted
        seen = self._look()
        return not seen.others or seen.own <= self._quarter

    def _begins(self, size: int) -> bool:
        if self._number <= self._quarter:
            return True
        return self._number <= size - self._quarter and not self._look().others

    def _look(self) -> _Seen:
        """Returns the invocations in the pool, as of up to `LOOK_MS` ago."""
        core = self._core
        if self._looked_ms is None or core.now_ms() - self._looked_ms >= LOOK_MS * core.clock.scale:
            self._looked_ms, self._seen = core.now_ms(), self._read()
        return self._seen

    def _read(self) -> _Seen:
        try:
            found = running.read_pool(self._core, self._pool, MAX_ACCOUNTS)
        except Exception:
            found = None
        if found is None:
            return _Seen(self._number, others=True)
        own = found.pop(self._account, 0)
        return _Seen(own, others=any(count > 0 for count in found.values()))


def posting(core: Core, account: str, max_ms: float) -> AbstractContextManager[PoolShare]:
    """The share of one more invocation that posts to slow URLs of the account.

    max_ms: how long it may last, in real milliseconds.
    """
    return _share(core, account, _POSTING, max_ms, core.settings.slow_pushes)


def calling(core: Core, account: str, max_ms: float) -> AbstractContextManager[PoolShare]:
    """The share of one more worker that calls functions for the account.

    max_ms: how long it may last, in real milliseconds.
    """
    return _share(core, account, _CALLING, max_ms, core.settings.workers)


def forget_what_ran(core: Core, account: str) -> None:
    """Gives an account its shares back: its process has ended, so nothing runs."""
    for pool in (_POSTING, _CALLING):
        running.forget(core, running.pool_key(pool, account))


def note_demotion(core: Core, account: str) -> None:
    """Counts a subscription of the account that became slow."""
    if not core.settings.slow_pushes:
        return
    end_seconds = core.now_ms() // 1_000 + HOUR_SECONDS
    end_seconds += -end_seconds % _STEP_SECONDS
    counts = running.add(core, _demotions(account), end_seconds, 1)
    if counts is None:
        return
    running.forget_past(core, _demotions(account), counts)
    if _is_slow(core, counts):
        core.slow_cache.drop((_SLOW, account))


def is_slow(core: Core, account: str) -> bool:
    """Returns True if all subscriptions of an account count as slow: too many became slow.

    Reads once a minute. Returns False if it cannot be read now.
    """
    if not core.settings.slow_pushes:
        return False
    try:
        counts = core.slow_cache.get(
            (_SLOW, account), lambda: running.read(core, _demotions(account))
        )
    except Exception:
        return False
    return _is_slow(core, counts)


def _demotions(account: str) -> Place:
    return running.counts_key(account, _SLOW)


def _is_slow(core: Core, counts: dict[int, int]) -> bool:
    return running.present(counts, core.now_ms()) >= MAX_DEMOTIONS


@contextmanager
def _share(core: Core, account: str, pool: str, max_ms: float, size: int) -> Iterator[PoolShare]:
    """size: invocations of all accounts that run at once, 0 if nothing bounds them."""
    if not size:
        yield PoolShare(core, account, pool, size, 0)
        return
    until_ms = core.now_ms() + int(max_ms * core.clock.scale)
    with running.counted(core, running.pool_key(pool, account), until_ms) as number:
        yield PoolShare(core, account, pool, size, number)
