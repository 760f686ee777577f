"""The clock of the deployed functions, whose system may set its clock."""

from __future__ import annotations

import pytest

from cirrusmq.runtime.clock import SystemClock

STARTED_MS = 1_795_000_000_000


class Machine:
    """A machine's clocks: time passes on both, and the one that tells the date may be set."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.set_by = 0.0

    def clock(self) -> SystemClock:
        return SystemClock(
            system_ms=lambda: STARTED_MS + int((self.passed + self.set_by) * 1_000),
            monotonic=lambda: self.passed,
        )


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_a_clock_tells_the_machines_time(machine: Machine) -> None:
    clock = machine.clock()
    for passed in (0.0, 0.5, 10.0, 1_000.0):
        machine.passed = passed
        assert clock.now_ms() == STARTED_MS + int(passed * 1_000)


@pytest.mark.parametrize("forward", [2, 3_600, 86_400])
def test_a_wait_ends_after_the_clock_was_set_forward_and_back(
    machine: Machine, forward: float
) -> None:
    clock = machine.clock()
    machine.set_by = forward
    deadline_ms = clock.now_ms() + 28_000
    machine.set_by = 0
    waited = 0
    while clock.now_ms() < deadline_ms:
        machine.passed += 0.05
        waited += 1
        assert waited * 0.05 < 30, "the API gives a call up after 30 s"
    assert waited * 0.05 >= 28 - 0.1


def test_time_never_goes_back_and_meets_the_machines_again(machine: Machine) -> None:
    clock = machine.clock()
    machine.set_by = 10
    told = [clock.now_ms()]
    machine.set_by = 0
    for _ in range(2_000):
        machine.passed += 0.1
        told.append(clock.now_ms())
    assert told == sorted(told)
    assert told[-1] == STARTED_MS + int(machine.passed * 1_000)


def test_a_machine_is_followed_after_its_sleep(machine: Machine) -> None:
    """The monotonic clock may stop meanwhile."""
    clock = machine.clock()
    machine.set_by = 3_600
    assert clock.now_ms() == STARTED_MS + 3_600_000
