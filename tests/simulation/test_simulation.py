"""Thousands of seeds: every promise is kept through failures, crashes and repetitions."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from tests.simulation.pairs import FIRST_SEEDS_OF_PAIRS, PAIRS
from tests.simulation.scenario import FIRST_SEEDS
from tests.simulation.shrinking import shrink, tell
from tests.simulation.simulation import Run, play

SEEDS_PER_TEST = 5
SEEDS = 10
FAMILY_SEEDS = 1
SEEDS_PER_LONG_TEST = 250
LONG_SEEDS = 10_250
FAMILY_SEEDS_PER_LONG_TEST = 205
FAMILY_LONG_SEEDS = 1_025
PAIR_SEEDS = 1
MENDED_SEEDS = (7000432, 7500213, 7700859, 7700995, 8340030, 8370068, 8410058, 8650048)
"""Seeds that were broken once: by the service, or by what judged it."""
PAIR_LONG_SEEDS = 5_000 // len(PAIRS)


def _runs(firsts: Iterable[int], count: int, *marks: pytest.MarkDecorator) -> list[ParameterSet]:
    """Cases of so many seeds from each of the first ones on."""
    return [pytest.param(first, count, id=f"{first}", marks=marks) for first in firsts]


RUNS = [
    *_runs(range(0, SEEDS, SEEDS_PER_TEST), SEEDS_PER_TEST),
    *_runs(
        range(SEEDS, SEEDS + LONG_SEEDS, SEEDS_PER_LONG_TEST), SEEDS_PER_LONG_TEST, pytest.mark.long
    ),
    *_runs(FIRST_SEEDS.values(), FAMILY_SEEDS),
    *_runs(
        (
            first + more
            for first in FIRST_SEEDS.values()
            for more in range(
                FAMILY_SEEDS, FAMILY_SEEDS + FAMILY_LONG_SEEDS, FAMILY_SEEDS_PER_LONG_TEST
            )
        ),
        *(FAMILY_SEEDS_PER_LONG_TEST, pytest.mark.long),
    ),
    *_runs(MENDED_SEEDS, 1, pytest.mark.long),
]
OF_PAIRS = [(0, PAIR_SEEDS), pytest.param(PAIR_SEEDS, PAIR_LONG_SEEDS, marks=pytest.mark.long)]


def _check(first: int, count: int) -> None:
    for seed in range(first, first + count):
        if play(seed).violation is not None:
            pytest.fail(tell(seed, shrink(seed)), pytrace=False)


@pytest.mark.parametrize(("first", "count"), RUNS)
def test_every_promise_is_kept(first: int, count: int) -> None:
    _check(first, count)


@pytest.mark.few(33)
@pytest.mark.parametrize(("behind", "count"), OF_PAIRS)
@pytest.mark.parametrize("pair", PAIRS)
def test_every_promise_is_kept_with_two_features_together(
    pair: str, behind: int, count: int
) -> None:
    _check(FIRST_SEEDS_OF_PAIRS[pair] + behind, count)


def _digest(run: Run) -> str:
    return hashlib.sha256("\n".join(run.history.lines()).encode()).hexdigest()


@pytest.mark.parametrize("seed", range(2))
def test_a_seed_replays_its_run_exactly(seed: int) -> None:
    assert _digest(play(seed)) == _digest(play(seed))


def test_a_seed_replays_its_run_in_another_process() -> None:
    """Also where Python hashes texts in another way: this process does it by chance."""
    code = (
        "from tests.simulation.test_simulation import _digest, play\n"
        "print([_digest(play(seed)) for seed in range(20, 22)])"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout.splitlines()  # behind the functions' log
    assert told[-1] == f"{[_digest(play(seed)) for seed in range(20, 22)]}"
