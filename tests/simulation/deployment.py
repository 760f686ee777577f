"""The service as it is deployed: one store, functions behind their handlers, and their clients."""

from __future__ import annotations

import contextlib
import contextvars
import json
import logging
import os
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, TypeVar

import msgspec
from botocore.exceptions import BotoCoreError
from tests.simulation.buckets import Bucket
from tests.simulation.chaos import HTTP, Chaos
from tests.simulation.environments import Context, Environment, Event, Fleet
from tests.simulation.stage import Stage
from tests.simulation.turn_overs import SecretHistory
from tests.simulation.wire import Crashed, Wire

from cirrusmq.base.errors import CirrusMQError, Unavailable
from cirrusmq.runtime.core import Called, Core, Tables
from cirrusmq.wiring import bootstrap
from cirrusmq_lambda.observability import logger
from cirrusmq_local.cloud.events import read_answer
from cirrusmq_local.cloud.tables import table_specs
from cirrusmq_local.cloud.template import TEMPLATE, Function, Template, load
from cirrusmq_local.engine import Engine, TableSpec
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, History, Outcome
from cirrusmq_local.testing import START_MS, Posting

A = TypeVar("A")
B = TypeVar("B")
Item = dict[str, Any]
"""In wire shapes."""
_PATIENCE_MS = 30_000
"""The gateway's timeout for a function."""
_TURNOVERS = (0, 5, 40)
_SKEWS_MS = (0, 0, 300, MAX_SKEW_MS, MAX_SKEW_MS)


