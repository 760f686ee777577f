"""When a look in vain is a fault: made-up histories of one message, of which a receive knew."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.chaos import Chaos, Profile
from tests.simulation.deployment import Deployment
from tests.simulation.made_up import delivery, scenario

from cirrusmq_local.judging.check_heads import check_heads
from cirrusmq_local.judging.history import Call, History
from cirrusmq_local.judging.scenario import ORDERS
from cirrusmq_local.judging.tracks import Book

SENT_MS, BEGUN_MS, FAILED_MS = 1_000, 5_000, 8_000
"""A message is sent; a receive asks for its body, and fails."""


class Story:
    """Calls in the order of their beginning, and their moments by their times."""

    def __init__(self) -> None:
        self.history = History()

    def call(
        self, kind: str, span_ms: tuple[int, int], given: dict[str, Any], *faults: str
    ) -> Call:
        begun_ms, ended_ms = span_ms
        call = Call("actor", kind, ORDERS.name, given, begun_ms, begun_ms, ended_ms, ended_ms)
        call.faults += faults
        self.history.calls.append(call)
        return call

    def receive(self, span_ms: tuple[int, int], *faults: str) -> Call:
        call = self.call("receive", span_ms, {"max": 1, "timeout": 1, "wait": 0.3}, *faults)
        call.outcome, call.answer = "answered", []
        return call

    def broken(self) -> list[str]:
        """The promises that are broken, where the message is received a minute later."""
        call = self.receive((70_000, 70_010))
        call.answer = [delivery(call, 71_000)]
        deployment = Deployment(Chaos(0, Profile({}, (0, 2))))
        deployment.max_skew_ms = 0
        judged_by = scenario(orders={"delay_seconds": 0})
        try:
            found = list(check_heads(judged_by, deployment, Book(self.history)))
        finally:
            deployment.stage.close()
        return [violation.promise for violation in found]


@pytest.fixture
def story() -> Story:
    made = Story()
    given: dict[str, Any] = {key: [None] for key in ("groups", "keys", "delays", "colors")}
    given |= {"labels": ["m"], "name": "s", "priorities": [1], "attempt": None}
    call = made.call("send", (SENT_MS, SENT_MS + 10), given)
    call.outcome, call.answer = "answered", [["Msg-1", SENT_MS]]
    return made


HIDDEN = ["m was hidden from a receive"]


def test_a_vain_look_for_a_fresh_message_is_a_fault_after_half_a_second(
    story: Story,
) -> None:
    story.receive((SENT_MS + 400, SENT_MS + 700))
    assert story.broken() == []
    story.receive((SENT_MS + 600, SENT_MS + 900))
    assert story.broken() == HIDDEN


@pytest.mark.parametrize("fault", ["BatchGetItem: lost", "GetObject: throttled"])
def test_it_is_none_while_a_receive_waiting_for_bodies_holds_the_message(
    story: Story, fault: str
) -> None:
    story.receive((BEGUN_MS, FAILED_MS), fault).outcome = "failed"
    story.receive((BEGUN_MS + 1_000, BEGUN_MS + 1_300))
    assert story.broken() == []


@pytest.mark.parametrize(("after_ms", "broken"), [(29_000, []), (31_000, HIDDEN)])
def test_a_released_message_is_to_be_seen_within_30_s(
    story: Story, after_ms: int, broken: list[str]
) -> None:
    story.receive((BEGUN_MS, FAILED_MS), "BatchGetItem: unread").outcome = "failed"
    story.receive((FAILED_MS + after_ms, FAILED_MS + after_ms + 300))
    assert story.broken() == broken


@pytest.mark.parametrize(("after_ms", "broken"), [(58_000, []), (60_000, HIDDEN)])
def test_a_receive_of_unknown_end_ends_with_its_functions_time(
    story: Story, after_ms: int, broken: list[str]
) -> None:
    story.receive((BEGUN_MS, 1 << 60), "BatchGetItem: unsent").outcome = "failed"
    story.receive((BEGUN_MS + after_ms, BEGUN_MS + after_ms + 300))
    assert story.broken() == broken


def test_a_receive_failed_before_the_send_excuses_nothing(story: Story) -> None:
    story.receive((100, 600), "BatchGetItem: unread").outcome = "failed"
    story.receive((BEGUN_MS, BEGUN_MS + 300))
    assert story.broken() == HIDDEN


@pytest.mark.parametrize("fault", ["BatchGetItem: slow", "UpdateItem: lost", "Query: throttled"])
def test_nor_does_one_with_read_bodies(story: Story, fault: str) -> None:
    story.receive((BEGUN_MS, FAILED_MS), fault).outcome = "failed"
    story.receive((BEGUN_MS + 1_000, BEGUN_MS + 1_300))
    assert story.broken() == HIDDEN
