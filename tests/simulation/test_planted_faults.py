"""The simulation can fail: every planted fault is found, within a bounded number of seeds."""

from __future__ import annotations

import pytest
from tests.simulation.checks import RAISED
from tests.simulation.plants import PLANTS
from tests.simulation.simulation import play

MOST_SEEDS = 400


@pytest.mark.parametrize("fault", PLANTS)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTS[fault](monkeypatch)
    found = (play(seed).violation for seed in range(MOST_SEEDS))
    violation = next(each for each in found if each is not None)
    assert violation.promise != RAISED  # by a promise that it breaks, not by breaking down
