"""A zone whose clocks are set in the middle of a run, in the place of a real one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import tzinfo

import pytest

from cirrusmq.schedules import rules
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.schedulers import SET_ZONE
from cirrusmq_local.judging.zones import SetClock
from cirrusmq_local.testing import START_MS


def set_zone(scenario: Scenario) -> SetClock | None:
    """The zone whose clocks are set in a scenario; None if none are."""
    at_ms, minutes = scenario.clock_set
    return SetClock(START_MS + at_ms, minutes) if minutes else None


@contextmanager
def clocks_set(scenario: Scenario) -> Iterator[None]:
    """Have schedules find the scenario's zone under the name of a real one."""
    zone, real = set_zone(scenario), rules._zone

    def find(name: str) -> tzinfo:
        return zone if zone is not None and name == SET_ZONE else real(name)

    with pytest.MonkeyPatch.context() as patch:
        if zone is not None:
            patch.setattr(rules, "_zone", find)
        yield
