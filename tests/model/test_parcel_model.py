"""The model of a parcel's life in spin: no order of its clients breaks it, planted faults do.

Needs Debian's `spin` and `gcc`; skipped where one of them is not found.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cirrusmq.model.steps import STEPS

MODEL = Path(__file__).with_name("parcel.pml")
STEPS_OF_THE_MODEL = {"claimed", "given_back", "deleted", "moved"}
WITHOUT_FAULT = (
    "MOVER",
    "MOVER ROUNDS=2",
    "PURGER",
    "MOVER PURGER",
    "RECEIVERS=3",
    "RECEIVERS=3 MOVER",
)
PLANTED = (
    "NO_COMPARE",
    "NO_NONCE",
    "KEPT_NONCE",
    "MOVER NO_TOMBSTONE",
    "MOVER MOVE_FIRST",
    "PURGER NO_FLOOR",
)
_MEGABYTES = 500
_SECONDS = 300
"""Of a busy machine; a calm one takes a few."""
needs_spin = pytest.mark.skipif(
    not shutil.which("spin") or not shutil.which("gcc"),
    reason="spin or gcc is not on this machine (Debian: spin, gcc)",
)


def _errors(folder: Path, options: str) -> int:
    """Search all states of the model. Returns how many errors were found, at most 1."""
    given = [f"-D{option}" for option in options.split()]
    _run(folder, "spin", *given, "-a", str(MODEL))
    _run(folder, "gcc", "-w", "-O2", "-DSAFETY", f"-DMEMLIM={_MEGABYTES}", "-o", "pan", "pan.c")
    told = _run(folder, "./pan", "-m10000", "-E")
    found = re.search(r"errors: (\d+)", told)
    assert found, told
    assert "out of memory" not in told, told
    assert "max search depth too small" not in told, told
    return int(found[1])


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    assert not done.returncode, done.stdout + done.stderr
    assert "error:" not in done.stdout, done.stdout
    return done.stdout


def test_steps_of_the_model_are_those_of_the_table() -> None:
    text = MODEL.read_text()
    named = {name for name in re.findall(r"^inline (\w+)\(", text, re.MULTILINE) if name != "put"}

    assert named == STEPS_OF_THE_MODEL
    assert named <= {step.name for step in STEPS}


@pytest.mark.long
@needs_spin
@pytest.mark.parametrize("options", WITHOUT_FAULT)
def test_no_order_breaks_the_model(options: str, tmp_path: Path) -> None:
    assert _errors(tmp_path, options) == 0


@pytest.mark.long
@needs_spin
@pytest.mark.parametrize("options", PLANTED)
def test_a_planted_fault_of_the_model_is_found(options: str, tmp_path: Path) -> None:
    assert _errors(tmp_path, options) == 1
