"""Faults planted into a running service are found by its calls."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.local.scripted_service import run_command
from tests.simulation.plants import PLANTS
from tests.verifying.plants_met import FIRST, FOUND, WHY_NOT

from cirrusmq_local.verifying.scenes import scenes

SEEDS = 4
"""A run on a busy machine makes few calls, and a fault may need some that meet."""
HERE = Path(__file__).parents[1] / "simulation"


def test_each_planted_fault_is_found_or_has_a_reason() -> None:
    for path in HERE.glob("*_plants.py"):
        importlib.import_module(f"tests.simulation.{path.stem}")
    listed = Counter([*FOUND, *(name for names in WHY_NOT.values() for name in names)])
    assert {*listed} == {*PLANTS}
    assert max(listed.values()) == 1
    assert len(FOUND) >= 12
    assert {*FOUND.values()} <= {*scenes()}


def _is_found(fault: str, start: Callable[[str], str], folder: Path) -> bool:
    start(fault)
    for seed in range(1, 1 + SEEDS):
        out = folder / f"seed{seed}"
        ran = run_command(
            *("verify", "--minutes", "0.7", "--yes", "--only", FOUND[fault]),
            *("--seed", str(seed), "--out", str(out), "--data", str(folder / "data")),
            folder=folder,
        )
        assert (out / "result.json").exists(), ran.stderr
        result = json.loads((out / "result.json").read_text())
        if any(each["verdict"] == "broken" for each in result["promises"]):
            assert ran.returncode == 3
            assert any(each["calls"] for each in result["violations"])
            return True
    return False


@pytest.mark.alone
def test_a_planted_fault_is_found(start_planted: Callable[[str], str], tmp_path: Path) -> None:
    assert _is_found(FIRST, start_planted, tmp_path)


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.parametrize("fault", sorted({*FOUND} - {FIRST}))
def test_planted_faults_are_found(
    fault: str, start_planted: Callable[[str], str], tmp_path: Path
) -> None:
    assert _is_found(fault, start_planted, tmp_path)
