"""Actions at SIGTERM and Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Calls `stop` at the first SIGTERM or Ctrl-C; a second one acts as before.

    Only the main thread may set that; in others this does nothing.
    """
    with _at_signal(lambda _: stop()):
        yield


@contextmanager
def first_on_signals(work: Callable[[], None]) -> Iterator[None]:
    """Does `work` at the first SIGTERM or Ctrl-C; then the signal acts as before.

    Only the main thread may set that; in others this does nothing.
    """

    def work_and_pass_on(number: int) -> None:
        try:
            work()
        finally:
            os.kill(os.getpid(), number)

    with _at_signal(work_and_pass_on):
        yield


@contextmanager
def _at_signal(act: Callable[[int], None]) -> Iterator[None]:
    """Calls `act` with the number of the first signal, in a new thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def restore() -> None:
        for number, held in before.items():
            signal.signal(number, signal.SIG_DFL if held is None else held)

    installed_in = os.getpid()

    def end(number: int, _: Any) -> None:
        restore()
        if os.getpid() != installed_in:
            os.kill(os.getpid(), number)  # a forked child has nothing to end first
            return
        # Not in this thread: it may hold the lock that `act` needs.
        threading.Thread(target=act, args=(number,), name="cirrusmq-stop").start()

    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        restore()
