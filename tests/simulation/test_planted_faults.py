"""The simulation can fail: every planted fault is found, within a bounded number of seeds."""

from __future__ import annotations

import pytest
from tests.simulation.checks import RAISED
from tests.simulation.plants import PLANTS
from tests.simulation.shrinking import shrink, tell
from tests.simulation.simulation import play
from tests.simulation.topic_plants import TOPIC_PLANTS

MOST_SEEDS = 400


FAULTS = PLANTS | TOPIC_PLANTS


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[fault](monkeypatch)
    found = (play(seed).violation for seed in range(MOST_SEEDS))
    violation = next(each for each in found if each is not None)
    assert violation.promise != RAISED  # by a promise that it breaks, not by breaking down


def test_the_history_of_a_failing_run_gets_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS["a_claim_does_not_compare_what_it_read"](monkeypatch)
    seed = next(seed for seed in range(MOST_SEEDS) if play(seed).violation is not None)
    shortest = shrink(seed)
    assert len(shortest.history.calls) < len(play(seed).history.calls) / 2
    assert "held by two receivers at once" in tell(seed, shortest)
