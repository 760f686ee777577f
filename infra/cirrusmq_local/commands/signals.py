"""Waiting for a signal to end, or for the service to give up."""

from __future__ import annotations

import os
import signal


class Ending:
    """Takes SIGTERM and Ctrl-C from now on; `wait` waits for the next of them.

    Neither a lock nor an Event would do. Python runs a handler in the main thread, between two of
    its instructions: there it may hold the very lock that `set` wants, or be about to wait for it:

        main    | wait() ............ looks: nothing yet ........... sleeps for ever
        signal  |                                        noted only,
                |                                        to be handled when main wakes

    The byte that the interpreter writes at the signal is there before and after.
    """

    def __init__(self) -> None:
        self._heard, self._told = os.pipe()
        self._reason: str | None = None
        os.set_blocking(self._told, False)
        signal.set_wakeup_fd(self._told, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def wait(self) -> str | None:
        """Wait for the end; the reason if the service gave up, None after a signal."""
        os.read(self._heard, 1)
        return self._reason

    def give_up(self, reason: str) -> None:
        """End the wait, from any thread."""
        self._reason = reason
        os.write(self._told, b"\0")
