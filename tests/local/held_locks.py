"""Locks that know the greenlet that holds them, to find one that waits with a lock in its hands.

The next greenlet of its thread that wants the lock would wait for it for ever, and all calls too.

As a program: `python -m tests.local.held_locks FILE up …` is `cirrusmq up …`, and writes into the
file where a greenlet waited so.
"""

from __future__ import annotations

import _thread
import sys
import threading
import traceback
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from greenlet import getcurrent

from cirrusmq_local.hub import Hub

_held: defaultdict[int, list[HeldLock]] = defaultdict(list)
"""By the greenlet's identity."""


class HeldLock:
    """`threading.Lock`, which tells who holds it."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._holder = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        taken = self._lock.acquire(blocking, timeout)
        if taken:
            self._holder = id(getcurrent())
            _held[self._holder].append(self)
        return taken

    def release(self) -> None:
        """Another greenlet, or thread, may do it."""
        _held[self._holder].remove(self)
        self._lock.release()

    def locked(self) -> bool:
        return self._lock.locked()

    def _at_fork_reinit(self) -> None:
        self._lock = _thread.allocate_lock()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def watch(
    tell: Callable[[str], object], replace: Callable[[Any, str, Any], None] = setattr
) -> None:
    """Tell of each greenlet that waits from now on while it holds a lock that is made from now on.

    A writer's own lock, which is held until its write is done, is no such lock.
    """
    suspend = Hub._suspend

    def make() -> Any:
        asks: str = sys._getframe(1).f_globals["__name__"]
        return _thread.allocate_lock() if asks.endswith("engine.commits") else HeldLock()

    def suspend_and_look(hub: Hub, wait: Any) -> Any:
        if _held[id(getcurrent())]:
            tell("".join(traceback.format_stack()))
        return suspend(hub, wait)

    replace(threading, "Lock", make)
    replace(Hub, "_suspend", suspend_and_look)


if __name__ == "__main__":
    told = Path(sys.argv.pop(1))

    def write(text: str) -> None:
        with told.open("a") as file:
            file.write(text)

    watch(write)
    from cirrusmq_local.commands.cli import main

    main()
