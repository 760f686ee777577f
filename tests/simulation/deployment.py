"""The service as it is deployed: one store, and execution environments that come and go."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from random import Random
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError
from tests.simulation.chaos import CallName, Chaos
from tests.simulation.history import Call, History
from tests.simulation.stage import Stage
from tests.simulation.wire import Crashed, Wire

from cirrusmq.cache import Cache
from cirrusmq.core import Core, Settings, Tables
from cirrusmq.deployment import load_secret
from cirrusmq.errors import CirrusMQError, Unavailable
from cirrusmq.limits import CACHE_MS, SLOW_CACHE_MS
from cirrusmq.storage.store import Store
from cirrusmq_local.engine import Engine, TableSpec
from cirrusmq_local.template import Template, load
from cirrusmq_local.testing import START_MS, TEMPLATE, Posting

A = TypeVar("A")
B = TypeVar("B")
ACCOUNT = "acme"
ANSWER_SECONDS = 29
"""The time that a function behind the gateway has."""


class Environment:
    """One execution environment: caches, hints, and a thread that may end at any call."""

    def __init__(self, deployment: Deployment, name: str) -> None:
        self.deployment = deployment
        self.name = name
        self.actor = name
        self.under_way: Call
        """What it is doing, or did last."""
        self.written_ms = 0
        """When it last began to write an item."""
        self._step = self._call = self.lives = 0
        self._deadline_ms = 1 << 60
        self.core = self._start()

    def begin(self, actor: str, step: int) -> None:
        """Its calls are that actor's from now on."""
        if (actor, step) != (self.actor, self._step):
            self.actor, self._step, self._call = actor, step, 0

    def allow(self, seconds: float) -> None:
        """The function called now is stopped after so long."""
        self._deadline_ms = self.deployment.stage.now_ms() + int(seconds * 1000)

    def on_call(self, operation: str) -> None:
        """Takes note of the calls after which posts are made."""
        if operation == "UpdateItem":
            self.written_ms = self.deployment.stage.now_ms()

    def name_call(self) -> CallName:
        """The name of the next store call."""
        self._call += 1
        return CallName(self.actor, self._step, self._call)

    def check_alive(self, life: int) -> None:
        """Raises Crashed where the function's time is over, or that life of the environment."""
        if self.deployment.stage.now_ms() > self._deadline_ms or life != self.lives:
            raise Crashed

    def note(self, fault: str, operation: str) -> None:
        """Something goes wrong with a store call."""
        self.under_way.disturbed = True
        self.under_way.repeated |= fault == "twice"
        what = f"{self.actor:<12} {operation}: {fault}"
        self.deployment.history.faults.append((self.deployment.stage.now_ms(), what))

    def restart(self) -> None:
        """What it remembered is gone."""
        self.lives += 1
        self.core = self._start()

    def _start(self) -> Core:
        """The core as `bootstrap` wires it in the cloud: no cache is shared."""
        deployment, stage = self.deployment, self.deployment.stage
        chance = Random(deployment.chaos.draw(self.name, -2, self.lives))
        life = Life(self, self.lives)
        wire = Wire(stage, deployment.engine, deployment.chaos, life, lambda: deployment.on_write())
        store = Store(wire, chance, stage.sleep)  # type: ignore[arg-type]
        directory = deployment.tables.directory
        return Core(
            store=store,
            tables=deployment.tables,
            clock=stage,
            random=chance,
            cache=Cache(stage, CACHE_MS, shared=False),
            slow_cache=Cache(stage, SLOW_CACHE_MS, shared=True),
            secret=cache(lambda: load_secret(store, directory, chance.randbytes)),
            invoke=lambda role, event: deployment.invoke(self, role, event),
            together=deployment.together,
            apart=deployment.side_by_side,
            start_execution=lambda name, given: deployment.start_execution(self, name, given),
            post=lambda url, headers, body: deployment.post(self, url, headers, body),
            read_report=lambda path: None,
            real_seconds=lambda: stage.now_ms() // 1000,
            settings=Settings(confirm_endpoints=False, http_endpoints=True),
        )


