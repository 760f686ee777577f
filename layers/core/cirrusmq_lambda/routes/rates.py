"""Rates of the last hour or hours, of several queues, receivers, topics and subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from cirrusmq.access.permissions import find_queue
from cirrusmq.access.topic_permissions import find_topic
from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.limits import RATE_INTERVAL_SECONDS, RATES_HOURS, RATES_NAMES
from cirrusmq.base.timestamps import format_time
from cirrusmq.metering.rate_report import read_hourly_rates, read_rates
from cirrusmq.queues.receivers import get_receiver
from cirrusmq.storage.counters import interval_starts
from cirrusmq.storage.rate_history import HOUR_MS
from cirrusmq.subscriptions.sources import subscription_source
from cirrusmq_lambda import rights
from cirrusmq_lambda.answers.rates import RateKind, RatesOfLastHour, ResourceRates
from cirrusmq_lambda.http import Request, Route, read_integer
from cirrusmq_lambda.replies import Ok
from cirrusmq_lambda.topic_paths import find_subscription


def show_rates(request: Request) -> Ok[RatesOfLastHour]:
    """Returns counts of messages in the last hour, by intervals, or in the last hours. Raises
    QueueNotFound, ReceiverNotFound, SubscriptionNotFound, TopicNotFound.
    """
    core, now_ms = request.core, request.core.now_ms()
    _ = request.caller  # a missing key is refused first
    named, hours = _named(request.query), read_integer(request.query, "hours", RATES_HOURS)
    sources = [_SOURCES[kind](request, name) for kind, name in named]
    if hours is None:
        found = read_rates(core, sources, now_ms)
        starts_ms, seconds = interval_starts(now_ms)[0], RATE_INTERVAL_SECONDS
    else:
        found = read_hourly_rates(core, sources, hours, now_ms)
        starts_ms, seconds = (now_ms // HOUR_MS + 1 - hours) * HOUR_MS, HOUR_MS // 1_000
    shown = [
        ResourceRates.of(kind, name, rates)
        for (kind, name), rates in zip(named, found, strict=True)
    ]
    starts_at = format_time(starts_ms)
    return Ok(RatesOfLastHour(starts_at=starts_at, interval_seconds=seconds, rates=shown))


def _named(query: Mapping[str, str]) -> list[tuple[RateKind, str]]:
    """Returns kinds and names in the order of the answer."""
    kinds: tuple[RateKind, ...] = get_args(RateKind)
    named = [(kind, name) for kind in kinds for name in query.get(f"{kind}s", "").split(",")]
    named = [(kind, name) for kind, name in named if name]
    least, limit = RATES_NAMES
    if not least <= len(named) <= limit:
        parameter = next(iter(query), "queues")
        raise InvalidParameter(
            parameter, f"must have {least} to {limit} names, with the other lists"
        )
    return named


def _queue(request: Request, name: str) -> Sequence[str]:
    rights.check_shows(request.caller, "queues", name)
    return [find_queue(request.core, request.caller, name, "info").id]


def _receiver(request: Request, name: str) -> Sequence[str]:
    queue_name, receiver = _parts("receivers", name)
    rights.check_shows(request.caller, "queues", queue_name)
    queue = find_queue(request.core, request.caller, queue_name, "info")
    return [get_receiver(request.core, queue, receiver).id]


def _topic(request: Request, name: str) -> Sequence[str]:
    rights.check_shows(request.caller, "topics", name)
    return [find_topic(request.core, request.caller, name, "info").id]


def _subscription(request: Request, name: str) -> Sequence[str]:
    topic, subscription = _parts("subscriptions", name)
    rights.check_shows(request.caller, "topics", topic)
    _, found = find_subscription(request, topic, subscription, "info")
    return [source.id for source in subscription_source(found).all]


def _parts(parameter: str, name: str) -> tuple[str, str]:
    """Returns the queue or topic, and the name below it."""
    above, slash, below = name.partition("/")
    if not slash:
        raise InvalidParameter(parameter, "each name must have a slash: orders/audit, news/printer")
    return above, below


_SOURCES: Mapping[RateKind, Callable[[Request, str], Sequence[str]]] = {
    "queue": _queue,
    "receiver": _receiver,
    "topic": _topic,
    "subscription": _subscription,
}
"""By kind: checks the caller's right, and returns the ids under which the meter counts."""
ROUTES: dict[str, Route] = {"GET /rates": show_rates}
