"""Every order of the clients' steps, up to steps that commute: stateless search.

    r1 r2 ...   r1 was tried first; only if a step of r2 turns out to depend on r1 (they race),
    r2 ──> r1   r2 is tried before it, too. If r1 and r2 commute, r2 r1 leads to the same state:
                so r1 sleeps behind r2, until a step is taken that depends on it

Of all orders that differ in steps that commute alone, one is played to its end: source sets with
sleep sets (Abdulla, Aronis, Jonsson, Sagonas: Optimal dynamic partial order reduction, 2014). A run
goes on from the last state of the one before where another choice is left: `board` goes back to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from tests.exploring.board import Board, Mark
from tests.exploring.calm import Calm
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
    """A state on the way: what can be taken there, what has to be, and what need not be."""

    def __init__(
        self,
        possible: dict[Choice, Step],
        asleep: dict[Choice, Step],
        mark: Mark,
        used: int,
        *,
        reduced: bool,
    ) -> None:
        """mark: of the board there. used: faults on the way to it."""
        self.mark, self.used = mark, used
        self.possible = possible
        self.asleep = asleep
        self._wanted = self._of_one_client() if reduced else [*possible]
        self.chosen = next(self._left(), None)
        self.before = 0
        """Bits: the steps of the way that come before the chosen one in each order, and itself."""

    @property
    def choice(self) -> Choice:
        """The chosen one, of a node that has one."""
        assert self.chosen is not None
        return self.chosen

    def depends(self, earlier: _Node) -> bool:
        """Whether the chosen step depends on that of an earlier node."""
        one, other = earlier.choice, self.choice
        step = earlier.possible[one]
        return not step.commutes(one.fault, self.possible[other], other.fault)

    def want(self, choices: Sequence[Choice]) -> None:
        """One of these has to be taken here: the last of them, unless another one is or sleeps."""
        if not any(each in self._wanted or each in self.asleep for each in choices):
            self._wanted.append(choices[-1])

    def go_on(self) -> bool:
        """Choose the next one that is left; False if none is."""
        if self.chosen is not None:
            self.asleep[self.chosen] = self.possible[self.chosen]
        self.chosen = next(self._left(), None)
        return self.chosen is not None

    def asleep_behind(self) -> dict[Choice, Step]:
        """Which choices sleep behind the one that is taken."""
        step = self.possible[self.choice]
        return {
            choice: sleeping
            for choice, sleeping in self.asleep.items()
            if sleeping.commutes(choice.fault, step, self.choice.fault)
        }

    def _of_one_client(self) -> list[Choice]:
        """A client's step with each of its faults, if none of these sleeps; else all there is.

        Each order has a step of that client, with one of the faults: it races with what has to be
        taken before it.
        """
        for client in dict.fromkeys(choice.client for choice in self.possible):
            own = [choice for choice in self.possible if choice.client == client]
            if not any(choice in self.asleep for choice in own):
                return own
        return [*self.possible]

    def _left(self) -> Iterator[Choice]:
        return (choice for choice in self._wanted if choice not in self.asleep)


def _want_other_orders(way: list[_Node]) -> None:
    """Have the newest step taken before each one with which it races.

    Two steps race if the newer one depends on the older one, and on no step between that does.
    """
    *earlier, newest = way
    races, before = [], 0
    for number in range(len(earlier) - 1, -1, -1):
        node = earlier[number]
        if before >> number & 1:
            continue
        if node.choice.client == newest.choice.client:
            before |= node.before
        elif newest.depends(node):
            races.append(number)
            before |= node.before
    newest.before = before | 1 << len(earlier)
    for number in races:
        between = [
            each for each in range(number + 1, len(earlier)) if not way[each].before >> number & 1
        ]
        earlier[number].want([*_firsts(way, [*between, len(earlier)])])


def _firsts(way: list[_Node], numbers: Sequence[int]) -> Iterator[Choice]:
    """Of some steps of the way the choices that can be the first of them."""
    others = 0
    for number in numbers:
        if not way[number].before & others:
            yield way[number].choice
        others |= 1 << number


class Setting:
    """A plot whose set-up is made once."""

    def __init__(self, plot: Plot, *, writes: bool = True) -> None:
        """writes: whether each write is judged, beside the calls."""
        self._plot = plot
        self._first = Lab(plot)
        self._calm = Calm(writes=writes)
        self._board: Board | None = None

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
        board = self._board = self._board or Board(self._plot, self._first)
        board.begin()
        way: list[_Node] = []
        runs = complete = 0
        while True:
            if runs == most_runs:
                return Explored(runs, complete, ended=False)
            runs += 1
            violation = None
            if _run(board, way, faults, reduced=reduced):
                complete += 1
                lab = board.end()
                if ends is not None:
                    ends.add(lab.end())
                violation = self._calm.judge(lab)
            if violation is not None:
                order = " ".join(str(node.chosen) for node in way)
                return Explored(runs, complete, violation, order)
            while way and not way[-1].go_on():
                way.pop()
            if not way:
                return Explored(runs, complete)
            board.go_back(way[-1].mark)

    def play(self, order: str) -> Violation | None:
        """Play one order again, as `Explored` names it: the clients' code, from its beginning."""
        lab = Lab(self._plot, self._first)
        for name, body in self._plot.clients.items():
            lab.stage.add(name, partial(body, lab, Client(name)))
        try:
            for text in order.split():
                client, _, fault = text.partition("!")
                lab.stage.take(client, fault.replace("-", " "))
            return self._calm.judge(lab)
        finally:
            lab.close()

    def close(self) -> None:
        """Give its stores back."""
        if self._board is not None:
            self._board.close()
        self._first.close()
        self._calm.close()


def _run(board: Board, way: list[_Node], faults: int, *, reduced: bool) -> bool:
    """Take the choice of the last node, then the first one at each state; whether all were taken.

    The board is before that choice.
    """
    node = way[-1] if way else _add_node(board, way, {}, 0, faults, reduced=reduced)
    while True:
        if node.chosen is None:
            way.pop()  # all that could be taken sleeps
            return False
        if reduced:
            _want_other_orders(way)
        asleep = node.asleep_behind() if reduced else {}
        used = node.used + bool(node.choice.fault)
        board.take(*node.choice)
        if not board.steps:
            return True
        node = _add_node(board, way, asleep, used, faults, reduced=reduced)


def _add_node(
    board: Board,
    way: list[_Node],
    asleep: dict[Choice, Step],
    used: int,
    faults: int,
    *,
    reduced: bool,
) -> _Node:
    possible = dict(_choices(board, faulty=used < faults))
    mark = board.mark(len(way) + 1)
    way.append(_Node(possible, asleep, mark, used, reduced=reduced))
    return way[-1]


def _choices(board: Board, *, faulty: bool) -> Iterator[tuple[Choice, Step]]:
    for name, step in board.steps.items():
        yield Choice(name), step
        for fault in step.faults if faulty else ():
            yield Choice(name, fault), step
