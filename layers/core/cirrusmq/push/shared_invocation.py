"""One invocation for several subscriptions, each of which is delivered as if it were alone.

    fan_out   a, b, c wait ── one invocation
    a                         holds ─ posts ─ releases
    b                         holds ─ posts ──────── hangs ──────────── 15 s ─ releases
    c                         holds ─ posts ─ posts ─ posts │ 2 s: releases, and goes on alone

A slow subscription is passed to `push_slow` within milliseconds, and so is the next one: slow
subscriptions of one account go to one invocation of `push_slow`, which none of them leaves. There
they do not wait for a CPU.

They share the start of an invocation, its share of a CPU, and its end. So none waits for another:
each has its own threads, also for its calls of the store, and its lease begins and ends with its
own work. The invocation lasts as long as the slowest, which would otherwise need a separate one. If
it ends before its time, their leases end as they would then: the sweep finds them.
"""

from __future__ import annotations

import contextlib
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from cirrusmq.access import shares
from cirrusmq.base.errors import CirrusMQError
from cirrusmq.push.delivery import deliver
from cirrusmq.push.pending import Push, make_push
from cirrusmq.runtime.core import Core
from cirrusmq.subscriptions.delivery import items as delivery_items
from cirrusmq.subscriptions.delivery.rules import POST_MS

SHARED_MS = 2_000
"""Real milliseconds after which a busy subscription leaves for a separate invocation: several busy
ones would have to do with one share of a CPU."""
RUN_MS = 120_000
"""Longest run of an invocation: a retry schedule waits no longer."""
_WAIT_SECONDS = 1.0
_REFUSED_SECONDS = 0.05
"""Seconds without an end after which all refused subscriptions have ended."""
_logger = logging.getLogger(__name__)


class _Ended(NamedTuple):
    """The end of a subscription's delivery: the rest for `push_slow`, and an error."""

    account: str
    rest: dict[str, Any] | None = None
    error: Exception | None = None


def posting_ms(left_ms: int) -> int:
    """Returns the milliseconds in which posts may begin, in an invocation with `left_ms` left."""
    return min(left_ms, RUN_MS) - POST_MS


def deliver_all(
    core: Core,
    places: Sequence[dict[str, Any]],
    invocation_id: str,
    max_ms: float,
    *,
    takes_slow: bool = False,
) -> None:
    """Delivers waiting messages of these subscriptions, in parallel.

    takes_slow: as in `Push`; without it, slow subscriptions are passed on to `push_slow`.

    The error of one is raised when all have ended: Lambda then repeats the invocation, which does
    little for the others.
    """
    shared_ms = None if len(places) == 1 else max_ms if takes_slow else SHARED_MS
    sharing = len(places) - 1
    found = (
        make_push(
            *(core, place, invocation_id, max_ms, shared_ms),
            sharing=sharing,
            takes_slow=takes_slow,
        )
        for place in places
    )
    pushes = [push for push in found if push is not None]
    deliver_them = _side_by_side if sharing else _alone
    if takes_slow:
        with _admitted(core, pushes, max_ms + POST_MS) as admitted:
            ended = deliver_them(core, admitted)
    else:
        ended = deliver_them(core, pushes)
    # After the count: the successor of this invocation must not exceed the account's share.
    errors = [each.error for each in ended if each.error is not None]
    errors += _pass_on(core, ended)
    errors.sort(key=lambda error: isinstance(error, CirrusMQError))
    for error in errors[1:]:
        _logger.error("not delivered", exc_info=error)
    if errors:
        raise errors[0]


@contextlib.contextmanager
def _admitted(core: Core, pushes: Sequence[Push], max_ms: float) -> Iterator[list[Push]]:
    """Yields pushes of accounts that have a share left; the sweep finds messages of the others."""
    with contextlib.ExitStack() as held:
        accounts = sorted({push.subscription.account for push in pushes})
        of = {
            account: held.enter_context(shares.posting(core, account, max_ms))
            for account in accounts
        }
        having = [replace(push, share=of[push.subscription.account]) for push in pushes]
        yield [push for push in having if push.share is not None and push.share.admitted]


def _alone(core: Core, pushes: Sequence[Push]) -> list[_Ended]:
    return [_Ended(push.subscription.account, deliver(push)) for push in pushes]


def _side_by_side(core: Core, pushes: Sequence[Push]) -> list[_Ended]:
    """Delivers each subscription in a separate thread.

    The rest of a slow one waits for all to end, so that it is for few invocations; a subscription
    that is refused as slow does not wait.
    """
    # If one's key takes no writes, its calls wait in a pool that nobody else needs.
    own = replace(core, in_parallel=core.in_own_pool)
    together = any(push.takes_slow for push in pushes)
    left, done, waiting = len(pushes), list[_Ended](), list[_Ended]()
    with core.window(max(1, left)) as window:
        for push in pushes:
            window.start(partial(_deliver, replace(push, core=own)))
        while left:
            ended = window.wait(_REFUSED_SECONDS if waiting else _WAIT_SECONDS)
            left -= len(ended)
            done += [each for each in ended if each.rest is None]
            waiting += [each for each in ended if each.rest is not None]
            if waiting and not ended and not together:
                done += [_Ended("", error=error) for error in _pass_on(core, waiting)]
                waiting = []
    return done + waiting


def _deliver(push: Push) -> _Ended:
    account = push.subscription.account
    try:
        return _Ended(account, deliver(push))
    except Exception as error:
        return _Ended(account, error=error)


def _pass_on(core: Core, ended: Iterable[_Ended]) -> list[Exception]:
    """Passes the rest to `push_slow`, in one invocation for each account. Returns the errors."""
    by_account = defaultdict[str, list[dict[str, Any]]](list)
    for each in ended:
        if each.rest is not None:
            by_account[each.account].append(each.rest)
    errors: list[Exception] = []
    for rests in by_account.values():
        try:
            delivery_items.notify(core, *rests, slow=True)
        except Exception as error:
            errors.append(error)
    return errors
