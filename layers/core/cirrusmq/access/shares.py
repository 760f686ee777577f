"""An account's share of the functions that accounts have in common, where work of one may last.

push_slow, call   an account has a quarter of those that run at once; above it an invocation ends,
                  and the sweep, or the execution that invoked it, comes back
push              25 subscriptions of an account that became slow within an hour: it posts for
                  none of the account's for as long, so that none of them holds it up in turn
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from cirrusmq.access import running
from cirrusmq.runtime.core import Core

MOST_DEMOTIONS = 25
"""Subscriptions of an account that may become slow in an hour before all of it is."""
HOUR_SECONDS = 3_600
_STEP_SECONDS = 300
"""Demotions are counted by so many seconds: the item stays small."""
_POSTING, _CALLING, _SLOW = "posting", "calling", "slow"


@contextlib.contextmanager
def posting(core: Core, account: str, most_ms: float) -> Iterator[bool]:
    """Whether one more invocation may post to slow URLs of the account, for so many real ms."""
    with _share(core, account, _POSTING, most_ms, core.settings.account_slow_pushes) as admitted:
        yield admitted


@contextlib.contextmanager
def calling(core: Core, account: str, most_ms: float) -> Iterator[bool]:
    """Whether one more worker may call functions for the account, for so many real ms."""
    with _share(core, account, _CALLING, most_ms, core.settings.account_workers) as admitted:
        yield admitted


def forget_what_ran(core: Core, account: str) -> None:
    """Give an account its shares back: of a process that has ended nothing runs."""
    for name in (_POSTING, _CALLING):
        running.forget(core, account, name)


def note_demotion(core: Core, account: str) -> None:
    """A subscription of the account was fast and is slow."""
    if not core.settings.account_slow_pushes:
        return
    end_seconds = core.now_ms() // 1_000 + HOUR_SECONDS
    end_seconds += -end_seconds % _STEP_SECONDS
    counts = running.add(core, account, _SLOW, end_seconds, 1)
    if counts is None:
        return
    running.forget_past(core, account, _SLOW, counts)
    if _is_slow(core, counts):
        core.slow_cache.drop((_SLOW, account))


def is_slow(core: Core, account: str) -> bool:
    """Whether so many of an account's subscriptions became slow that all of it is.

    Read once a minute; where it cannot be read now it is not.
    """
    if not core.settings.account_slow_pushes:
        return False
    try:
        counts = core.slow_cache.get((_SLOW, account), lambda: running.read(core, account, _SLOW))
    except Exception:
        return False
    return _is_slow(core, counts)


def _is_slow(core: Core, counts: dict[int, int]) -> bool:
    return running.present(counts, core.now_ms()) >= MOST_DEMOTIONS


@contextlib.contextmanager
def _share(core: Core, account: str, name: str, most_ms: float, bound: int) -> Iterator[bool]:
    if not bound:
        yield True
        return
    until_ms = core.now_ms() + int(most_ms * core.clock.scale)
    with running.counted(core, account, name, until_ms, bound) as admitted:
        yield admitted
