"""When a dead letter is a fault: made-up histories of one message that was received twice."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.made_up import delivery, scenario

from cirrusmq_local.judging.check_dead_letters import check_dead_letters
from cirrusmq_local.judging.history import Call, History, Outcome
from cirrusmq_local.judging.scenario import DEAD, ORDERS
from cirrusmq_local.judging.tracks import Book

DEAD_LETTER = {"source_queue": ORDERS.name, "reason": "max_receives", "receive_count": 2}


def received(place: str, at_ms: int, count: int, dead: dict[str, Any] | None) -> Call:
    ended_ms = at_ms + 10
    call = Call("actor", "receive", place, {"timeout": 1}, at_ms, at_ms, ended_ms, ended_ms)
    call.outcome = "answered"
    call.answer = [delivery(call, at_ms + 1_000, count=count, dead=dead)]
    return call


@pytest.mark.parametrize(
    ("outcome", "faults", "broken"),
    [
        ("failed", ["UpdateItem: throttled"], True),
        ("failed", ["UpdateItem: lost"], False),
        ("crashed", ["UpdateItem: crash after"], False),
        # Ended at its timeout, after a fault that alone excuses nothing.
        ("crashed", ["UpdateItem: throttled"], False),
        ("crashed", [], False),
    ],
)
def test_an_unanswered_receive_explains_a_counted_one(
    outcome: Outcome, faults: list[str], *, broken: bool
) -> None:
    history = History()
    between = Call("actor", "receive", ORDERS.name, {}, 3_000, 3_000, outcome=outcome)
    between.faults += faults
    history.calls += [
        received(ORDERS.name, 2_000, 1, None),
        between,
        received(DEAD.name, 9_000, 1, DEAD_LETTER),
    ]
    found = [str(each) for each in check_dead_letters(scenario(), Book(history))]
    assert found == (["a dead letter that nobody ever got"] if broken else [])
