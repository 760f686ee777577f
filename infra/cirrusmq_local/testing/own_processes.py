"""Processes of a world's clients that call its tables themselves, one for each access key.

The policy of each queue is in force. A client asks the URL once a minute if its key may make
such a call. Here that is asked before each call, so that a test's first call is made here as well.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from cirrusmq.access import keys, rate_limit
from cirrusmq.access.permissions import find_queue
from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.formats import WRITTEN_FORMAT
from cirrusmq.queues.queues import find_queue as read_queue
from cirrusmq.runtime.core import Core
from cirrusmq_in_process.allowances import Right
from cirrusmq_in_process.conditions import Conditions
from cirrusmq_in_process.process import Process
from cirrusmq_in_process.wiring import Told, make_core
from cirrusmq_local.cloud.own_policy import own_policy
from cirrusmq_local.cloud.policy_guard import PolicyGuard
from cirrusmq_local.engine import Engine, EngineClient

A = TypeVar("A")
B = TypeVar("B")
_ARN = "arn:aws:dynamodb:local:000000000000:table/"


class OwnProcesses:
    """The processes of a world's clients, by their keys."""

    def __init__(self, core: Core, engine: Engine) -> None:
        """core: of the service, by which keys are checked."""
        self._core, self._engine = core, engine
        self._processes: dict[str, tuple[Process, _Tables]] = {}
        self.done: Counter[str] = Counter()
        """Calls that were made in a process, by the last part of their paths."""

    @property
    def refused(self) -> list[str]:
        """Operations that policies refused: no process may need more than its policy has."""
        return [each for _, tables in self._processes.values() for each in tables.refused]

    def forget_refusals(self) -> None:
        """Forgets them, for a test whose policies allow less."""
        for _, tables in self._processes.values():
            tables.refused.clear()

    def answer(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str], query: str
    ) -> tuple[int, str] | None:
        """The status and the JSON of a call that is made in a process; None for all others."""
        if query or headers.get("content-type") != "application/json":
            return None
        authorization = headers.get("authorization", "")
        process, tables = self._process(authorization)
        try:
            given = msgspec.json.decode(body)
            call = process.begin(method, path)
            if call is None or not isinstance(given, dict):
                return None
            tables.look(path.split("/")[2])
            answered = call.answer(given)
        except (CirrusMQError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        if answered is None:
            return None
        self.done[path.rpartition("/")[2]] += 1
        status, told = answered
        return status, msgspec.json.encode(told).decode()

    def _process(self, authorization: str) -> tuple[Process, _Tables]:
        found = self._processes.get(authorization)
        if found is None:
            try:
                caller = keys.verify(self._core, authorization)
                account, key_id = caller.account, caller.key_id
            except CirrusMQError:
                account, key_id = "", ""
            found = self._processes[authorization] = self._start(authorization, account, key_id)
        return found

    def _start(self, authorization: str, account: str, key_id: str) -> tuple[Process, _Tables]:
        service = self._core
        told = Told(
            region="local",
            directory=service.tables.directory,
            messages=service.tables.messages,
            account=account,
            format=WRITTEN_FORMAT,
        )
        tables = _Tables(service, self._engine, account)
        core = make_core(
            EngineClient(tables),
            service.clock,
            told,
            randomness=service.random,
            in_parallel=_one_by_one,
        )
        # As all functions of a world: a change of a queue is in force at once.
        core = replace(core, cache=service.cache)
        allowances = _AskedOfKeys(service, authorization)
        conditions = Conditions(core, (account, key_id), allowances, told.format)
        return Process(conditions), tables


class _Tables:
    """The tables, under the policy of the queue that is called now."""

    def __init__(self, core: Core, engine: Engine, account: str) -> None:
        self._core, self._engine, self._account = core, engine, account
        self.refused: list[str] = []
        self._queue_id = "none"

    def look(self, name: str) -> None:
        """Have the policy of a queue; QueueNotFound."""
        self._queue_id = read_queue(self._core, self._account, name).value.id

    def execute(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do one operation, or raise AccessDeniedException."""
        named = self._core.tables
        policy = own_policy(
            self._account,
            [self._queue_id],
            directory_arn=_ARN + named.directory,
            messages_arn=_ARN + named.messages,
        )
        guard = PolicyGuard(self._engine, policy)
        try:
            return guard.execute(operation, request)
        finally:
            self.refused += guard.refused


class _AskedOfKeys:
    """Allowances that are asked for before each call, of the service's own code."""

    def __init__(self, core: Core, authorization: str) -> None:
        self._core, self._authorization = core, authorization

    def now(self) -> float:
        """Seconds of a clock that is never set."""
        return time.monotonic()

    def has(self, queue: str, right: Right) -> bool:
        """Returns True if the key may make such a call on the queue."""
        try:
            caller = keys.verify(self._core, self._authorization)
            rate_limit.admit(self._core, caller.account)
            caller.require((right,), "queues", queue)
            find_queue(self._core, caller, queue, right)
        except CirrusMQError:
            return False
        return True

    def grant(self, queue: str, right: Right, asked: float) -> None:
        """Nothing: it is asked each time."""

    def rest(self, queue: str) -> None:
        """Nothing: the next call is tried here again."""

    def rests(self, queue: str) -> bool:
        """Never."""
        return False


def _one_by_one(call: Callable[[A], B], values: Iterable[A]) -> Iterable[B]:
    return [call(value) for value in values]
