from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.local.conftest import open_clock

from cirrusmq_local.cloud import clock as clocks
from cirrusmq_local.cloud.clock import ClockStopped, ScaledClock
from cirrusmq_local.engine.data_errors import DataError


def test_a_clock_begins_with_the_machines_time(tmp_path: Path, hand_time: Any) -> None:
    assert open_clock(tmp_path, hand_time).now_ms() == hand_time.system_ms()


def test_time_runs_as_much_faster_as_the_scale_says(tmp_path: Path, hand_time: Any) -> None:
    clock = open_clock(tmp_path, hand_time, scale=600)
    before = clock.now_ms()
    hand_time.seconds += 2
    assert clock.now_ms() - before == 1_200_000


def test_a_stopped_clock_goes_on_from_its_last_time(tmp_path: Path, hand_time: Any) -> None:
    first = open_clock(tmp_path, hand_time, scale=600)
    hand_time.seconds += 10
    first.stop()
    assert open_clock(tmp_path, hand_time).now_ms() == first.now_ms()


def test_a_killed_clock_does_not_go_back_behind_its_last_time(
    tmp_path: Path, hand_time: Any
) -> None:
    first = open_clock(tmp_path, hand_time, scale=600)
    hand_time.seconds += 10
    first.keep()
    hand_time.seconds += 1.9
    said = first.now_ms()
    assert open_clock(tmp_path, hand_time, scale=600).now_ms() >= said


def test_being_killed_costs_an_unscaled_clock_no_time(tmp_path: Path, hand_time: Any) -> None:
    first = open_clock(tmp_path, hand_time)
    hand_time.seconds += 10
    first.keep()
    assert open_clock(tmp_path, hand_time).now_ms() == hand_time.system_ms()


def test_a_sleep_takes_as_much_less_as_the_scale_says(tmp_path: Path) -> None:
    clock = ScaledClock(tmp_path / "clock.json", 36_000)
    before = clock.now_ms()
    clock.sleep(3_600)
    # An hour of it is a tenth of a second.
    assert 3_600_000 <= clock.now_ms() - before < 20 * 3_600_000


def test_whoever_sleeps_is_woken_when_the_clock_stops(clock: ScaledClock) -> None:
    woken = threading.Event()

    def sleep() -> None:
        try:
            clock.sleep(3_600)
        except ClockStopped:
            woken.set()

    thread = threading.Thread(target=sleep)
    thread.start()
    clock.stop()
    assert woken.wait(5)
    thread.join()
    with pytest.raises(ClockStopped):
        clock.sleep(0)


