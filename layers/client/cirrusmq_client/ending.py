"""The end of a process: sends waiting messages, and reports unsent ones.

    a program              ends ──> its other threads end ──> atexit: run
    multiprocessing child  ends ──> its other threads end ──> a thread of ours: run ──> os._exit

A child of multiprocessing ends by `os._exit`, in most versions of Python without `atexit`. It waits
for non-daemon threads, so one such thread waits for all others, then does the work.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeAlias

from cirrusmq_client.forking import renew_in_children

EXIT_SECONDS = 10.0
"""Maximum time for all producers together."""
LOST_STATUS = 1

Work: TypeAlias = Callable[[float], tuple[int, BaseException | None]]
"""Gets its maximum seconds. Returns the number of lost messages, and one of their errors."""


class _Status:
    """Sets the exit status if messages are lost.

    No handler of `atexit` can set it. So the process exits when Python deletes this object with
    its module: after all handlers, and after standard output was written.
    """

    lost = False

    def __init__(self) -> None:
        # A running thread keeps this module's names alive, but not the module, and Python clears
        # only modules that are left.
        self._module = sys.modules[__name__]

    def __del__(self, leave: Callable[[int], None] = os._exit) -> None:
        if self.lost:
            leave(LOST_STATUS)


class Ending:
    """The work to do when this process ends."""

    def __init__(self) -> None:
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Drops all work in a forked child: the parent does it."""
        self._works: dict[Work, None] = {}
        self._guard: threading.Thread | None = None
        _status.lost = False
        atexit.unregister(self.run)

    def add(self, work: Work) -> None:
        """Adds work for the end."""
        first = not self._works
        self._works[work] = None
        if not _is_child():
            if first:
                atexit.unregister(self.run)
                atexit.register(self.run)
        elif self._guard is None:
            self._guard = threading.Thread(target=self._run_last, name="cirrusmq-ending")
            self._guard.start()

    def discard(self, work: Work) -> None:
        """Removes work that was added."""
        self._works.pop(work, None)

    def run(self) -> None:
        """Does all work within `EXIT_SECONDS`, and reports the number of lost messages."""
        ends = time.monotonic() + EXIT_SECONDS
        while self._works:
            work = next(reversed(self._works))
            self.discard(work)
            count, error = work(max(0.0, ends - time.monotonic()))
            if count:
                _status.lost = True
                line = f"cirrusmq_client: {count} messages were not sent before the program ended"
                print(f"{line}: {error}", file=sys.stderr, flush=True)

    def _run_last(self) -> None:
        threading.main_thread().join()
        while others := [each for each in threading.enumerate() if _holds_the_end(each)]:
            for thread in others:
                thread.join()
        self.run()
        if _status.lost:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(LOST_STATUS)


def _is_child() -> bool:
    """Returns True if multiprocessing started this process."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def _holds_the_end(thread: threading.Thread) -> bool:
    ours = (threading.current_thread(), threading.main_thread())
    return not thread.daemon and thread not in ours


_status = _Status()
ENDING = Ending()
