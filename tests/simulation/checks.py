"""Every promise, checked on a run's history; the first that was broken is reported."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.check_store import billed, check_counters, check_overdue
from tests.simulation.check_writes import check_writes
from tests.simulation.deployment import Deployment
from tests.simulation.draining import Drain, live_parcels
from tests.simulation.neighbours import check_neighbours
from tests.simulation.notified import check_notifications
from tests.simulation.set_clocks import set_zone

from cirrusmq.base.errors import QueueNotFound
from cirrusmq.model.source import queue_source
from cirrusmq.queues.queues import get_queue
from cirrusmq.storage.bodies.contents import read_contents
from cirrusmq_local.judging.cancellers import check_cancelled
from cirrusmq_local.judging.check_breakers import check_breakers
from cirrusmq_local.judging.check_choices import check_choices
from cirrusmq_local.judging.check_dead_letters import check_dead_letters
from cirrusmq_local.judging.check_function_breakers import check_function_breakers
from cirrusmq_local.judging.check_half import check_half
from cirrusmq_local.judging.check_heads import check_heads
from cirrusmq_local.judging.check_invoking import check_invoking
from cirrusmq_local.judging.check_leases import check_leases
from cirrusmq_local.judging.check_lives import check_lives
from cirrusmq_local.judging.check_logs import check_logs
from cirrusmq_local.judging.check_meter import check_usage
from cirrusmq_local.judging.check_order import check_order
from cirrusmq_local.judging.check_priorities import check_priorities
from cirrusmq_local.judging.check_pushes import check_pushes
from cirrusmq_local.judging.check_rates import check_rates
from cirrusmq_local.judging.check_repeats import check_repeats
from cirrusmq_local.judging.check_replacing import check_replacing
from cirrusmq_local.judging.check_replies import check_replies
from cirrusmq_local.judging.check_rewinds import check_rewinds
from cirrusmq_local.judging.check_senders import check_senders
from cirrusmq_local.judging.check_turns import check_in_flight, check_shares, check_turns
from cirrusmq_local.judging.check_waits import check_waits
from cirrusmq_local.judging.clients import ACCOUNT
from cirrusmq_local.judging.history import Violation
from cirrusmq_local.judging.pausers import check_ages, check_pauses
from cirrusmq_local.judging.redeliverers import check_redelivered
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.schedulers import TICKS, check_schedules
from cirrusmq_local.judging.tracks import Book

RAISED = "the core raised what is none of its errors"


def check(scenario: Scenario, deployment: Deployment, drain: Drain) -> Violation | None:
    """The first promise that was broken; None where all were kept."""
    found = check_calls(scenario, deployment, drain)
    return found or next(check_writes(deployment), None)


def check_calls(scenario: Scenario, deployment: Deployment, drain: Drain) -> Violation | None:
    """The first one that calls show to be broken: the writes are not judged."""
    return next(_violations(scenario, deployment, drain), None)


def _violations(scenario: Scenario, deployment: Deployment, drain: Drain) -> Iterator[Violation]:
    history = deployment.history
    for call in history.calls:
        if call.outcome == "broken":
            yield Violation(RAISED, (call,))
    if drain.blocked:
        yield Violation(f"blocked for good: {', '.join(drain.blocked[:3])}")
    book = Book(history)
    yield from check_leases(book)
    yield from check_repeats(book)
    yield from check_lives(scenario, book, drain)
    yield from check_dead_letters(scenario, book)
    yield from check_heads(scenario, deployment, book)
    orders = scenario.queues["orders"]
    if orders.get("ordered") and not book.by_kind["rewind"]:
        max_receives = orders.get("dead_letter", {}).get("max_receives", 1 << 30)
        names = [*scenario.receivers, *(["late"] if scenario.early else [])]
        for reader in ("orders", *(f"orders/{name}" for name in names)):
            yield from check_order(book, reader, max_receives)
    if orders.get("fair"):
        yield from check_turns(scenario, book)
        yield from check_in_flight(scenario, book)
        yield from check_shares(scenario, book)
    yield from check_rewinds(scenario, book, drain)
    if scenario.subscriptions.get("group", {}).get("ordered") and not scenario.rewound:
        yield from check_order(book, "news/group", 1 << 30)
    yield from check_pushes(scenario, book)
    yield from check_breakers(scenario, book)
    yield from check_function_breakers(scenario, book)
    yield from check_invoking(scenario, book, drain)
    yield from check_waits(scenario, book)
    yield from check_pauses(scenario, book)
    yield from check_ages(scenario, book)
    yield from check_neighbours(scenario, book)
    yield from check_redelivered(scenario, book)
    yield from check_half(book)
    if scenario.halves:
        yield from check_overdue(deployment, book)
    yield from check_cancelled(book)
    yield from check_replacing(scenario, book)
    yield from check_replies(book)
    yield from check_senders(book)
    yield from check_choices(book)
    yield from check_rates(scenario, book)
    yield from check_priorities(scenario, deployment, book)
    yield from check_logs(book)
    yield from _check_schedules(scenario, deployment, book)
    if scenario.notified:
        yield from check_notifications(deployment)
    yield from _counts(scenario, book, drain)
    if any(cast.part == "meter" for cast in scenario.cast):
        yield from check_counters(deployment)
        yield from check_usage(scenario, billed(deployment), book)


def _check_schedules(scenario: Scenario, deployment: Deployment, book: Book) -> Iterator[Violation]:
    if not any(cast.part == "scheduler" for cast in scenario.cast):
        return
    core = deployment.auditor()
    try:
        source = queue_source(get_queue(core, ACCOUNT, TICKS), core.now_ms())
    except QueueNotFound:
        return  # its scheduler made none
    swept = [each for each in book.by_kind["sweep"] if each.known and not each.disturbed]
    parcels = live_parcels(core, source)
    wanted = [(each, range(each.count)) for each in parcels]
    found = list(zip(parcels, read_contents(core, source, wanted), strict=True))
    yield from check_schedules(book, found, swept[-1], set_zone(scenario))


def _counts(scenario: Scenario, book: Book, drain: Drain) -> Iterator[Violation]:
    """The counts of the calm equal the messages that could be received then."""
    if scenario.queues["orders"]["message_retention_seconds"] < 1_000 or book.by_kind["change"]:
        return
    if scenario.in_flight or any(each.calls[0].given.get("asks") for each in book.sent.values()):
        return  # they expire meanwhile
    kept = sum(left.kept for left in drain.left.values())
    received = sum(left.received for left in drain.left.values())
    if kept != received:
        yield Violation(
            f"the counts showed {kept} messages, {received} were received: {drain.left}"
        )
