"""A service's clock may be behind this machine's, so that times show less than in a simulation."""

from __future__ import annotations

import pytest
from tests.simulation.made_up import delivery, scenario

from cirrusmq_local.judging.check_lives import check_lives
from cirrusmq_local.judging.deployment import Left
from cirrusmq_local.judging.history import History
from cirrusmq_local.judging.places import Delivery
from cirrusmq_local.judging.scenario import DEAD, ORDERS
from cirrusmq_local.judging.tracks import Book
from cirrusmq_local.verifying.remote import MAX_DRIFT_MS, SharedHistory

GIVEN_UP_MS = 11_000


class Nothing:
    """What was left at the end of the run."""

    def __init__(self) -> None:
        self.begun_ms = 20_000
        self.left: dict[str, Left] = {}


@pytest.mark.parametrize(
    ("history", "before_ms", "broken"),
    [
        (SharedHistory(), 1, False),
        (SharedHistory(), MAX_DRIFT_MS, False),
        (SharedHistory(), MAX_DRIFT_MS + 1, True),
        (History(), 1, True),
    ],
)
def test_a_dead_letter_may_be_older_than_its_dead_letter_call(
    history: History, before_ms: int, broken: bool
) -> None:
    """The service noted the move so many milliseconds before the call, as this machine has it."""
    held = receive(history, ORDERS.name, 10_000, None)
    call = history.begin("receiver", "dead letter", ORDERS.name, {"messages": [held]}, GIVEN_UP_MS)
    history.end(call, "answered", [0], GIVEN_UP_MS + 3)
    dead_at = GIVEN_UP_MS - before_ms
    note = {"reason": "consumer", "receive_count": 1, "source_queue": "orders", "dead_at": dead_at}
    receive(history, DEAD.name, 12_000, note)

    judged_by = scenario(orders={"message_retention_seconds": 345_600})
    found = [str(each) for each in check_lives(judged_by, Book(history), Nothing())]

    assert found == (["moved to the dead-letter queue while it was held"] if broken else [])


def receive(history: History, place: str, at_ms: int, dead: dict[str, object] | None) -> Delivery:
    call = history.begin("receiver", "receive", place, {"timeout": 5}, at_ms)
    sent_ms = 9_000 if dead is None else int(str(dead["dead_at"]))
    got = delivery(call, at_ms + 5_000, sent_ms=sent_ms, expires_ms=346_000_000, dead=dead)
    history.end(call, "answered", [got], at_ms + 10)
    return got
