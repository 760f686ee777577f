"""Faults planted into calls that name a message by its id: cancelling and rescheduling."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.plants import plant
from tests.simulation.scenario import CANCELLED

from cirrusmq.lifecycle import tombstones
from cirrusmq.lifecycle.rekey import rekeyed_to_due
from cirrusmq.receiving.lookup import cancel
from cirrusmq.storage.changes import Condition


@plant(CANCELLED, found_by=3_000_035)
def a_cancellation_does_not_compare_what_it_read(patch: pytest.MonkeyPatch) -> None:
    """Whoever read a message before it was received cancels it."""
    patch.setattr(cancel, "as_read", lambda *_: Condition(("attribute_exists(pk)",), {}))


@plant(CANCELLED, found_by=3_000_005)
def cancelled_messages_leave_no_tombstone(patch: pytest.MonkeyPatch) -> None:
    """A send that is repeated stores what was cancelled once more."""
    patch.setattr(tombstones, "CANCELLED", None)


@plant(CANCELLED, found_by=3_000_050)
def a_new_due_time_is_a_key_alone(patch: pytest.MonkeyPatch) -> None:
    """A message that is put off can be received at once, by who reads that far."""

    def at_once(core: Any, source: Any, parcel: Any, place: int, *times: int) -> Any:
        _, _, now_ms = times
        return rekeyed_to_due(core, source, parcel, place, now_ms, now_ms, now_ms)

    patch.setattr(cancel, "rekeyed_to_due", at_once)
