"""The messages sent or received within ten seconds stay within the rates of a queue and its groups.

Environments take from the seconds of their own clocks, so a window has a second more, and the
clocks' differences on both of its ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, Violation
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import HANDED, Book

WINDOW_MS = 10_000


def check_rates(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """Each window that begins with a send or a claim."""
    orders = scenario.queues["orders"]
    if orders.get("send_rate"):
        sent = [
            (call.begun_ms, len(call.given["labels"]), call)
            for kind in ("send", "send again")
            for call in book.by_kind[kind]
            if call.known and call.ended_ms - call.begun_ms < 100
        ]
        yield from _windows(sent, orders["send_rate"], "sent")
    if orders.get("receive_rate"):
        claims = {
            delivery.receipt: (delivery.true_claim_ms, 1, delivery.call)
            for track in book.tracks.values()
            for delivery in track.deliveries
            if delivery.call.place == "orders" and "repeat" not in delivery.call.given
        }
        yield from _windows(list(claims.values()), orders["receive_rate"], "received")
    if orders.get("rate"):
        for (reader, group), claimed in _of_groups(scenario, book).items():
            yield from _windows(claimed, orders["rate"], f"received of {group} by {reader}")


def _of_groups(
    scenario: Scenario, book: Book
) -> dict[tuple[str, str | None], list[tuple[int, int, Call]]]:
    """Returns the claims of undisturbed calls, by reader and group.

    A call that a fault made slow may claim seconds after it took.
    """
    found: defaultdict[tuple[str, str | None], dict[str, tuple[int, int, Call]]]
    found = defaultdict(dict)
    for track in book.tracks.values():
        for each in track.deliveries:
            call = each.call
            of_queue = call.place.partition("/")[0] == "orders"
            if of_queue and not call.faults and "repeat" not in call.given:
                found[call.place, each.group][each.receipt] = each.true_claim_ms, 1, call
    # When a function's batch was claimed is not seen: soon before its call, if nothing fails.
    for call in book.by_kind[HANDED] if scenario.quiet else ():
        for each in call.given["messages"] if call.place == "orders" else ():
            found["orders", each.group][each.receipt] = call.begun_ms, 1, call
    return {key: list(claims.values()) for key, claims in found.items()}


def _windows(taken: Sequence[tuple[int, int, Call]], rate: int, what: str) -> Iterator[Violation]:
    limit = rate * (WINDOW_MS + 1_000 + 2 * MAX_SKEW_MS) // 1_000
    for begun_ms, _, _ in taken:
        within = [each for each in taken if begun_ms <= each[0] < begun_ms + WINDOW_MS]
        count = sum(each[1] for each in within)
        if count > limit:
            text = f"{count} were {what} in {WINDOW_MS} ms, at most {limit} may be"
            yield Violation(text, tuple(each[2] for each in within))
            return
