"""Clients that give way before each call of the store, so that anybody may choose who is next.

    client  begin ── GetItem ── Query ── UpdateItem ── end      each of these is a step
    hub       chooses a client, and perhaps a fault of its step; the client runs to its next step

A client is a greenlet. Time stands still but for steps that sleep: each moves the clock to the
time until which its client sleeps.

Calls of partitions that one client alone touches depend on no step of another one. A plot may name
them (`alone`): then they are no steps, and another client's call there fails the run. A sleep fails
it, too: what is no step would always read the clock before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from greenlet import greenlet
from tests.exploring.footprints import Footprint, Touched, footprint, meet
from tests.simulation.chaos import READS, Fate
from tests.simulation.stage import Stage
from tests.simulation.wire import Wire

from cirrusmq_local.testing import START_MS

Kind = Literal["begin", "end", "sleep", "call"]
OF_READS = ("throttled", "crash before")
OF_WRITES = ("lost", "throttled", "crash before", "crash after", "twice")
OF_POSTS = ("refused", "lost", "crash after")
_UNTOUCHED = frozenset({"throttled", "crash before"})
"""Faults with which a call does not reach the store."""


B = TypeVar("B")


class Step(NamedTuple):
    """The step that a client takes next."""

    client: str
    kind: Kind
    what: str = ""
    """Of a call its operation."""
    touches: Footprint = ()
    faults: tuple[str, ...] = ()
    """It may take it with each of these."""
    due_ms: int = 0
    """Of a sleep: the time at its end, if it is not later already."""

    def commutes(self, fault: str, other: Step, others_fault: str) -> bool:
        """Whether the order of two steps of different clients makes no difference.

        The checks ask which call ended before another one began: begin and end have an order.
        Faults share a budget.
        """
        if self.client == other.client or "sleep" in (self.kind, other.kind):
            return False
        if {self.kind, other.kind} == {"begin", "end"} or (fault and others_fault):
            return False
        if fault in _UNTOUCHED or others_fault in _UNTOUCHED:
            return True
        return not meet(self.touches, other.touches)


class Turns(Stage):
    """The clock, and the clients' turns."""

    def __init__(
        self,
        now_ms: int = START_MS,
        alone: str = "",
        owners: dict[tuple[str, str], str] | None = None,
    ) -> None:
        """alone: a pattern of the partitions that one client alone touches.

        owners: which client that is, for each of these; clients on stages of their own share it.
        """
        super().__init__(now_ms)
        self._alone = re.compile(alone) if alone else None
        self._owners: dict[tuple[str, str], str] = {} if owners is None else owners
        self._hub = greenlet.getcurrent()
        self._clients: dict[str, greenlet] = {}
        self._names: dict[greenlet, str] = {}
        self.steps: dict[str, Step] = {}
        """The next step of each client that is not done."""

    def add(self, name: str, body: Callable[[], object]) -> None:
        """Have a client run up to its first step."""
        client = greenlet(body, parent=self._hub)
        self._clients[name], self._names[client] = client, name
        self._go_on(name, "")

    def take(self, name: str, fault: str = "") -> None:
        """Have a client take its step."""
        self._go_on(name, fault)

    def ask(
        self,
        kind: Kind,
        what: str = "",
        touches: Footprint = (),
        faults: Sequence[str] = (),
        due_ms: int = 0,
    ) -> str:
        """Give way before a step. Returns the fault with which it is taken; none outside."""
        current = greenlet.getcurrent()
        name = self._names.get(current)
        if name is None or self._is_alone(name, kind, touches):
            return ""
        return self.give_way(Step(name, kind, what, touches, tuple(faults), due_ms))

    def give_way(self, step: Step) -> str:
        """Have the hub choose who is next. Returns the fault with which the step is taken."""
        return str(self._hub.switch(step))

    def set_clock(self, now_ms: int) -> None:
        """Set the time, also back: of a state that is returned to."""
        self._now_ms = now_ms

    def pause(self, ms: int, tie: int = 0) -> None:
        """Sleep: a step at whose end the clock is at least so much later than now."""
        due_ms = self._now_ms + max(0, ms)
        self.ask("sleep", due_ms=due_ms)
        self._now_ms = max(self._now_ms, due_ms)

    def side_by_side(self, bodies: Sequence[Callable[[], B]]) -> list[B]:
        """Make the calls one by one: a client has one thread."""
        return [body() for body in bodies]

    def window(self, limit: int) -> Any:
        """Calls one by one, in place of calls side by side."""
        return _OneByOne()

    def close(self) -> None:
        """End the clients that are not done."""
        for client in self._clients.values():
            if not client.dead:
                client.throw()

    def is_own(self, touches: Footprint) -> bool:
        """Whether a call is of partitions that one client alone touches."""
        return bool(self._alone and touches) and all(map(self._alone_in, touches))

    def _alone_in(self, touched: Touched) -> bool:
        return self._alone is not None and bool(self._alone.fullmatch(touched.pk))

    def _is_alone(self, name: str, kind: Kind, touches: Footprint) -> bool:
        if self._alone is None:
            return False
        assert kind != "sleep", "a client sleeps beside one whose calls are not all steps"
        own = [self._alone_in(each) for each in touches]
        for each in (each for each, mine in zip(touches, own, strict=True) if mine):
            owner = self._owners.setdefault((each.table, each.pk), name)
            assert owner == name, f"{owner} and {name} touch {each.pk}"
        return kind == "call" and bool(own) and all(own)

    def _go_on(self, name: str, fault: str) -> None:
        self.steps.pop(name, None)
        client = self._clients[name]
        step = client.switch(fault) if client else client.switch()
        if isinstance(step, Step):
            self.steps[name] = step


class _OneByOne:
    """Calls as `Window` of the core has them, each made when it is begun."""

    def __init__(self) -> None:
        self._ended: list[Any] = []

    def __enter__(self) -> _OneByOne:
        return self

    def __exit__(self, *raised: object) -> None:
        """Nothing is under way."""

    def start(self, call: Callable[[], Any]) -> None:
        """Make a call."""
        self._ended.append(call())

    def wait(self, seconds: float) -> list[Any]:
        """The results since it was last asked."""
        ended, self._ended = self._ended, []
        return ended


class TurnWire(Wire):
    """The client of an environment, which gives way before each call."""

    _stage: Turns
    _again: tuple[str, Footprint] | None = None
    """Of a call that is sent twice."""

    def _call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        name = self._caller.name_call()
        self._caller.check_alive()
        self._caller.on_call(operation)
        if operation == "TransactWriteItems":
            token = f"{name.actor}.{name.step}.{name.call}"
            request = {**request, "ClientRequestToken": token}
        touches = footprint(operation, request)
        faults = OF_READS if operation in READS else OF_WRITES
        fault = self._stage.ask("call", operation, touches, faults)
        if fault:
            self._caller.note(fault, operation)
        self._again = (operation, touches) if fault == "twice" else None
        return self._with_fault(operation, request, Fate(fault or None, 0, 0, 0))

    def _wait(self, ms: int, tie: int) -> None:
        """The store takes no time; what it is sent twice arrives in a step of its own."""
        if self._again is not None:
            operation, touches = self._again
            self._stage.ask("call", f"{operation} again", touches)
        self._caller.check_alive()
