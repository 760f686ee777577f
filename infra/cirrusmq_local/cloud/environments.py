"""Execution environments on one machine: one for all functions, or separate ones as in the cloud.

shared   send ── receive ── delete            one cache: a change is seen at once
cloud    send 1 | send 2 | receive 1 | …      each call its own while it runs, idle ones again
"""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Literal, Protocol, TypeAlias

from msgspec.structs import replace

from cirrusmq.runtime.core import Core
from cirrusmq.wiring import bootstrap

Layout: TypeAlias = Literal["shared", "cloud"]


class Environments(Protocol):
    """The execution environments of functions."""

    def serving(self, function: str) -> contextlib.AbstractContextManager[None]:
        """Returns the environment of one invocation of a function, as a context."""
        ...


class SharedEnvironment:
    """One environment: all functions share their caches."""

    def serving(self, function: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


class SeparateEnvironments:
    """Separate caches and hints for each function, and for each call that runs beside others.

    `start` makes a core with empty caches.
    """

    def __init__(self, start: Callable[[], Core]) -> None:
        self._start = start
        self._idle: defaultdict[str, list[Core]] = defaultdict(list)
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def serving(self, function: str) -> Iterator[None]:
        with self._lock:
            idle = self._idle[function]
            core = idle.pop() if idle else None
        core = core or self._start()
        try:
            with bootstrap.serving(core):
                yield
        finally:
            with self._lock:
                idle.append(core)


def start_environment() -> Core:
    """Returns a core with empty caches, but with the process's connections and threads."""
    first = bootstrap.service()
    return replace(
        bootstrap.wire(),
        in_parallel=first.in_parallel,
        invoke=first.invoke,
        start_execution=first.start_execution,
        post=first.post,
        read_report=first.read_report,
        unprocessed=first.unprocessed,
        bodies=first.bodies,
    )