class Deployment:
    """The shared parts of all environments: tables, stream, true time, their clients' history."""

    def __init__(
        self,
        chaos: Chaos,
        turns_ms: Sequence[int] = (),
        objects_from: int = 0,
        object_faults: int = 0,
        slow_pushes: int = 0,
        workers: int = 0,
        stage: Stage | None = None,
        like: Engine | None = None,
        engine: Engine | None = None,
    ) -> None:
        """`object_faults`: in how many of a hundred calls of the bucket something fails.

        `slow_pushes`, `workers`: as of `Scenario`. `stage`: another clock than one of its own;
        `like`: the engine with whose content this one begins; `engine`: one to be used as it is.
        """
        self.chaos = chaos
        self.stage = stage or Stage(START_MS)
        self.wire: type[Wire] = Wire
        """How environments call the store."""
        self.bucket = Bucket(self.stage, chaos, object_faults)
        self.slow_pushes = slow_pushes
        self.workers = workers
        self.objects_from = objects_from
        """Packed bytes from which messages are in the bucket; 0: never."""
        self.history = History(start_ms=START_MS)
        self.secret = SecretHistory(self.stage, chaos, turns_ms)
        for turned_ms in self.secret.turned_ms:
            self.history.faults.append((turned_ms, "the secret is turned over"))
        self.took_place: dict[str, bool] = {}
        """What became of the producers' own transactions, by their half messages' handles."""
        self.signing_secrets: dict[str, str] = {}
        """Of the subscriptions with a URL, as their subscribers know them."""
        self.tables, specs = _tables()
        self.engine = engine or Engine(None, specs, now_ms=self.stage.now_ms, like=like)
        self.opened_at = 0
        """Position of the messages' stream behind the set-up."""
        self.on_write: Callable[[], None] = lambda: None
        self.invoke: Callable[[Environment, str, Event], None] = _nobody
        self.start_execution: Callable[[Environment, str, Event], None] = _nobody
        self.call: Callable[[Environment, str, bytes, float], Called] = _nobody
        self.post: Callable[[Environment, str, Mapping[str, str], bytes], Posting] = _nobody
        self.authorizations: dict[str, str] = {}
        """Account -> the header of its key."""
        self.turnover = _TURNOVERS[chaos.draw("turnover") % len(_TURNOVERS)]
        """In how many of a hundred calls a new environment answers though one is idle."""
        self.max_skew_ms = _SKEWS_MS[chaos.draw("skew") % len(_SKEWS_MS)]
        self._fleets = {role: Fleet(self, role, function) for role, function in functions().items()}
        threaded = chaos.draw("together", 0) % 4 == 0
        self.in_parallel = self.side_by_side if threaded else _one_by_one

    @property
    def receive_seconds(self) -> int:
        """For how long a receive may work."""
        return functions()["receive"].timeout_seconds

    def written(self) -> None:
        """Something was written."""
        self.on_write()

    def auditor(self) -> Core:
        """A core without faults, for looks into the store."""
        return Environment(self, "auditor", None).core

    def side_by_side(self, call: Callable[[A], B], values: Iterable[A]) -> Iterable[B]:
        """Calls in threads of their own, which the scheduler may run in any order."""
        listed = list(values)
        if len(listed) <= 1:
            return [call(value) for value in listed]
        bodies = [partial(contextvars.copy_context().run, call, value) for value in listed]
        return self.stage.side_by_side(bodies)

    def http(
        self,
        client: Client,
        kind: str,
        place: str,
        given: dict[str, Any],
        route: str,
        path: dict[str, str],
        body: object = None,
        query: dict[str, str] | None = None,
        read: Callable[[Call, Any], Any] = lambda call, answer: answer,
    ) -> Call:
        """One HTTP call; `read` makes of its answer what the history keeps.

        The gateway may answer 503 at any time while the function still runs, and its answer may be
        lost.
        """
        event = self._event(self.authorizations[client.account], route, path, body, query)
        role = _roles().get(route, "manage")
        call = self.history.begin(client.name, kind, place, given, self.stage.now_ms())
        name = client.name_call()
        fate = self.chaos.fate(name, HTTP)
        if fate.fault is not None:
            call.faults.append(fate.fault)
        if fate.fault == "deserted":
            abandoned = Client(f"{client.name}.{name.step}.{name.call}~")
            self.stage.spawn(abandoned.name, lambda: self._go_on(abandoned, role, call, event))
            self.stage.pause(fate.draw % (_PATIENCE_MS if fate.draw & 0x1000 else 1_000))
            self._end(call, "failed", None)
            return call
        outcome, answer = self._invoke(client, role, call, event)
        if outcome == "answered":
            outcome, answer = self._read_answer(answer)
        if fate.fault == "answer lost":
            outcome, answer = ("broken", answer) if outcome == "broken" else ("failed", None)
        self._end(call, outcome, read(call, answer) if outcome == "answered" else answer)
        return call

    def _go_on(self, client: Client, role: str, call: Call, event: Event) -> None:
        """Work on a call that its client knows the end of already."""
        outcome, answer = self._invoke(client, role, call, event)
        if outcome == "answered":
            outcome, answer = self._read_answer(answer)
        if outcome == "broken":
            call.outcome, call.answer = outcome, answer

    def run(
        self,
        client: Client,
        role: str,
        kind: str,
        place: str,
        given: dict[str, Any],
        event: Event,
        less_ms: int = 0,
    ) -> Call:
        """Run a function with an event of its own kind; `less_ms` of its time are taken away."""
        call = self.history.begin(client.name, kind, place, given, self.stage.now_ms())
        self._end(call, *self._invoke(client, role, call, event, less_ms))
        return call

    def _invoke(
        self, client: Client, role: str, call: Call, event: Event, less_ms: int = 0
    ) -> tuple[Outcome, Any]:
        """The outcome of an invocation, and the handler's answer."""
        name = client.name_call()
        fleet, function = self._fleets[role], functions()[role]
        environment = fleet.take(name)
        environment.client, environment.under_way = client, call
        call.environment, call.skew_ms = environment.name, environment.skew_ms
        environment.allow_until(self.stage.now_ms() + 1_000 * function.timeout_seconds)
        context = Context(environment, function, "{}.{}.{}".format(*name))
        context.less_ms = less_ms
        _raised.pop(threading.get_ident(), None)
        assert environment.handler is not None
        try:
            with bootstrap.serving(environment.core):
                return "answered", environment.handler(event, context)
        except (Unavailable, BotoCoreError):  # of another service than the store
            return "failed", None
        except CirrusMQError as error:
            return "refused", f"{error.code} {error.detail or ''}"
        except Crashed:
            environment.ended = True
            return "crashed", None
        except Exception:
            return "broken", traceback.format_exc(limit=-6)
        finally:
            fleet.give_back(environment, name)

    def _read_answer(self, answer: Any) -> tuple[Outcome, Any]:
        """An answer of the HTTP API as the client reads it."""
        told = read_answer(answer)
        shown: Any = json.loads(told.body) if told.body else None
        raised = _raised.pop(threading.get_ident(), None)
        if raised is not None and not isinstance(raised, BotoCoreError):
            return "broken", "".join(traceback.format_exception(raised, limit=-6))
        if told.status < 400:
            return "answered", shown
        if told.status >= 500:
            return "failed", None
        return "refused", f"{shown['code']} {shown['detail'] or ''}"

    @staticmethod
    def _event(
        authorization: str,
        route: str,
        path: dict[str, str],
        body: object,
        query: dict[str, str] | None,
    ) -> Event:
        event: Event = {
            "routeKey": route,
            "headers": {"authorization": authorization, "content-type": "application/json"},
            "pathParameters": path,
            "requestContext": {"requestId": "request"},
            "isBase64Encoded": False,
        }
        if body is not None:
            event["body"] = msgspec.json.encode(body).decode()
        if query:
            event["queryStringParameters"] = query
        return event

    def _end(self, call: Call, outcome: Outcome, answer: Any) -> None:
        self.history.end(call, outcome, answer, self.stage.now_ms())


