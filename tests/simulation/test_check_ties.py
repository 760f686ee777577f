"""Made-up histories of one message: claims of one millisecond, and a rewind beside a repeat."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.made_up import delivery

from cirrusmq_local.judging.check_leases import check_leases
from cirrusmq_local.judging.check_repeats import check_repeats
from cirrusmq_local.judging.history import Call, History
from cirrusmq_local.judging.rewinders import REWIND
from cirrusmq_local.judging.tracks import Book

GROUP = "news/group"


class _Made:
    """A history whose calls follow each other."""

    def __init__(self) -> None:
        self.history = History()

    def call(self, kind: str, at_ms: int, given: dict[str, Any], answer: Any) -> Call:
        moment = 2 * len(self.history.calls)
        call = Call("actor", kind, GROUP, given, moment, at_ms, moment + 1, at_ms + 1)
        call.outcome, call.answer = "answered", answer
        self.history.calls.append(call)
        return call

    def receive(self, at_ms: int, receipts: tuple[tuple[str, int], ...], **given: Any) -> Call:
        call = self.call("receive", at_ms, {"timeout": 30, **given}, [])
        call.answer = [
            delivery(call, at_ms + 30_000, receipt=receipt, count=count)
            for receipt, count in receipts
        ]
        return call


@pytest.mark.parametrize(("acts_with", "broken"), [(0, True), (1, False)])
def test_claims_of_one_millisecond_are_in_the_order_of_their_counts(
    acts_with: int, *, broken: bool
) -> None:
    made = _Made()
    calls = [made.receive(5_000, (("r1", 1),)), made.receive(5_000, (("r2", 2),))]
    made.call("delete", 5_000, {"messages": calls[acts_with].answer}, [0])

    found = [str(each) for each in check_leases(Book(made.history))]

    assert ("a stale receipt was acted on" in found) == broken


@pytest.mark.parametrize("rewound", [True, False])
def test_a_repeated_receive_need_not_answer_rewound_messages(*, rewound: bool) -> None:
    made = _Made()
    made.receive(5_000, (("r1", 1),), attempt="a")
    if rewound:
        made.call(REWIND, 5_500, {"to_ms": 900}, {"operation": "Op-1"})
    made.receive(6_000, (), attempt="a", repeat=True)

    found = [str(each) for each in check_repeats(Book(made.history))]

    assert found == ([] if rewound else ["a repeated receive did not answer what it holds"])
