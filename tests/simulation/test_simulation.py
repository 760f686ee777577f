"""Thousands of seeds: every promise is kept through failures, crashes and repetitions."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.simulation.scenario import (
    CANCELLED_SEEDS,
    DELAYED_SEEDS,
    EARLY_SEEDS,
    FAIR_SEEDS,
    FLOW_SEEDS,
    HALF_SEEDS,
    REWOUND_SEEDS,
)
from tests.simulation.shrinking import shrink, tell
from tests.simulation.simulation import Run, play

SEEDS_PER_TEST = 25
SEEDS = 300
LONG_SEEDS = 10_000


def _check(seeds: range) -> None:
    for seed in seeds:
        if play(seed).violation is not None:
            pytest.fail(tell(seed, shrink(seed)), pytrace=False)


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_every_promise_is_kept(first: int) -> None:
    _check(range(first, first + SEEDS_PER_TEST))


@pytest.mark.long
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + LONG_SEEDS, 250))
def test_every_promise_is_kept_for_long(first: int) -> None:
    _check(range(first, first + 250))


@pytest.mark.parametrize("first", range(HALF_SEEDS, HALF_SEEDS + 50, SEEDS_PER_TEST))
def test_every_promise_of_half_messages_is_kept(first: int) -> None:
    _check(range(first, first + SEEDS_PER_TEST))


@pytest.mark.long
@pytest.mark.parametrize("first", range(HALF_SEEDS + 50, HALF_SEEDS + 1_050, 250))
def test_every_promise_of_half_messages_is_kept_for_long(first: int) -> None:
    _check(range(first, first + 250))


@pytest.mark.parametrize("first", range(REWOUND_SEEDS, REWOUND_SEEDS + 50, SEEDS_PER_TEST))
def test_every_promise_of_rewound_groups_is_kept(first: int) -> None:
    _check(range(first, first + SEEDS_PER_TEST))


@pytest.mark.long
@pytest.mark.parametrize("first", range(REWOUND_SEEDS + 50, REWOUND_SEEDS + 1_050, 250))
def test_every_promise_of_rewound_groups_is_kept_for_long(first: int) -> None:
    _check(range(first, first + 250))


@pytest.mark.parametrize("first", range(CANCELLED_SEEDS, CANCELLED_SEEDS + 50, SEEDS_PER_TEST))
def test_every_promise_of_cancelled_messages_is_kept(first: int) -> None:
    _check(range(first, first + SEEDS_PER_TEST))


@pytest.mark.long
@pytest.mark.parametrize("first", range(CANCELLED_SEEDS + 50, CANCELLED_SEEDS + 1_050, 250))
def test_every_promise_of_cancelled_messages_is_kept_for_long(first: int) -> None:
    _check(range(first, first + 250))


@pytest.mark.parametrize("first", range(FLOW_SEEDS, FLOW_SEEDS + 50, SEEDS_PER_TEST))
def test_no_url_gets_more_than_its_rate(first: int) -> None:
    _check(range(first, first + SEEDS_PER_TEST))


@pytest.mark.long
@pytest.mark.parametrize("first", range(FLOW_SEEDS + 50, FLOW_SEEDS + 1_050, 250))
def test_no_url_gets_more_than_its_rate_for_long(first: int) -> None:
    _check(range(first, first + 250))


@pytest.mark.parametrize("first", range(DELAYED_SEEDS, DELAYED_SEEDS + 50, SEEDS_PER_TEST))
def test_every_promise_of_delayed_publishing_is_kept(first: int) -> None:
    _check(range(first, first + SEEDS_PER_TEST))


@pytest.mark.long
@pytest.mark.parametrize("first", range(DELAYED_SEEDS + 50, DELAYED_SEEDS + 1_050, 250))
def test_every_promise_of_delayed_publishing_is_kept_for_long(first: int) -> None:
    _check(range(first, first + 250))


@pytest.mark.parametrize("first", range(EARLY_SEEDS, EARLY_SEEDS + 50, SEEDS_PER_TEST))
def test_every_promise_of_early_receivers_is_kept(first: int) -> None:
    _check(range(first, first + SEEDS_PER_TEST))


@pytest.mark.long
@pytest.mark.parametrize("first", range(EARLY_SEEDS + 50, EARLY_SEEDS + 1_050, 250))
def test_every_promise_of_early_receivers_is_kept_for_long(first: int) -> None:
    _check(range(first, first + 250))


@pytest.mark.parametrize("first", range(FAIR_SEEDS, FAIR_SEEDS + 50, SEEDS_PER_TEST))
def test_every_promise_of_fair_queues_is_kept(first: int) -> None:
    _check(range(first, first + SEEDS_PER_TEST))


@pytest.mark.long
@pytest.mark.parametrize("first", range(FAIR_SEEDS + 50, FAIR_SEEDS + 1_050, 250))
def test_every_promise_of_fair_queues_is_kept_for_long(first: int) -> None:
    _check(range(first, first + 250))


def _digest(run: Run) -> str:
    return hashlib.sha256("\n".join(run.history.lines()).encode()).hexdigest()


@pytest.mark.parametrize("seed", range(6))
def test_a_seed_replays_its_run_exactly(seed: int) -> None:
    assert _digest(play(seed)) == _digest(play(seed))


def test_a_seed_replays_its_run_in_another_process() -> None:
    """Also where Python hashes texts in another way."""
    code = (
        "from tests.simulation.test_simulation import _digest, play\n"
        "print([_digest(play(seed)) for seed in range(20, 24)])"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout.splitlines()[-1]  # behind the functions' log
        for hash_seed in ("1", "2")
    ]
    assert told[0] == told[1] == f"{[_digest(play(seed)) for seed in range(20, 24)]}"
