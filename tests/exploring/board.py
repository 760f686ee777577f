"""A scenario at some state of its clients' steps: one can be taken, and all taken back.

mark 0 ── r1 ── mark 1 ── r2 ── mark 2 ── …      to try r2 first: back to mark 0, which leaves
                                                 the store as it was; nothing is played again
"""

from __future__ import annotations

from typing import NamedTuple

from tests.exploring.lab import Lab, Plot
from tests.exploring.learned import Given, Learned, Need, Owners, State
from tests.exploring.turns import Step
from tests.simulation.environments import Event

from cirrusmq_local.judging.history import Call, History


class _Ran(NamedTuple):
    """A client ran from one moment of its own history to another one."""

    client: str
    since: int
    until: int


class Mark(NamedTuple):
    """A state to which a board can go back."""

    number: int
    positions: dict[str, int]
    now_ms: int
    ran: int
    asked: list[tuple[str, Event]]
    executions: set[str]
    states: dict[str, State]
    done: dict[str, State]


class Board:
    """The clients of a scenario and the one store."""

    def __init__(self, plot: Plot, first: Lab) -> None:
        self._plot = plot
        self._first = first.history
        self._lab = Lab(plot, first)
        owners: Owners = {}
        self._learned = {name: Learned(plot, first, name, owners) for name in plot.clients}
        self._states: dict[str, State] = {}
        self._done: dict[str, State] = {}
        self._ran: list[_Ran] = []
        for name, learned in self._learned.items():
            self._go_on(name, learned.first, self._first.moment)
        self._beginning = self.mark(0)

    @property
    def steps(self) -> dict[str, Step]:
        """The next step of each client that is not done."""
        return {
            name: state.wants
            for name, state in self._states.items()
            if isinstance(state.wants, Step)
        }

    def take(self, name: str, fault: str = "") -> None:
        """Have a client take its step."""
        state = self._states.pop(name)
        assert isinstance(state.wants, Step)
        now_ms = max(self._lab.stage.now_ms(), state.wants.due_ms)
        self._lab.stage.set_clock(now_ms)
        later = self._learned[name].after(state, Given((fault, now_ms), (fault, now_ms)))
        self._go_on(name, later, state.moment)

    def mark(self, number: int) -> Mark:
        """Note the state; each mark's number is above those before it."""
        lab = self._lab
        return Mark(
            number=number,
            positions=dict(lab.engine.mark(number)),
            now_ms=lab.stage.now_ms(),
            ran=len(self._ran),
            asked=[*lab.asked],
            executions={*lab.executions},
            states={**self._states},
            done={**self._done},
        )

    def go_back(self, mark: Mark) -> None:
        """Go back to a state."""
        lab = self._lab
        lab.engine.go_back(mark.number, mark.positions)
        lab.stage.set_clock(mark.now_ms)
        lab.asked, lab.executions = [*mark.asked], {*mark.executions}
        self._states, self._done = {**mark.states}, {**mark.done}
        del self._ran[mark.ran :]

    def begin(self) -> None:
        """Go back to the beginning, each client before its first step."""
        self.go_back(self._beginning)

    def end(self) -> Lab:
        """The lab with all clients done, and their calls in its history.

        It is good until the board goes back.
        """
        calls = [*self._first.calls]
        faults = [*self._first.faults]
        moments: dict[tuple[str, int], int] = {}
        moment = self._first.moment
        for ran in self._ran:
            for own in range(ran.since + 1, ran.until + 1):
                moment += 1
                moments[ran.client, own] = moment
        ended: list[Call] = []
        for name, state in self._done.items():
            for call, begun, over in state.calls:
                call.begun, call.ended = moments[name, begun], moments.get((name, over), over)
                ended.append(call)
            faults += state.faults
        calls += sorted(ended, key=lambda call: call.begun)
        self._lab.history = History(calls, sorted(faults, key=lambda each: each[0]), moment)
        return self._lab

    def close(self) -> None:
        """End the clients that are not done, and give the store back."""
        for learned in self._learned.values():
            learned.close()
        self._lab.close()

    def _go_on(self, name: str, state: State, since: int) -> None:
        while isinstance(state.wants, Need):
            state = self._learned[name].after_need(state, state.wants, self._lab)
        self._ran.append(_Ran(name, since, state.moment))
        (self._done if state.wants is None else self._states)[name] = state
