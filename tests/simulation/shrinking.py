"""The shortest history of a failing seed: leave out actors, steps and faults while it still fails.

Fates and draws belong to names, so what stays plays its part as before, as far as the others'
absence lets it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from tests.simulation.drawing import draw_scenario
from tests.simulation.simulation import Cut, Run, play

from cirrusmq_local.testing import START_MS

T = TypeVar("T")


def shrink(seed: int, most_runs: int = 400) -> Run:
    """The shortest failing run found of a seed that fails."""
    first = play(seed)
    assert first.violation is not None
    return _Shrinker(seed, first, most_runs).shrink()


def tell(seed: int, run: Run) -> str:
    """A failing run in lines that can be read."""
    assert run.violation is not None
    shown = [f"seed {seed}: {run.violation.promise}", *run.history.lines(), "shown by:"]
    return "\n".join([*shown, *(call.line(START_MS) for call in run.violation.calls)])


def broken_rule(run: Run) -> str | None:
    """The promise that was broken, whichever message it was broken for."""
    return re.sub(r"\S*\d\S*", "…", run.violation.promise) if run.violation else None


class _Shrinker:
    def __init__(self, seed: int, run: Run, most_runs: int) -> None:
        self._seed = seed
        self._runs_left = most_runs
        self._best = run
        self._cut = Cut(faults=frozenset(name for name, _ in run.faults))

    def shrink(self) -> Run:
        cast = [each for each in draw_scenario(self._seed).cast if each.part != "meter"]
        self._leave_out(
            [each.name for each in cast],
            lambda names: replace(self._cut, actors=self._cut.actors | set(names)),
        )
        steps = [
            (each.name, number)
            for each in cast
            if each.name not in self._cut.actors
            for number in range(each.steps)
        ]
        self._leave_out(steps, lambda names: replace(self._cut, steps=self._cut.steps | set(names)))
        assert self._cut.faults is not None
        self._leave_out(
            sorted(self._cut.faults),
            lambda names: replace(self._cut, faults=(self._cut.faults or frozenset()) - set(names)),
        )
        return self._best

    def _leave_out(self, candidates: Sequence[T], without: Callable[[Sequence[T]], Cut]) -> None:
        """Leave out as many as possible: all, halves, quarters, … single ones."""
        size = max(1, len(candidates))
        while size:
            for first in range(0, len(candidates), size):
                self._try(without(candidates[first : first + size]))
            size //= 2

    def _try(self, cut: Cut) -> None:
        if cut == self._cut or not self._runs_left:
            return
        self._runs_left -= 1
        run = play(self._seed, cut)
        if broken_rule(run) == broken_rule(self._best):
            self._cut, self._best = cut, run
