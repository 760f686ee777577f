"""The network between the core and the engine, with every fault that it can have.

It takes the place of botocore's client and calls the engine without HTTP, which is most of a call's
cost.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError
from tests.simulation.chaos import READS, Chaos, Fate
from tests.simulation.past import stale_batch_get, stale_query
from tests.simulation.stage import Stage

from cirrusmq_local.engine import Engine
from cirrusmq_local.engine.errors import EngineError
from cirrusmq_local.judging.clients import CallName

ENDPOINT = "https://dynamodb"


class Crashed(BaseException):
    """The execution environment is gone. Nothing in the product catches it."""


class Faulty(Protocol):
    """An environment whose calls to others may fail."""

    name: str

    def name_call(self) -> CallName:
        """The name of the next call."""
        ...

    def check_alive(self) -> None:
        """Raises Crashed where the environment is gone."""
        ...

    def note(self, fault: str, operation: str) -> None:
        """Note the fault of a call."""
        ...

    def crash(self) -> Crashed:
        """The environment is gone from now on, also for what it does on its way out."""
        ...


class Caller(Faulty, Protocol):
    """An environment that calls the store."""

    def on_call(self, operation: str) -> None:
        """A call of this kind begins."""
        ...


class Wire:
    """The client of one execution environment."""

    def __init__(
        self,
        stage: Stage,
        engine: Engine,
        chaos: Chaos,
        caller: Caller,
        changed: Callable[[], None],
    ) -> None:
        self._stage = stage
        self._engine = engine
        self._chaos = chaos
        self._caller = caller
        self._changed = changed

    def __getattr__(self, method: str) -> Callable[..., dict[str, Any]]:
        """The client's method: `put_item` calls PutItem."""
        operation = "".join(word.title() for word in method.split("_"))
        return lambda **request: self._call(operation, request)

    def _call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """One call, as the SDK makes it: with its own repetitions, and errors after them."""
        name = self._caller.name_call()
        fate = self._chaos.fate(name, operation)
        self._caller.check_alive()
        self._caller.on_call(operation)
        hot = (self._chaos.is_hot(name, pk, self._stage.now_ms()) for pk in _written(request))
        if fate.fault is None and any(hot):
            fate = fate._replace(fault="hot")
        if fate.fault is not None:
            self._caller.note(fate.fault, operation)
        if operation == "TransactWriteItems":
            token = f"{name.actor}.{name.step}.{name.call}"
            request = {**request, "ClientRequestToken": token}
        if fate.before_ms:
            self._wait(fate.before_ms, fate.draw)
        answer = self._with_fault(operation, request, fate)
        if fate.after_ms:
            self._wait(fate.after_ms, fate.draw)
        return answer

    def _with_fault(self, operation: str, request: dict[str, Any], fate: Fate) -> dict[str, Any]:
        match fate.fault:
            case "throttled" | "hot" | "unread":
                raise _refused(operation, "ThrottlingException", "slow down")
            case "unsent":
                self._wait(2_000, fate.draw)
                raise ConnectTimeoutError(endpoint_url=ENDPOINT)
            case "unprocessed":
                return self._half(operation, request, fate)
            case "lost":
                self._execute(operation, request, swallow=True)
                self._wait(fate.draw % 5_000, fate.draw)
                raise ReadTimeoutError(endpoint_url=ENDPOINT)
            case "ghost":
                self._haunt(operation, request, fate)
                self._wait(fate.draw % 5_000, fate.draw)
                raise ReadTimeoutError(endpoint_url=ENDPOINT)
            case "conflict":
                raise _conflict(operation, request)
            case "crash before":
                raise self._caller.crash()
            case "crash after":
                self._execute(operation, request, swallow=True)
                raise self._caller.crash()
            case "twice":
                self._execute(operation, request, swallow=True)
                self._wait(fate.draw % (20 if fate.draw & 0x100 else 3_000), fate.draw)
                return self._execute(operation, request, retries=1)
            case "stale":
                return self._stale(operation, request, fate)
            case "short" if operation == "Query":
                request = {**request, "Limit": min(request.get("Limit", 99), 1 + fate.draw % 3)}
            case "jump":
                self._stage.jump(1_000 + fate.draw % 90_000)
        return self._execute(operation, request)

    def _half(self, operation: str, request: dict[str, Any], fate: Fate) -> dict[str, Any]:
        """A batch of which a part is not done: none of it, half, or all but one."""
        ((table, asked),) = request["RequestItems"].items()
        keys = asked["Keys"] if operation == "BatchGetItem" else asked
        done = (0, len(keys) // 2, len(keys) - 1)[fate.draw % 3]
        first, rest = keys[:done], keys[done:]
        if operation == "BatchGetItem":
            kept = {table: {**asked, "Keys": rest}}
            answer: dict[str, Any] = {"Responses": {table: []}}
            if first:
                answer = self._execute(
                    operation, {"RequestItems": {table: {**asked, "Keys": first}}}
                )
            return {**answer, "UnprocessedKeys": kept}
        if first:
            self._execute(operation, {"RequestItems": {table: first}})
        return {"UnprocessedItems": {table: rest}}

    def _stale(self, operation: str, request: dict[str, Any], fate: Fate) -> dict[str, Any]:
        changes = 1 + fate.draw % 6
        if operation == "BatchGetItem":
            return stale_batch_get(self._engine, request, changes)
        if operation == "Query" and request.get("ConsistentRead") is False:
            return stale_query(self._engine, request, changes)
        return self._execute(operation, request)

    def _haunt(self, operation: str, request: dict[str, Any], fate: Fate) -> None:
        """The request is delayed and takes effect later, when its caller no longer waits for it."""
        kept = copy.deepcopy(request)

        def appear() -> None:
            self._execute(operation, kept, swallow=True)

        self._stage.spawn("ghost", appear, 1 + (fate.draw >> 3) % 8_000, fate.draw)

    def _execute(
        self, operation: str, request: dict[str, Any], *, retries: int = 0, swallow: bool = False
    ) -> dict[str, Any]:
        try:
            answer = self._engine.execute(operation, request)
        except EngineError as error:
            if swallow:
                return {}
            response = {
                "Error": {"Code": error.code, "Message": error.message},
                "ResponseMetadata": {"HTTPStatusCode": error.status, "RetryAttempts": retries},
                **error.extra,
            }
            raise ClientError(response, operation) from error
        if operation not in READS:
            self._changed()
        return answer

    def _wait(self, ms: int, tie: int) -> None:
        self._stage.pause(ms, tie)
        self._caller.check_alive()


def _written(request: dict[str, Any]) -> Iterator[str]:
    """Partition keys that a request writes to."""
    writes = [request]
    if "TransactItems" in request:
        writes = [next(iter(part.values())) for part in request["TransactItems"]]
    for write in writes:
        item = write.get("Item")
        if item is None and ("UpdateExpression" in write or "ConditionExpression" in write):
            item = write.get("Key")
        if item is not None:
            yield item["pk"]["S"]


def _refused(operation: str, code: str, message: str, **extra: Any) -> Exception:
    response = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": 400, "RetryAttempts": 4},
        **extra,
    }
    error: Exception = ClientError(response, operation)
    return error


def _conflict(operation: str, request: dict[str, Any]) -> Exception:
    if operation == "TransactWriteItems":
        reasons = [{"Code": "None"} for _ in request["TransactItems"]]
        reasons[-1] = {"Code": "TransactionConflict"}
        code = "TransactionCanceledException"
        return _refused(operation, code, "conflict", CancellationReasons=reasons)
    if operation == "BatchWriteItem":
        return _refused(operation, "ThrottlingException", "slow down")
    return _refused(operation, "TransactionConflictException", "conflict")
