"""Looks that end in the middle: pages of one to four parcels, and a unit for a look."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.simulation import simulation
from tests.simulation.drawing import draw_scenario
from tests.simulation.scenario import FAIR, FIRST_SEEDS, TRIGGERS
from tests.simulation.shrinking import shrink, tell
from tests.simulation.simulation import play

from cirrusmq.model.source import Source
from cirrusmq.receiving import rounds
from cirrusmq.runtime.core import Core
from cirrusmq.storage import walk
from cirrusmq_local.judging.scenario import Scenario

SEEDS = 4
LONG_SEEDS = 120


@pytest.fixture(autouse=True)
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys behind which looks went on, with pages and looks made small."""

    def draw_small(seed: int) -> Scenario:
        return replace(draw_scenario(seed), small_pages=True)

    monkeypatch.setattr(simulation, "draw_scenario", draw_small)
    seen: list[str] = []
    write = rounds._write

    def noted(core: Core, source: Source, partition: int, left: rounds._Round) -> None:
        if left.behind:
            seen.append(left.behind)
        write(core, source, partition, left)

    monkeypatch.setattr(rounds, "_write", noted)
    return seen


def with_functions(count: int) -> list[int]:
    """The first seeds in which queues and groups name functions."""
    seeds = (seed for seed in range(100_000) if draw_scenario(seed).family == TRIGGERS)
    return [next(seeds) for _ in range(count)]


def check(seeds: list[int]) -> None:
    for seed in seeds:
        if play(seed).violation is not None:
            pytest.fail(tell(seed, shrink(seed)), pytrace=False)


def fair(count: int) -> list[int]:
    return [*range(FIRST_SEEDS[FAIR], FIRST_SEEDS[FAIR] + count)]


def test_every_promise_is_kept_by_functions_and_in_fair_queues(cuts: list[str]) -> None:
    check([*with_functions(SEEDS), *fair(SEEDS)])

    assert len(cuts) > SEEDS


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 1_000, 100))
def test_every_promise_is_kept_for_long(first: int) -> None:
    check([*range(first, first + 100)])


@pytest.mark.long
def test_every_promise_is_kept_by_functions_and_in_fair_queues_for_long() -> None:
    check([*with_functions(LONG_SEEDS)[SEEDS:], *fair(LONG_SEEDS)[SEEDS:]])


@pytest.mark.long
def test_a_cut_look_taken_for_a_whole_one_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a look does not see is for nobody to hand over, then."""

    def look_at(
        core: Core, source: Source, partition: int, count: int, since_ms: int
    ) -> rounds._Part:
        now_ms = core.now_ms()
        first = walk.PartitionScan(core, source, partition, walk.Bounds(pages=1))
        met, ready = rounds._meet(core, source, first, now_ms)
        return rounds._Part(met=met, ready=ready, oldest_ms=met.oldest_ms)

    monkeypatch.setattr(rounds, "_look_at", look_at)

    assert any(play(seed).violation is not None for seed in with_functions(10))