class Life:
    """One life of an environment, as its calls know it: threads of an earlier one are dead."""

    def __init__(self, environment: Environment, number: int) -> None:
        self._environment = environment
        self._number = number
        self.name_call = environment.name_call
        self.on_call = environment.on_call
        self.note = environment.note

    def check_alive(self) -> None:
        """Raises Crashed where this life is over."""
        self._environment.check_alive(self._number)


class Deployment:
    """What all environments share: tables, stream, clock; and the history of their clients."""

    def __init__(self, chaos: Chaos) -> None:
        self.chaos = chaos
        self.stage = Stage(START_MS)
        self.history = History()
        self.tables, specs = _tables()
        self.engine = Engine(None, specs, now_ms=self.stage.now_ms)
        self.on_write: Callable[[], None] = lambda: None
        self.invoke: Callable[[Environment, str, dict[str, Any]], None] = _nobody
        self.start_execution: Callable[[Environment, str, dict[str, Any]], None] = _nobody
        self.post: Callable[[Environment, str, Mapping[str, str], bytes], Posting] = _nobody
        self._idle: dict[str, list[Environment]] = {}
        threaded = chaos.draw("together", 0) % 4 == 0
        self.together = self.side_by_side if threaded else _one_by_one

    def call(
        self,
        environment: Environment,
        kind: str,
        place: str,
        given: dict[str, Any],
        work: Callable[[Core], Any],
        seconds: float = ANSWER_SECONDS,
    ) -> Call:
        """Have a function of the service called, and note what its client sees."""
        call = self.history.begin(environment.actor, kind, place, given, self.stage.now_ms())
        environment.under_way = call
        environment.allow(seconds)
        try:
            self._end(call, "answered", work(environment.core))
        except Unavailable:
            self._end(call, "failed", None)
        except CirrusMQError as error:
            self._end(call, "refused", f"{error.code} {error.detail or ''}")
        except BotoCoreError:  # of another service than the store
            self._end(call, "failed", None)
        except Crashed:
            environment.restart()
            self._end(call, "crashed", None)
        except Exception:
            self._end(call, "broken", traceback.format_exc(limit=-6))
        return call

    def side_by_side(self, call: Callable[[A], B], values: Iterable[A]) -> Iterable[B]:
        """Calls in threads of their own, which the scheduler may run in any order."""
        listed = list(values)
        if len(listed) <= 1:
            return [call(value) for value in listed]
        return self.stage.side_by_side([partial(call, value) for value in listed])

    def borrow(self, role: str) -> Environment:
        """An environment of a function, warm where one is idle."""
        idle = self._idle.setdefault(role, [])
        return idle.pop() if idle else Environment(self, f"{role}~{self.history.tick()}")

    def give_back(self, role: str, environment: Environment) -> None:
        """The environment is idle again."""
        self._idle[role].append(environment)

    def _end(self, call: Call, outcome: Any, answer: Any) -> None:
        self.history.end(call, outcome, answer, self.stage.now_ms())


def _one_by_one(call: Callable[[A], B], values: Iterable[A]) -> Iterable[B]:
    return [call(value) for value in values]


def _nobody(*_: Any) -> Any:
    raise AssertionError("nothing of this kind is part of this run")


@cache
def _tables() -> tuple[Tables, list[TableSpec]]:
    template: Template = load(TEMPLATE)
    environment = template.environment()
    specs = [
        TableSpec(
            table.name,
            partition_key=table.partition_key,
            sort_key=table.sort_key,
            ttl_attribute=table.ttl_attribute,
            stream=table.stream,
            point_in_time_recovery=False,
        )
        for table in template.tables
    ]
    names = {name: environment[f"{name.upper()}_TABLE"] for name in Tables.__struct_fields__}
    return Tables(**names), specs
