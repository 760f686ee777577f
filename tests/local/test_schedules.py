from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from cirrusmq_local.cloud.clock import ScaledClock
from cirrusmq_local.cloud.schedules import Repeater
from cirrusmq_local.cloud.template import Schedule

EACH_MINUTE = Schedule(function="sweep", seconds=60)


class Runs:
    """A function that notes when it runs."""

    def __init__(self, clock: ScaledClock, wanted: int) -> None:
        self.times: list[int] = []
        self.enough = threading.Event()
        self._clock = clock
        self._wanted = wanted

    def run(self, name: str, event: Any) -> Any:
        assert name == "sweep"
        assert event["detail-type"] == "Scheduled Event"
        self.times.append(self._clock.now_ms())
        if len(self.times) >= self._wanted:
            self.enough.set()
        raise ValueError("told to fail")


def test_a_function_runs_at_once_and_then_in_the_stacks_time_whatever_it_raises(
    tmp_path: Path,
) -> None:
    # A minute of it is 0.1 s.
    clock = ScaledClock(tmp_path / "clock.json", 600)
    runs = Runs(clock, 3)
    thread = threading.Thread(target=Repeater(EACH_MINUTE, runs.run, clock).run_until_stopped)
    thread.start()
    assert runs.enough.wait(5)
    clock.stop()
    thread.join()
    gaps = [after - before for before, after in zip(runs.times, runs.times[1:], strict=False)]
    assert all(gap >= 59_000 for gap in gaps)


def test_a_requested_run_tells_its_failure(clock: ScaledClock) -> None:
    with pytest.raises(ValueError, match="told to fail"):
        Repeater(EACH_MINUTE, Runs(clock, 1).run, clock).run_now()


def test_a_function_never_runs_twice_at_once(clock: ScaledClock) -> None:
    running = threading.Event()
    go_on = threading.Event()
    order: list[str] = []

    def run(name: str, event: Any) -> Any:
        order.append("begins")
        running.set()
        go_on.wait(5)
        order.append("ends")

    repeater = Repeater(EACH_MINUTE, run, clock)
    threads = [threading.Thread(target=repeater.run_now) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert running.wait(5)
    go_on.set()
    for thread in threads:
        thread.join()
    assert order == ["begins", "ends"] * 2