def fail(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


WRITES = ("open", "pwrite", "ftruncate", "fsync")
"""The calls of a keeping, in this order."""


@pytest.mark.parametrize("failing", WRITES)
@pytest.mark.parametrize("scale", [1, 60, 36_000])
def test_an_unsaved_clock_does_not_go_back_over_a_restart(
    tmp_path: Path,
    hand_time: Any,
    monkeypatch: pytest.MonkeyPatch,
    failing: str,
    scale: float,
) -> None:
    first = open_clock(tmp_path, hand_time, scale)
    first.keep()
    before = first.now_ms()
    said = []
    for _ in range(100):
        hand_time.seconds += 0.7
        with monkeypatch.context() as broken:
            broken.setattr(os, failing, fail)
            with pytest.raises(OSError, match="No space"):
                first.keep()
        said.append(first.now_ms())
    assert said == sorted(said)
    assert said[-1] > before
    again = open_clock(tmp_path, hand_time, scale)
    assert again.now_ms() >= said[-1]


def test_a_clock_ahead_does_not_go_back_with_the_machines(tmp_path: Path, hand_time: Any) -> None:
    first = open_clock(tmp_path, hand_time)
    first.keep()
    hand_time.seconds += 1
    said = [first.now_ms()]
    system_ms = hand_time.system_ms
    hand_time.system_ms = lambda: system_ms() - 3_600_000
    first._system_ms = hand_time.system_ms
    for _ in range(10):
        said.append(first.now_ms())
        hand_time.seconds += 0.5
        first.keep()
    assert said == sorted(said)
    assert first.now_ms() - said[0] >= 4_000
    assert open_clock(tmp_path, hand_time).now_ms() >= first.now_ms()


def test_a_clock_goes_on_as_soon_as_it_can_be_kept_again(
    tmp_path: Path, hand_time: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "KEEP_EVERY_SECONDS", 0.001)
    clock = open_clock(tmp_path, hand_time, scale=60)
    clock.keep()
    started_ms = clock.now_ms()
    failures: list[OSError] = []
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", fail)
        thread = threading.Thread(
            target=clock.keep_until_stopped, args=(failures.append,), daemon=True
        )
        thread.start()
        while len(failures) < 3:
            time.sleep(0.001)
        hand_time.seconds += 1_000
        stood_ms = clock.now_ms()
    assert stood_ms == hand_time.system_ms()
    ends = time.monotonic() + 10
    while clock.now_ms() - started_ms < 60_000_000 and time.monotonic() < ends:
        time.sleep(0.001)
    assert clock.now_ms() - started_ms == 60_000_000
    clock.stop()
    thread.join()
    assert {failure.errno for failure in failures} == {errno.ENOSPC}


def test_keeping_the_time_takes_no_space(tmp_path: Path, hand_time: Any) -> None:
    """A full disk has none: the file is never replaced by another one."""
    clock = open_clock(tmp_path, hand_time, scale=60)
    clock.keep()
    (kept,) = tmp_path.iterdir()
    first = kept.stat()
    hand_time.seconds += 10_000_000
    clock.keep()
    assert (kept.stat().st_ino, kept.stat().st_size) == (first.st_ino, first.st_size)
    assert list(tmp_path.iterdir()) == [kept]


def test_a_time_told_after_the_end_is_not_ahead_of_a_restart(
    tmp_path: Path, hand_time: Any
) -> None:
    clock = open_clock(tmp_path, hand_time, scale=600)
    clock.keep()
    hand_time.seconds += 1
    clock.stop()
    # Calls that are under way still ask for the time.
    hand_time.seconds += 3
    said = clock.now_ms()
    clock.stop()
    assert open_clock(tmp_path, hand_time, scale=600).now_ms() >= said


def test_a_sleep_at_a_standing_clock_does_not_spin(tmp_path: Path, hand_time: Any) -> None:
    clock = open_clock(tmp_path, hand_time, scale=36_000)
    clock.keep()
    hand_time.seconds += 100
    began = time.monotonic()
    clock.sleep(0.001)
    assert time.monotonic() - began >= clocks.STANDSTILL_PAUSE_SECONDS


def test_a_clock_without_its_file_goes_on_from_the_stores_time(
    tmp_path: Path, hand_time: Any
) -> None:
    clock = open_clock(tmp_path, hand_time)
    later_ms = hand_time.system_ms() + 5_000
    clock.start_after(later_ms)
    assert clock.now_ms() == later_ms
    assert clock.started_ahead_ms == 5_000
    clock.start_after(later_ms - 60_000)
    assert clock.now_ms() == later_ms


@pytest.mark.parametrize("text", ["{", "[]", '{"now": 5}', '{"now_ms": "5"}', '{"now_ms": -1}'])
def test_a_damaged_clock_is_told(tmp_path: Path, hand_time: Any, text: str) -> None:
    path = tmp_path / "clock.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"clock.json is damaged.*: remove it"):
        open_clock(tmp_path, hand_time)
    path.write_text('{"now_ms": 99999999999999}', encoding="utf-8")
    with pytest.raises(DataError, match=r"clock.json holds a time after the year 2255"):
        open_clock(tmp_path, hand_time)
