"""What clients do, remembered: a client's code runs once for each sequence of answers.

    client   begin, a step ──── Query ────> answer 1 ── UpdateItem ...
                                  └───────> answer 2 ── end, done

A client does the same whenever it is answered the same: its environments, caches and random numbers
are its own, and it reads the clock at its steps. So an order of steps is played by what is
remembered of each client, on the one store; the client's code runs only if it gets an answer that
it never got before there, in a new greenlet that is given the earlier answers again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import msgspec
from greenlet import greenlet
from tests.exploring.footprints import footprint
from tests.exploring.lab import Lab, Plot
from tests.exploring.turns import Step, Turns
from tests.simulation.chaos import READS

from cirrusmq_local.engine import Engine
from cirrusmq_local.engine.errors import EngineError
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.history import Call

Owners: TypeAlias = dict[tuple[str, str], str]


class Need(NamedTuple):
    """What a client needs of what all share: a call of the store, or what functions ask for."""

    kind: Literal["execute", "read_stream", "ask_for", "take_asked", "start"]
    given: tuple[Any, ...]
    own: bool = False
    """Whether nobody else can change the answer."""


class Given(NamedTuple):
    """The answer to a client's need, or the fault and the time with which it takes a step."""

    key: Hashable
    value: Any
    """As it is given: a copy, if the client might change it."""

    def fresh(self) -> Any:
        """The value, to be given once more."""
        if isinstance(self.value, dict | list):
            return copy.deepcopy(self.value)
        return self.value


class State:
    """A state of a client: what it does next, and what it did up to there."""

    __slots__ = ("before", "calls", "faults", "given", "later", "moment", "wants")

    def __init__(
        self, wants: Step | Need | None, moment: int, before: State | None, given: Given | None
    ) -> None:
        self.wants = wants
        """None if it is done."""
        self.moment = moment
        """Moments of its own history until then."""
        self.before, self.given = before, given
        self.later: dict[Hashable, State] = {}
        self.calls: list[tuple[Call, int, int]] = []
        """Of a client that is done: its calls with their moments in its own history."""
        self.faults: list[tuple[int, str]] = []


class Learned:
    """All that is known of one client."""

    def __init__(self, plot: Plot, like: Lab, name: str, owners: Owners) -> None:
        self._begin = partial(_Life, plot, like, name, owners)
        self._life = self._begin()
        self.first = self._at = State(self._life.go_on(None), self._life.moment, None, None)

    def after_need(self, state: State, need: Need, lab: Lab) -> State:
        """The state behind a need, which is served by the lab that has what is shared."""
        if need.own and state.later:
            (later,) = state.later.values()
            return later
        return self.after(state, _serve(lab, need))

    def after(self, state: State, given: Given) -> State:
        """The state behind another one."""
        later = state.later.get(given.key)
        if later is None:
            later = state.later[given.key] = self._learn(state, given)
        return later

    def _learn(self, state: State, given: Given) -> State:
        life = self._life if self._at is state else self._again(state)
        wants = life.go_on(given.fresh())
        learned = State(wants, life.moment, state, given)
        if wants is None:
            learned.calls, learned.faults = life.done()
        self._life, self._at = life, learned
        return learned

    def _again(self, state: State) -> _Life:
        """The client in a state, from its beginning."""
        way: list[Given] = []
        while state.given is not None and state.before is not None:
            way.append(state.given)
            state = state.before
        life = self._begin()
        life.go_on(None)
        for given in reversed(way):
            life.go_on(given.fresh())
        return life

    def close(self) -> None:
        """End its code, if it is not done."""
        self._life.end()


class _Life:
    """A client's code, in a lab of its own that asks the hub for all that is shared."""

    def __init__(self, plot: Plot, like: Lab, name: str, owners: Owners) -> None:
        self._lab = _OwnLab(plot, like, _OneTurn(like.stage.now_ms(), plot.alone, owners))
        self._before = len(self._lab.history.calls), len(self._lab.history.faults)
        self._client = greenlet(partial(plot.clients[name], self._lab, Client(name)))
        self._lab.stage.name(self._client, name)

    @property
    def moment(self) -> int:
        return self._lab.history.moment

    def go_on(self, value: Any) -> Step | Need | None:
        """Run the client to its next need; None if it is done."""
        wants = self._client.switch(value) if self._client else self._client.switch()
        return wants if isinstance(wants, Step | Need) else None

    def done(self) -> tuple[list[tuple[Call, int, int]], list[tuple[int, str]]]:
        calls, faults = self._before
        history = self._lab.history
        own = [(call, call.begun, call.ended) for call in history.calls[calls:]]
        return own, history.faults[faults:]

    def end(self) -> None:
        if self._client and not self._client.dead:
            self._client.throw()


class _OneTurn(Turns):
    """The stage of one client: it asks the hub."""

    def name(self, client: greenlet, name: str) -> None:
        self._names[client] = name

    def give_way(self, step: Step) -> str:
        fault, self._now_ms = self._hub.switch(step)
        return str(fault)


class _OwnLab(Lab):
    """The lab of one client."""

    stage: _OneTurn

    def __init__(self, plot: Plot, like: Lab, stage: _OneTurn) -> None:
        self._hub = greenlet.getcurrent()
        super().__init__(plot, like, stage, cast(Engine, _Shared(self._need)))

    def ask_for(self, role: str, event: Any) -> None:
        self._need("ask_for", role, event)

    def take_asked(self) -> list[tuple[str, Any]]:
        return [(role, event) for role, event in self._need("take_asked")]

    def start(self, name: str, event: Any) -> None:
        self._need("start", name, event)

    def _need(self, kind: Any, *given: Any) -> Any:
        if kind != "execute":
            return self._hub.switch(Need(kind, copy.deepcopy(given)))
        operation, request = msgspec.msgpack.decode(msgspec.msgpack.encode(given))
        own = operation in READS and self.stage.is_own(footprint(operation, request))
        return self._hub.switch(Need(kind, (operation, request), own))


class _Shared:
    """In place of an engine: it has the hub make the calls."""

    def __init__(self, need: Callable[..., Any]) -> None:
        self._need = need

    def execute(self, operation: str, request: Any) -> Any:
        answer = self._need("execute", operation, request)
        if isinstance(answer, EngineError):
            raise answer
        return msgspec.msgpack.decode(answer)

    def read_stream(self, *given: Any) -> Any:
        return self._need("read_stream", *given)


def _serve(lab: Lab, need: Need) -> Given:
    if need.kind == "execute":
        try:
            answer = msgspec.msgpack.encode(lab.engine.execute(*need.given))
        except EngineError as error:
            return Given(repr((error.code, error.message, error.extra)), error)
        return Given(answer, answer)
    value = getattr(lab.engine if need.kind == "read_stream" else lab, need.kind)(*need.given)
    return Given(repr(value), value)
