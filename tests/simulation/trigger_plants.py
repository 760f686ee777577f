"""Faults planted into the handing over of messages to the functions that queues name."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.simulation.plants import plant
from tests.simulation.scenario import TRIGGERS

from cirrusmq.invoking import function_batch, slots, worker
from cirrusmq.invoking.function_records import InvocationOutcome
from cirrusmq.settlement.visibility import give_back


@plant(TRIGGERS, found_by=189)
def what_a_function_names_is_deleted(patch: pytest.MonkeyPatch) -> None:
    """The failures in an answer are not looked at."""
    patch.setattr(function_batch, "outcome_of", lambda answer, ids: InvocationOutcome())


@plant(TRIGGERS, found_by=1_002)
def what_was_not_begun_counts(patch: pytest.MonkeyPatch) -> None:
    """A give-back does not say that nothing was tried."""

    def counting(core: Any, request: Any, source_of: Any) -> Any:
        return give_back(core, replace(request, tried=True), source_of)

    patch.setattr(function_batch, "give_back", counting)


@plant(TRIGGERS, found_by=4)
def what_was_received_before_has_company(patch: pytest.MonkeyPatch) -> None:
    """A batch is handed over as it was claimed."""
    patch.setattr(worker, "next_part", list)


@plant(TRIGGERS, found_by=21)
def what_is_done_stays(patch: pytest.MonkeyPatch) -> None:
    """A message that a function succeeded at comes again when its lease is over."""
    patch.setattr(function_batch, "delete", lambda core, request, source_of: None)


@plant(TRIGGERS, found_by=275)
def slots_that_are_held_are_taken(patch: pytest.MonkeyPatch) -> None:
    """A worker that finds a slot for each call finds one more."""
    patch.setattr(slots.Slots, "free", lambda self, invoke: [len(self.held)])


@plant(TRIGGERS, found_by=216)
def what_may_still_run_is_given_back(patch: pytest.MonkeyPatch) -> None:
    """A call whose answer is lost is taken for one that failed."""
    hand_over = function_batch.hand_over

    def careless(core: Any, *given: Any) -> function_batch.InvokedBatch:
        def call(*asked: Any) -> Any:
            return replace(core.call(*asked), unknown=False)

        return hand_over(replace(core, call=call), *given)

    patch.setattr(worker, "hand_over", careless)


@plant(TRIGGERS, found_by=733)
def nobody_comes_back_for_what_is_due_later(patch: pytest.MonkeyPatch) -> None:
    """Delays and retries wait for the sweep."""
    patch.setattr(worker._Worker, "_next_due_ms", lambda self: None)


@plant(TRIGGERS, rare=True, found_by=1_095)
def calls_begin_under_slots_that_end(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks whether claiming took so long that a call outlasts its slot."""
    patch.setattr(slots, "lease_exceeds_timeout", lambda *_: True)
    patch.setattr(worker, "lease_exceeds_timeout", lambda *_: True)
