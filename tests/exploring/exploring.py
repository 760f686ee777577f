"""Every order of the clients' steps, up to steps that commute: stateless search with sleep sets.

    r1 r2 ...   r2 was tried first; if r1 and r2 commute, r2 r1 leads to the same state:
    r2 ──> r1   so r1 sleeps behind r2, until a step is taken that depends on it

Of all orders that differ in steps that commute alone, one is played to its end; the others are cut
once every step that could be taken sleeps. Each run begins anew and takes the steps of the one
before, up to where another choice is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from tests.exploring.lab import Lab, Plot
from tests.exploring.turns import Step

from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.history import Violation


class Choice(NamedTuple):
    """A client's step, perhaps with a fault."""

    client: str
    fault: str = ""

    def __str__(self) -> str:
        return f"{self.client}!{self.fault.replace(' ', '-')}" if self.fault else self.client


class Explored(NamedTuple):
    """What a search found."""

    runs: int
    complete: int
    """Orders that were played to their end; the others were cut."""
    violation: Violation | None = None
    order: str = ""
    """Of the run that has the violation: `play` takes it."""
    ended: bool = True
    """Whether nothing was left to be played, or a violation was found."""


class _Node:
    """A state on the way: what could be taken there, and what need not be."""

    def __init__(self, possible: dict[Choice, Step], asleep: dict[Choice, Step]) -> None:
        self.possible = possible
        self.asleep = asleep
        self.chosen = next(self.awake(), None)

    def awake(self) -> Iterator[Choice]:
        """The choices that are left."""
        return (choice for choice in self.possible if choice not in self.asleep)

    def go_on(self) -> bool:
        """Choose the next one that is left; False if none is."""
        if self.chosen is not None:
            self.asleep[self.chosen] = self.possible[self.chosen]
        self.chosen = next(self.awake(), None)
        return self.chosen is not None

    def asleep_behind(self) -> dict[Choice, Step]:
        """Which choices sleep behind the one that is taken."""
        assert self.chosen is not None
        step = self.possible[self.chosen]
        return {
            choice: sleeping
            for choice, sleeping in self.asleep.items()
            if sleeping.commutes(choice.fault, step, self.chosen.fault)
        }


class Setting:
    """A plot whose set-up is made once."""

    def __init__(self, plot: Plot) -> None:
        self._plot = plot
        self._first = Lab(plot)

    def begin(self) -> Lab:
        """The beginning of a run, each client before its first step."""
        lab = Lab(self._plot, self._first)
        for name, body in self._plot.clients.items():
            lab.stage.add(name, partial(body, lab, Client(name)))
        return lab

    def explore(
        self,
        faults: int = 0,
        *,
        reduced: bool = True,
        ends: set[str] | None = None,
        most_runs: int | None = None,
    ) -> Explored:
        """Play every order with at most so many faults; stops at a violation.

        reduced: False plays orders that differ in steps that commute alone, too.
        ends: is given the end of each run: what the calls were answered, and what is stored.
        most_runs: stops after so many, without an end; None plays all.
        """
        way: list[_Node] = []
        runs = complete = 0
        while True:
            if runs == most_runs:
                return Explored(runs, complete, ended=False)
            runs += 1
            lab = self.begin()
            try:
                done = self._run(lab, way, faults, reduced=reduced)
                complete += done
                if done and ends is not None:
                    ends.add(lab.end())
                violation = lab.judge() if done else None
            finally:
                _end(lab)
            if violation is not None:
                order = " ".join(str(node.chosen) for node in way)
                return Explored(runs, complete, violation, order)
            while way and not way[-1].go_on():
                way.pop()
            if not way:
                return Explored(runs, complete)

    def play(self, order: str) -> Violation | None:
        """Play one order again, as `Explored` names it."""
        lab = self.begin()
        try:
            for text in order.split():
                client, _, fault = text.partition("!")
                lab.stage.take(client, fault.replace("-", " "))
            return lab.judge()
        finally:
            _end(lab)

    def close(self) -> None:
        """Give its store back."""
        _end(self._first)

    def _run(self, lab: Lab, way: list[_Node], faults: int, *, reduced: bool) -> bool:
        """Take the steps of `way`, then the first choice at each state; whether all were taken."""
        asleep: dict[Choice, Step] = {}
        depth = used = 0
        while lab.stage.steps:
            if depth == len(way):
                possible = dict(_choices(lab, faulty=used < faults))
                way.append(_Node(possible, asleep))
            node = way[depth]
            if node.chosen is None:
                way.pop()  # all that could be taken sleeps
                return False
            asleep = node.asleep_behind() if reduced else {}
            used += bool(node.chosen.fault)
            lab.stage.take(*node.chosen)
            depth += 1
        return True


def _choices(lab: Lab, *, faulty: bool) -> Iterator[tuple[Choice, Step]]:
    for name, step in lab.stage.steps.items():
        yield Choice(name), step
        for fault in step.faults if faulty else ():
            yield Choice(name, fault), step


def _end(lab: Lab) -> None:
    lab.stage.close()
    lab.engine.close()
