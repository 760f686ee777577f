"""Disturbances in the middle of an operation: a store that breaks, other calls, no time left."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cirrusmq.base.errors import Unavailable
from cirrusmq.operations import runner
from cirrusmq.queues.operations import Pointer
from cirrusmq_local.engine import EngineError
from cirrusmq_local.testing import World


class BrokenStore:
    """A store that fails at a chosen call and all later ones, until it is mended.

    `applied`: whether the first call that fails takes effect nevertheless, its answer being lost.
    """

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self._calls_left: int | None = None
        self._applied = False
        self.failed = False
        execute = world.engine.execute

        def fail(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
            if self._calls_left is None:
                return execute(operation, request)
            self._calls_left -= 1
            if self._calls_left >= 0:
                return execute(operation, request)
            if self._applied and not self.failed:
                execute(operation, request)
            self.failed = True
            raise EngineError("InternalServerError", "the store is broken", status=500)

        monkeypatch.setattr(world.engine, "execute", fail)

    def break_after(self, calls: int, *, applied: bool = False) -> None:
        self._calls_left, self._applied, self.failed = calls, applied, False

    def mend(self) -> None:
        self._calls_left = None


def crash(
    world: World, monkeypatch: pytest.MonkeyPatch, calls: int, *, applied: bool = False
) -> bool:
    """Run started operations on a store that breaks, then let the sweep find them.

    Answers whether the store broke before their end.
    """
    store = BrokenStore(world, monkeypatch)
    store.break_after(calls, applied=applied)
    while world.invoked:
        role, event = world.invoked.popleft()
        with contextlib.suppress(Unavailable):
            world.run(role, event)
    store.mend()
    monkeypatch.undo()
    world.clock.pass_seconds(61)
    world.run("sweep")
    world.settle()
    return store.failed


def amid(
    world: World, monkeypatch: pytest.MonkeyPatch, moves: int, happen: Callable[[], object]
) -> None:
    """Run started operations; in the midst, behind so many moves of messages, something happens."""
    execute, left = world.engine.execute, moves

    def count(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        nonlocal left
        answer = execute(operation, request)
        writes = request.get("TransactItems", ())
        if any(w.get("Put", {}).get("TableName") == world.tables.messages for w in writes):
            left -= 1
            if not left:
                happen()
        return answer

    monkeypatch.setattr(world.engine, "execute", count)
    world.settle()
    assert left <= 0, "the operation had ended before"


def before_each_call(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    happen: Callable[[str, Mapping[str, Any]], object],
) -> None:
    """Let something happen right before each call of the store, given its operation and request.

    An exception of it is that of the call, which has no effect then.
    """
    execute = world.engine.execute

    def happen_first(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        happen(operation, request)
        return execute(operation, request)

    monkeypatch.setattr(world.engine, "execute", happen_first)


def slow_store(world: World, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Have each call of the store take its time."""
    before_each_call(world, monkeypatch, lambda *_: world.clock.pass_seconds(seconds))


def before_transactions(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    happen: Callable[[], object],
    times: int = 1,
    *,
    writing: str = "",
) -> None:
    """Let something happen right before each of the next `times` transactions.

    They are those with `writing` in their requests; transactions inside of it are undisturbed.
    """
    left, happening = times, False

    def happen_first(operation: str, request: Mapping[str, Any]) -> None:
        nonlocal left, happening
        awaited = operation == "TransactWriteItems" and writing in str(request)
        if awaited and left and not happening:
            left, happening = left - 1, True
            happen()
            happening = False

    before_each_call(world, monkeypatch, happen_first)


def run_in_small_steps(world: World) -> int:
    """Run started operations, each run being out of time after one step; how many runs it took."""
    runs = 0
    while world.invoked:
        role, event = world.invoked.popleft()
        assert role == "replay"
        runner.run(world.core, Pointer(**event["operation"]), 0)
        runs += 1
    world.settle()
    return runs
