"""Ending on SIGTERM and Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at the first SIGTERM or Ctrl-C; a second one does what it did before.

    Only the main thread may set that; in others this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def restore() -> None:
        for number, held in before.items():
            signal.signal(number, signal.SIG_DFL if held is None else held)

    def end(*_: Any) -> None:
        restore()
        # Not here: the main thread may be holding the very lock that `stop` needs.
        threading.Thread(target=stop, name="cirrusmq-stop").start()

    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        restore()
