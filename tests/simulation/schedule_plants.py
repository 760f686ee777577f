"""Planted faults of schedules: marks, changes, missed times."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.plants import plant

from cirrusmq.base import limits
from cirrusmq.schedules import firing, items


@plant("scheduled queues")
def a_mark_is_taken_by_anybody(patch: pytest.MonkeyPatch) -> None:
    """The transaction does not ask if the mark is still there."""
    take = items.take_mark

    def careless(*given: Any) -> dict[str, Any]:
        write = take(*given)
        del write["Delete"]["ConditionExpression"]
        return write

    patch.setattr(firing, "take_mark", careless)


@plant("scheduled queues")
def a_schedule_puts_its_message_behind_its_mark(patch: pytest.MonkeyPatch) -> None:
    """Two writes in place of one: a sweep that stops between them loses the message."""
    write = firing._write

    def apart(core: Any, found: Any, mark: Any, step: Any) -> bool:
        if not write(core, found, mark, step._replace(fired=None)):
            return False
        if step.fired is not None:
            core.store.transact(step.fired.puts(core))
        return True

    patch.setattr(firing, "_write", apart)


@plant("scheduled queues")
def a_change_of_a_schedule_holds_at_once(patch: pytest.MonkeyPatch) -> None:
    """Times that a sweep has fired ahead fire again by the new definition."""
    patch.setattr(limits, "SCHEDULE_CHANGE_MS", 0)


@plant("scheduled queues")
def all_missed_times_are_one(patch: pytest.MonkeyPatch) -> None:
    """The last one fires, whatever `missed` says."""
    patch.setattr(limits, "MISSED_TIMES", 1)


@plant("scheduled queues")
def earlier_definitions_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A change drops the times until it is in force."""
    patch.setattr(firing, "_in_force", lambda definition, time_ms: definition.until_ms is None)
