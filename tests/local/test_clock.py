from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from cirrusmq_local.clock import ClockStopped, ScaledClock


def open_clock(folder: Path, hand_time: Any, scale: float = 1.0) -> ScaledClock:
    return ScaledClock(
        folder / "clock.json",
        scale,
        system_ms=hand_time.system_ms,
        monotonic=hand_time.monotonic,
    )


def test_a_clock_begins_with_the_machines_time(tmp_path: Path, hand_time: Any) -> None:
    assert open_clock(tmp_path, hand_time).now_ms() == hand_time.system_ms()


def test_time_runs_as_much_faster_as_the_scale_says(tmp_path: Path, hand_time: Any) -> None:
    clock = open_clock(tmp_path, hand_time, scale=600)
    before = clock.now_ms()
    hand_time.seconds += 2
    assert clock.now_ms() - before == 1_200_000


def test_a_clock_that_was_stopped_goes_on_where_it_stopped(tmp_path: Path, hand_time: Any) -> None:
    first = open_clock(tmp_path, hand_time, scale=600)
    hand_time.seconds += 10
    first.stop()
    assert open_clock(tmp_path, hand_time).now_ms() == first.now_ms()


def test_a_killed_clock_does_not_go_back_behind_what_it_said(
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
