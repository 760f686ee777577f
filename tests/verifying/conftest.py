"""A service with a fault planted into it, as a process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.stack import environment

ROOT = Path(__file__).parents[2]


@pytest.fixture
def start_planted(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Starts it on `tmp_path / "data"`; returns its URL."""
    started: list[subprocess.Popen[str]] = []

    def start(fault: str) -> str:
        data = ["--data", str(tmp_path / "data"), "--port", "0", "--dialect-port", "0"]
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
