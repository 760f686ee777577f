"""Detects a blocked event loop, from a thread beside it."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Callable

PROBE_SECONDS = 0.5
"""A loop that does not run for this time is blocked."""
PAUSE_SECONDS = (0.1, 1.0)


class LoopWatch:
    """Checks if the running loop still runs, whenever something is due in it.

    `due`: returns the time, by the monotonic clock, before which no check is needed. `tell`: called
    in the watch's thread, once for each block, with the stack of the code that blocks the loop.
    """

    def __init__(self, due: Callable[[], float], tell: Callable[[str], None]) -> None:
        self._due, self._tell = due, tell
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._stopped = threading.Event()
        threading.Thread(target=self._work, name="cirrusmq-watch", daemon=True).start()

    def stop(self) -> None:
        """Ends the checks."""
        self._stopped.set()

    def _work(self) -> None:
        shortest, longest = PAUSE_SECONDS
        while not self._stopped.wait(min(longest, max(shortest, self._due() - time.monotonic()))):
            if self._due() > time.monotonic():
                continue
            answered = threading.Event()
            try:
                self._loop.call_soon_threadsafe(answered.set)
            except RuntimeError:
                return  # the loop is closed
            if answered.wait(PROBE_SECONDS):
                continue
            self._tell(self._stack())
            while not answered.wait(longest) and not self._stopped.is_set():
                pass

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread_id)
        return "" if frame is None else "".join(traceback.format_stack(frame))
