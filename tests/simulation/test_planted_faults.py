"""The simulation can fail: every planted fault is found, within a bounded number of seeds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.simulation import cloud_plants, topic_plants
from tests.simulation.checks import RAISED
from tests.simulation.history import Violation
from tests.simulation.plants import PLANTS, Plant
from tests.simulation.scenario import draw_scenario
from tests.simulation.shrinking import shrink, tell
from tests.simulation.simulation import play

MOST_SEEDS, MOST_SEEDS_OF_RARE = 100, 2_000
"""Of the scenarios in which a fault can do harm."""
_FAULTS = [
    pytest.param(name, marks=pytest.mark.long if plant.rare else ())
    for name, plant in PLANTS.items()
]


def _seeds(plant: Plant) -> Iterator[int]:
    seed = found = 0
    while found < (MOST_SEEDS_OF_RARE if plant.rare else MOST_SEEDS):
        if not plant.families or draw_scenario(seed).family in plant.families:
            found += 1
            yield seed
        seed += 1


def _find(fault: str, patch: pytest.MonkeyPatch) -> tuple[int, Violation]:
    """The first seed that finds a fault, and by which promise."""
    PLANTS[fault].patch(patch)
    for seed in _seeds(PLANTS[fault]):
        violation = play(seed).violation
        if violation is not None:
            return seed, violation
    pytest.fail(f"no seed found that {fault.replace('_', ' ')}")


def test_the_planted_faults_are_there() -> None:
    assert len(PLANTS) >= 25
    assert topic_plants.__doc__
    assert cloud_plants.__doc__


@pytest.mark.parametrize("fault", PLANTS)
def test_a_fault_can_still_be_planted(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The patched names still exist."""
    PLANTS[fault].patch(monkeypatch)


@pytest.mark.parametrize("fault", _FAULTS)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, violation = _find(fault, monkeypatch)
    assert violation.promise != RAISED  # by a promise that it breaks, not by breaking down


def test_the_history_of_a_failing_run_gets_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    seed, violation = _find("a_claim_does_not_compare_what_it_read", monkeypatch)
    shortest = shrink(seed)
    assert len(shortest.history.calls) < len(play(seed).history.calls) / 2
    assert violation.promise in tell(seed, shortest)
