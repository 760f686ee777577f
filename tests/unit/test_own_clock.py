"""The clock of a process that calls the tables itself, against the dates of answers."""

from __future__ import annotations

import logging
from email.utils import formatdate

import pytest

from cirrusmq.base.errors import Unavailable
from cirrusmq_in_process.clock import WatchedClock

TRUE = 1_795_000_000.0


class Machine:
    """A machine's two clocks: one that may be set, one that may not."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.set_ahead = 0.0

    def system(self) -> float:
        return TRUE + self.seconds - 100.0 + self.set_ahead

    def steady(self) -> float:
        return self.seconds


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def clock(machine: Machine) -> WatchedClock:
    return WatchedClock(machine.system, machine.steady)


def answer(clock: WatchedClock, machine: Machine, times: int = 20) -> None:
    """Answers of DynamoDB, each some time after the one before."""
    for _ in range(times):
        machine.seconds += 0.13
        true = TRUE + machine.seconds - 100.0
        clock.see(formatdate(int(true), usegmt=True), machine.seconds - 0.005, machine.seconds)


def test_nothing_is_known_before_the_first_answer(clock: WatchedClock, machine: Machine) -> None:
    assert not clock.is_right()
    answer(clock, machine)
    assert clock.is_right()


@pytest.mark.parametrize("off", [-0.8, 0.0, 0.8])
def test_a_clock_within_a_second_is_right(
    clock: WatchedClock, machine: Machine, off: float
) -> None:
    machine.set_ahead = off

    answer(clock, machine)

    assert clock.is_right()


@pytest.mark.parametrize(("off", "said"), [(1.3, "ahead of"), (-1.3, "behind"), (60, "ahead of")])
def test_a_wrong_clock_is_told_once(
    clock: WatchedClock,
    machine: Machine,
    off: float,
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    machine.set_ahead = off
    answer(clock, machine)

    with caplog.at_level(logging.WARNING, "cirrusmq_client"):
        assert not any(clock.is_right() for _ in range(3))

    (line,) = caplog.messages
    assert said in line


def test_a_set_clock_is_found_without_another_answer(clock: WatchedClock, machine: Machine) -> None:
    answer(clock, machine)

    machine.set_ahead = 40.0

    assert not clock.is_right()


def test_a_call_sees_no_time_beyond_the_bound(clock: WatchedClock, machine: Machine) -> None:
    answer(clock, machine)

    machine.set_ahead = 40.0

    true_ms = (TRUE + machine.seconds - 100.0) * 1_000
    assert true_ms <= clock.now_ms() <= true_ms + 1_150


def test_a_corrected_clock_is_used_again(clock: WatchedClock, machine: Machine) -> None:
    machine.set_ahead = 40.0
    answer(clock, machine)
    assert not clock.is_right()

    machine.set_ahead = 0.0
    answer(clock, machine)

    assert clock.is_right()


def test_a_closed_client_waits_no_longer(clock: WatchedClock) -> None:
    clock.close()

    with pytest.raises(Unavailable):
        clock.sleep(30)
