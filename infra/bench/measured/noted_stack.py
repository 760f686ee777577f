"""A stack that notes when its functions run and what they ask the store: a program of the bench.

    python -m infra.bench.measured.noted_stack DATA PORT LAYOUT

It ends with its standard input, and then prints JSON: `[function, begin, end, store calls]` of each
invocation, and `[operation, time]` of each store call. Times are of `time.perf_counter`, which all
processes of a machine share on Linux.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from cirrusmq_local.cloud import guard
from cirrusmq_local.cloud.functions import Functions
from cirrusmq_local.stack.stack import Stack

_calls: ContextVar[list[tuple[str, float]] | None] = ContextVar("calls", default=None)
noted: list[tuple[str, float, float, list[tuple[str, float]]]] = []


class NotedEngine(guard.GuardedEngine):
    """The engine, whose calls are noted for the invocation that makes them."""

    def execute(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """As `GuardedEngine.execute`."""
        calls = _calls.get()
        if calls is not None:
            calls.append((operation, time.perf_counter()))
        return super().execute(operation, request)


def note_functions() -> None:
    """Has all invocations of this process noted."""
    run = Functions._invoke

    def noting(self: Functions, name: str, event: Any, chain: tuple[str, ...]) -> Any:
        calls: list[tuple[str, float]] = []
        token, began = _calls.set(calls), time.perf_counter()
        try:
            return run(self, name, event, chain)
        finally:
            _calls.reset(token)
            noted.append((name, began, time.perf_counter(), calls))

    Functions._invoke = noting  # type: ignore[method-assign]


def main() -> None:
    """Runs a stack until the standard input ends."""
    data, port, layout = sys.argv[1:]
    out = sys.stdout
    note_functions()
    sys.modules["cirrusmq_local.stack.stack"].GuardedEngine = NotedEngine  # type: ignore[attr-defined]
    stack = Stack(Path(data), port=int(port), environments=layout, dialect_port=0)  # type: ignore[arg-type]
    stack.start()
    sys.stdin.read()
    stack.stop()
    out.write(json.dumps(noted))


if __name__ == "__main__":
    main()
