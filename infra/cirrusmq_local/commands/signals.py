"""Waits for a signal, or for the end of the service."""

from __future__ import annotations

import os
import signal


class Ending:
    """Handles SIGTERM and Ctrl-C from now on; `wait` waits for the next signal.

    A lock or an Event would not work. Python runs a handler in the main thread, between two of
    its instructions. The main thread may then hold the lock that `set` needs, or be about to wait:

        main    | wait() ............ looks: nothing yet ........... sleeps for ever
        signal  |                                        noted only,
                |                                        to be handled when main wakes

    The interpreter writes a byte at the signal, which main finds before and after its look.
    """

    def __init__(self) -> None:
        self._heard, self._told = os.pipe()
        self._reason: str | None = None
        os.set_blocking(self._told, False)
        signal.set_wakeup_fd(self._told, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def wait(self) -> str | None:
        """Wait for the end. Returns the reason if the service failed, or None after a signal."""
        os.read(self._heard, 1)
        return self._reason

    def give_up(self, reason: str) -> None:
        """End the wait, from any thread."""
        self._reason = reason
        os.write(self._told, b"\0")
