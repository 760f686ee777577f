"""The messages sent or received within ten seconds stay within a queue's rates.

Environments take from the seconds of their own clocks, so a window has a second more, and the
clocks' differences on both of its ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, Violation
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import Book

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


def _windows(taken: Sequence[tuple[int, int, Call]], rate: int, what: str) -> Iterator[Violation]:
    most = rate * (WINDOW_MS + 1_000 + 2 * MAX_SKEW_MS) // 1_000
    for begun_ms, _, _ in taken:
        within = [each for each in taken if begun_ms <= each[0] < begun_ms + WINDOW_MS]
        count = sum(each[1] for each in within)
        if count > most:
            text = f"{count} were {what} in {WINDOW_MS} ms, at most {most} may be"
            yield Violation(text, tuple(each[2] for each in within))
            return
