"""Retries: a message given back to wait by its policy is not active before that wait is over.

received: 2 ── given back ──────── the second wait, less its jitter ──────── active
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cirrusmq_local.judging.history import Violation
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import Act, Book

_NO_WAIT_LEFT_MS = 1_000_000
"""In this time before its end of life a message need not wait as long as the policy says."""


def check_waits(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """Each give-back without a delay in its call, in places with custom waits.

    A message without a retry left does not wait.
    """
    orders = scenario.queues["orders"]
    limit = orders.get("dead_letter", {}).get("max_receives", 1 << 30)
    for track in book.tracks.values():
        retry = _retry_of(scenario, track.reader)
        for act in track.acts if retry else ():
            if act.delivery.count >= min(limit, 1 + len(retry["waits"])):
                continue
            if act.delivery.dead is not None or not act.done or not act.result:
                continue
            by_policy = act.verb == "give back" and act.call.given.get("seconds") is None
            if by_policy and not act.untried and not _ends_soon(scenario, act):
                begun_ms = act.call.begun_ms + act.call.skew_ms
                if int(act.result) < begun_ms + _wait_ms(retry, act.delivery.count):
                    calls = (act.delivery.call, act.call)
                    yield Violation("active again before its retry's wait was over", calls)


def _retry_of(scenario: Scenario, reader: str) -> dict[str, Any]:
    queue, _, name = reader.partition("/")
    attributes = scenario.queues.get(queue) or scenario.subscriptions.get(name) or scenario.late
    retry: dict[str, Any] = attributes.get("retry") or {}
    return retry if "waits" in retry else {}


def _wait_ms(retry: dict[str, Any], count: int) -> int:
    shortest = 1 - float(retry.get("jitter", 0))
    return int(1_000 * retry["waits"][count - 1] * shortest)


def _ends_soon(scenario: Scenario, act: Act) -> bool:
    """Returns True if the end of its life may cut its wait, or it may be too old to wait."""
    begun_ms, delivery = act.call.begun_ms, act.delivery
    limit = scenario.queues["orders"].get("dead_letter", {}).get("max_age_seconds")
    too_old = limit is not None and begun_ms - delivery.sent_ms > 1_000 * limit - 10_000
    return too_old or begun_ms + _NO_WAIT_LEFT_MS > delivery.expires_ms
