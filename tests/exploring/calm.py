"""What is left when the clients of a scenario are done: drained, and judged with what they did.

    order 1 ──> an end ──────────> drained, once ──> checks of order 1 and what the drain received
    order 2 ──> the same end ──────────────────────> checks of order 2 and what the drain received

Hundreds of orders lead to a handful of ends. Draining an end takes longer than an order's steps.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from tests.exploring.lab import WEB, Lab
from tests.simulation.check_writes import check_writes
from tests.simulation.checks import check_calls
from tests.simulation.draining import Drain, live_parcels, source_of
from tests.simulation.machinery import running

from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.history import Call, History, Violation
from cirrusmq_local.judging.places import Place
from cirrusmq_local.judging.scenario import NEWS, Scenario

_BEHIND = 1_000_000
"""Moments of a history before a drain: what it did has the same moments behind each order."""
_MINUTE_MS = 60_000
_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class _Drained:
    """An end that was drained."""

    lab: Lab
    drain: Drain
    calls: tuple[Call, ...]


class Calm:
    """The ends of a scenario."""

    def __init__(self, *, writes: bool) -> None:
        """writes: whether each write is judged, beside the calls."""
        self._writes = writes
        self._drained: dict[Hashable, _Drained] = {}
        self._lawful: set[Hashable] = set()
        self._scenario: Scenario | None = None

    def judge(self, lab: Lab) -> Violation | None:
        """Drain what is left, and judge all that happened."""
        lab.stage.jump(1)  # the checks tell before and after by milliseconds
        lab.history.moment = _BEHIND
        end = lab.begins()
        if end not in self._drained:
            drained = self._drained[end] = _drain(lab)
            unlawful = next(check_writes(drained.lab), None) if self._writes else None
            if unlawful is not None:
                return unlawful
        drained = self._drained[end]
        history = History([*lab.history.calls, *drained.calls], lab.history.faults)
        drained.lab.history = history
        self._scenario = self._scenario or lab.plot.scenario
        violation = check_calls(self._scenario, drained.lab, drained.drain)
        if violation is not None or not self._writes:
            return violation
        return next(check_writes(lab, self._lawful), None)

    def close(self) -> None:
        """Give the stores back."""
        for drained in self._drained.values():
            drained.lab.close()


class _Drain(Drain):
    """Does what a receive asks for behind it: nobody else would, and it would look blocked."""

    def __init__(self, lab: Lab, calm: Client) -> None:
        super().__init__(lab, lab.plot.scenario)
        self._lab, self._calm = lab, calm

    def _drain(self, client: Client, place: Place) -> int:
        drained = super()._drain(client, place)
        self._lab.run_asked(self._calm)
        return drained


def _drain(end: Lab) -> _Drained:
    """Drain a copy of the lab. Its store's stream has what the drain wrote."""
    lab, calm = Lab(end.plot, end), Client("calm")
    if lab.has_failed("fan_out"):
        lab.fan_out(calm)  # the stream repeats a batch that failed
    lab.opened_at = lab.engine.stream_position(lab.tables.messages)
    lab.run_asked(calm)
    if lab.history.faults:
        _go_on_with_operations(lab, calm)
    if lab.plot.url:
        _push_on(lab, calm)
    if lab.plot.halves:
        _decide_halves(lab)
    for left in range(_ROUNDS, 0, -1):
        drain = _Drain(lab, calm)
        drain.run()
        if not drain.blocked or left == 1:
            break
        lab.run(calm, "sweep", "sweep", "", {}, {})
        lab.run_asked(calm)
    return _Drained(lab, drain, tuple(lab.history.calls[len(end.history.calls) :]))


def _go_on_with_operations(lab: Lab, calm: Client) -> None:
    """Have the sweep find operations whose worker died, until none is left."""
    for _ in range(_ROUNDS):
        if not running(lab.engine, lab.tables.directory):
            return
        lab.stage.jump(_MINUTE_MS)
        lab.run(calm, "sweep", "sweep", "", {}, {})
        lab.run_asked(calm)


def _push_on(lab: Lab, calm: Client) -> None:
    """Have the sweep look for messages whose worker died, until none is left.

    A call that resumes the URL may have failed.
    """
    if lab.history.faults:
        lab.pause_url(calm, "resume")
    auditor = lab.auditor()
    source = source_of(Place(f"{NEWS.name}/{WEB}", topic=True), auditor)
    for _ in range(_ROUNDS):
        while lab.asked:
            lab.run_asked(calm)
        if not live_parcels(auditor, source):
            return
        lab.stage.jump(_MINUTE_MS)
        lab.run(calm, "sweep", "sweep", "", {}, {})


def _decide_halves(lab: Lab) -> None:
    """Decide what producers left, once their checks are over; then ask how it was decided."""
    decider = lab.decider("probe")
    lab.stage.jump(_MINUTE_MS)
    decider.finish()
    decider.probe()
