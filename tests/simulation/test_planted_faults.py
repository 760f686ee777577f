"""The simulation can fail: every planted fault is found, within a bounded number of seeds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.simulation.checks import RAISED
from tests.simulation.drawing import draw_scenario
from tests.simulation.pairs import FIRST_SEEDS_OF_PAIRS
from tests.simulation.plants import every_plant
from tests.simulation.scenario import FIRST_SEEDS
from tests.simulation.shrinking import broken_rule, shrink, tell
from tests.simulation.simulation import play

from cirrusmq_local.judging.history import Violation

MAX_SEEDS, MAX_SEEDS_OF_RARE = 100, 2_000
"""Of the scenarios in which a fault can do harm."""
PLANTS = every_plant()
_FIRST = FIRST_SEEDS | FIRST_SEEDS_OF_PAIRS
# Every second one is for `make check-long`, as those are that few scenarios find.
_FAULTS = [
    pytest.param(name, marks=pytest.mark.long if plant.rare or number % 2 else ())
    for number, (name, plant) in enumerate(sorted(PLANTS.items()))
]


def _seeds(fault: str) -> Iterator[int]:
    plant = PLANTS[fault]
    if plant.found_by is not None:
        yield plant.found_by
    seed, found = max((_FIRST.get(kind, 0) for kind in plant.kinds), default=0), 0
    while found < (MAX_SEEDS_OF_RARE if plant.rare else MAX_SEEDS):
        if not plant.kinds or draw_scenario(seed).kinds.intersection(plant.kinds):
            found += 1
            yield seed
        seed += 1


def _find(fault: str, patch: pytest.MonkeyPatch) -> tuple[int, Violation]:
    """A seed that finds a fault, and by which promise."""
    PLANTS[fault].patch(patch)
    for seed in _seeds(fault):
        violation = play(seed).violation
        if violation is not None:
            return seed, violation
    pytest.fail(f"no seed found that {fault.replace('_', ' ')}")


def test_the_planted_faults_are_there() -> None:
    assert len(PLANTS) >= 25


@pytest.mark.parametrize("fault", PLANTS)
def test_a_fault_can_still_be_planted(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The patched names still exist."""
    PLANTS[fault].patch(monkeypatch)


@pytest.mark.few(8)
@pytest.mark.parametrize("fault", _FAULTS)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seed, violation = _find(fault, monkeypatch)
    print(f"{fault}: found_by={seed:_}")
    assert violation.promise != RAISED  # by a promise that it breaks, not by breaking down


@pytest.mark.long
def test_the_history_of_a_failing_run_gets_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    seed, violation = _find("a_claim_does_not_compare_what_it_read", monkeypatch)
    shortest = shrink(seed)
    first = play(seed)
    assert first.violation == violation
    assert len(shortest.history.calls) < len(first.history.calls) / 2
    # A promise with counts in it is broken by others of them in a shorter run.
    assert broken_rule(shortest) == broken_rule(first)
    assert shortest.violation is not None
    assert shortest.violation.promise in tell(seed, shortest)
