"""The end of a process: what still waits is sent, and what cannot be sent is told.

    a program              ends ──> its other threads end ──> atexit: run
    multiprocessing child  ends ──> its other threads end ──> a thread of ours: run ──> os._exit

A child of multiprocessing ends by `os._exit`, in most versions of Python without `atexit`; it waits
for threads that are no daemons, so one of them waits for all others, then does the work.
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
"""For all producers together."""
LOST_STATUS = 1

Work: TypeAlias = Callable[[float], tuple[int, BaseException | None]]
"""Gets the seconds that it may take; returns how many messages are lost, and an error of them."""


class _Status:
    """The exit status, once messages are lost.

    No handler of `atexit` can set it. So the process ends when this object does, which Python
    deletes with its module: after all handlers, and after standard output was written.
    """

    lost = False

    def __init__(self) -> None:
        # A thread that still runs keeps this module's names alive, but not the module, and Python
        # empties only modules that are left.
        self._module = sys.modules[__name__]

    def __del__(self, leave: Callable[[int], None] = os._exit) -> None:
        if self.lost:
            leave(LOST_STATUS)


class Ending:
    """What is to be done when this process ends."""

    def __init__(self) -> None:
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """In a forked child: the parent does what it has to do."""
        self._works: dict[Work, None] = {}
        self._guard: threading.Thread | None = None
        _status.lost = False
        atexit.unregister(self.run)

    def add(self, work: Work) -> None:
        """Do this at the end."""
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
        """As if it had not been added."""
        self._works.pop(work, None)

    def run(self) -> None:
        """Do all of it in `EXIT_SECONDS`, and tell how many messages are lost."""
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
    """Whether multiprocessing made this process: its module is loaded then."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def _holds_the_end(thread: threading.Thread) -> bool:
    ours = (threading.current_thread(), threading.main_thread())
    return not thread.daemon and thread not in ours


_status = _Status()
ENDING = Ending()