_raised: dict[int, BaseException] = {}
"""Thread -> the error that a handler logged as unexpected."""


class _Listener(logging.Handler):
    """Keeps what handlers log as unexpected, in place of the lines."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == "unexpected" and record.exc_info and record.exc_info[1]:
            _raised[threading.get_ident()] = record.exc_info[1]


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Keep the functions' logs while they run here."""
    os.environ.setdefault("POWERTOOLS_METRICS_DISABLED", "true")
    log = logging.getLogger(logger.name)
    handlers, propagate = log.handlers, log.propagate
    log.handlers, log.propagate = [_Listener()], False
    core, level = logging.getLogger("cirrusmq"), logging.getLogger("cirrusmq").level
    core.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.handlers, log.propagate = handlers, propagate
        core.setLevel(level)
        _raised.clear()


def scan(engine: Engine, table: str) -> Iterator[Item]:
    """Every item of a table."""
    request: dict[str, Any] = {"TableName": table}
    while True:
        answer = engine.execute("Scan", request)
        yield from answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _one_by_one(call: Callable[[A], B], values: Iterable[A]) -> Iterable[B]:
    return [call(value) for value in values]


def _nobody(*_: Any) -> Any:
    raise AssertionError("nothing of this kind is part of this run")


@cache
def template() -> Template:
    """The deployed template."""
    return load(TEMPLATE)


@cache
def functions() -> dict[str, Function]:
    """The functions by the names of their folders."""
    return {function.folder.name: function for function in template().functions}


@cache
def _roles() -> dict[str, str]:
    """Route key -> the function behind it; `manage` finds those that are not among them."""
    names = {function.name: role for role, function in functions().items()}
    return {route.key: names[route.function] for route in template().routes}


@cache
def _tables() -> tuple[Tables, list[TableSpec]]:
    environment = template().environment()
    specs = [replace(spec, point_in_time_recovery=False) for spec in table_specs(template())]
    names = {name: environment[f"{name.upper()}_TABLE"] for name in Tables.__struct_fields__}
    return Tables(**names), specs
