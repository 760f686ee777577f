"""The plan of a run: how long its waves are, and what it says before it begins."""

from __future__ import annotations

import pytest

from cirrusmq_local.commands.verify_plan import PLAYED, URLS, plan
from cirrusmq_local.verifying.parts import PARTS
from cirrusmq_local.verifying.run import turned, waves
from cirrusmq_local.verifying.scenes import scenes


@pytest.mark.parametrize(
    ("minutes", "count", "seconds", "lasts"),
    [(0.5, 1, 18, 0.5), (1, 5, 36, 1), (2, 45, 5.3, 2.6), (5, 45, 20, 5), (20, 45, 80, 20)],
)
def test_waves_are_as_long_as_the_minutes_allow(
    minutes: float, count: int, seconds: float, lasts: float
) -> None:
    chosen = [*scenes().values()] * 2

    planned = plan(minutes, chosen[:count])

    assert (planned.play_seconds, planned.lasts_minutes) == (seconds, lasts)


def test_a_killing_run_plans_its_wait_for_the_sweep() -> None:
    chosen = [*scenes().values()]

    assert plan(5, chosen, kills=True).lasts_minutes == 8.5
    assert plan(1, chosen[:1], kills=True).lasts_minutes == 2.8


def test_each_part_is_paid_for() -> None:
    chosen = [*scenes().values()][:5]

    without, planned = plan(5, chosen, URLS), plan(5, chosen, URLS + PLAYED * len(PARTS))

    assert planned.calls > without.calls
    assert planned.read_units > without.read_units
    assert planned.dollars > without.dollars


def test_the_first_waves_are_others_with_another_seed() -> None:
    names = [*scenes()]

    first = [next(waves(turned(names, seed))) for seed in range(12)]

    assert {*names} <= {name for wave in first for name in wave}
    assert sorted(turned(names, 7)) == sorted(names)
    assert turned([], 3) == []
