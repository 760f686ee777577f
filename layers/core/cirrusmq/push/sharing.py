"""One invocation for several subscriptions: each is delivered as by an invocation of its own.

    fan_out   a, b, c wait ── one invocation
    a                         holds ─ posts ─ releases
    b                         holds ─ posts ──────── hangs ──────────── 15 s ─ releases
    c                         holds ─ posts ─ posts ─ posts │ 2 s: releases, and goes on alone

They share the work that begins an invocation, its share of a CPU, and its end. So none waits for
another one: each has threads of its own, also for its calls of the store, and its lease begins and
ends with its own work. The invocation lasts as long as the slowest, which would have one of its own
else. If it ends before its time, their leases end as they would then: the sweep finds them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from cirrusmq.base.errors import CirrusMQError
from cirrusmq.push.delivery import deliver
from cirrusmq.push.pending import Push, make_push
from cirrusmq.runtime.core import Core

SHARED_MS = 2_000
"""Real milliseconds after which one that is still busy leaves for an invocation of its own: several
busy ones would have to do with one share of a CPU."""
_WAIT_SECONDS = 1.0
_logger = logging.getLogger(__name__)


def deliver_all(
    core: Core, places: Sequence[dict[str, Any]], invocation_id: str, most_ms: float
) -> None:
    """Deliver what waits for these subscriptions, side by side.

    An error of one is raised when all have ended: Lambda then repeats the invocation, which does
    little for those that are done.
    """
    shared_ms = SHARED_MS if len(places) > 1 else None
    found = (make_push(core, place, invocation_id, most_ms, shared_ms) for place in places)
    pushes = [push for push in found if push is not None]
    if len(places) == 1:
        for push in pushes:
            deliver(push)
        return
    errors = _side_by_side(core, pushes)
    for error in errors[1:]:
        _logger.error("not delivered", exc_info=error)
    if errors:
        raise errors[0]


def _side_by_side(core: Core, pushes: Sequence[Push]) -> list[Exception]:
    """Deliver each in a thread of its own; answers the errors, unexpected ones first."""
    # Where one's key takes no writes, its calls wait in a pool that nobody else needs.
    own = replace(core, in_parallel=core.in_own_pool)
    ended: list[Exception | None] = []
    with core.window(max(1, len(pushes))) as window:
        for push in pushes:
            window.start(partial(_deliver, replace(push, core=own)))
        while len(ended) < len(pushes):
            ended += window.wait(_WAIT_SECONDS)
    errors = [error for error in ended if error is not None]
    return sorted(errors, key=lambda error: isinstance(error, CirrusMQError))


def _deliver(push: Push) -> Exception | None:
    try:
        deliver(push)
    except Exception as error:
        return error
    return None
