"""Waiting until a signal says to end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def listen_for_end() -> Callable[[], object]:
    """Take SIGTERM and Ctrl-C from now on; what is returned waits for the next of them.

    Neither a lock nor an Event would do. Python runs a handler in the main thread, between two of
    its instructions: there it may hold the very lock that `set` wants, or be about to wait for it:

        main    | wait() ............ looks: nothing yet ........... sleeps for ever
        signal  |                                        noted only,
                |                                        to be handled when main wakes

    The byte that the interpreter writes as the signal comes is there before and after.
    """
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return lambda: os.read(heard, 1)
