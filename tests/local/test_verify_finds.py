"""Faults planted into a running service are found by its calls."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.local.scripted_service import run_command
from tests.simulation.plants import PLANTS
from tests.stack import environment
from tests.verifying.plants_met import ALSO, FOUND, WHY_NOT

from cirrusmq_local.verifying.changed_schedules import NAME as SCHEDULES
from cirrusmq_local.verifying.function import GIVEN
from cirrusmq_local.verifying.machine import free_port
from cirrusmq_local.verifying.parts import PARTS
from cirrusmq_local.verifying.scenes import scenes

ROOT = Path(__file__).parents[2]
SEEDS = 4
"""A run on a busy machine makes few calls, and a fault may need some that meet."""
SCHEDULED_MINUTES = "13"
"""Half of it is played: two changes of a schedule are in force by then."""
PATIENCE_SECONDS = 900
"""What a fault keeps from being received is given up after two minutes."""
HERE = Path(__file__).parents[1] / "simulation"


@pytest.fixture
def start_planted(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Starts it on `tmp_path / "data"`; returns its URL."""
    started: list[subprocess.Popen[str]] = []

    def start(fault: str) -> str:
        data = ["--data", str(tmp_path / "data"), "--port", "0"]
        data += ["--dialect-port", str(free_port()), "--function", GIVEN]
        with (tmp_path / "service.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.verifying.planted", fault, "up", *data],
                cwd=ROOT,
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        started.append(process)
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith("ready "), (tmp_path / "service.log").read_text()
        return ready.removeprefix("ready ").strip()

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_each_planted_fault_is_found_or_has_a_reason() -> None:
    for path in HERE.glob("*_plants.py"):
        importlib.import_module(f"tests.simulation.{path.stem}")
    listed = Counter([*FOUND, *(name for names in WHY_NOT.values() for name in names)])
    assert {*listed} == {*PLANTS}
    assert max(listed.values()) == 1
    assert len(FOUND) >= 12
    assert {*FOUND.values()} <= {*scenes(), *PARTS, SCHEDULES}
    assert {*ALSO} <= {*scenes(), *PARTS}
    assert {*ALSO.values()} <= {*PLANTS}


def _is_found(fault: str, only: str, start: Callable[[str], str], folder: Path) -> bool:
    """Returns True if a few runs of a scene or part find a fault.

    URLs and functions are beside any scene, so a part must show it by itself.
    """
    start(fault)
    minutes, own = "0.7", {only} if only in (*PARTS, SCHEDULES) else None
    if only == SCHEDULES:  # they are beside any scene, and fire behind three minutes
        minutes, only = SCHEDULED_MINUTES, "delayed"
    for seed in range(1, 1 + SEEDS):
        out = folder / f"seed{seed}"
        ran = run_command(
            *("verify", "--minutes", minutes, "--yes", "--only", only),
            *("--seed", str(seed), "--out", str(out), "--data", str(folder / "data")),
            folder=folder,
            seconds=PATIENCE_SECONDS,
        )
        assert (out / "result.json").exists(), ran.stderr
        result = json.loads((out / "result.json").read_text())
        found = [each for each in result["violations"] if own is None or each["scene"] in own]
        if found:
            assert ran.returncode == 3
            assert only == SCHEDULES or any(each["calls"] for each in found)
            return True
    return False


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "scene"),
    [*sorted(FOUND.items()), *((fault, scene) for scene, fault in ALSO.items())],
)
def test_planted_faults_are_found_and_pairs_of_features_find_one(
    fault: str, scene: str, start_planted: Callable[[str], str], tmp_path: Path
) -> None:
    assert _is_found(fault, scene, start_planted, tmp_path)
