"""The stack's time: it may run faster than real time, and never goes back, also over restarts."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

KEEP_EVERY_SECONDS = 1.0


class ClockStopped(BaseException):
    """The stack is ending, and whoever sleeps on its clock ends with it.

    Not an Exception: a handler that catches everything must not go on waiting.
    """


class ScaledClock:
    """Real time times the scale, from max(now, the last time kept).

    While it runs, the file holds a time that the clock has not passed yet, so that a stack which
    was killed does not go back behind what it answered:

        kept ─────────┐ (now + what the scale adds until the next keeping)
        now ──┬───────┴──┬──> time
              keep       keep
    """

    def __init__(
        self,
        kept: Path,
        scale: float = 1.0,
        *,
        system_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.scale = scale
        self._kept = kept
        self._monotonic = monotonic
        self._started = monotonic()
        self._started_ms = max(system_ms(), _read(kept))
        self._stopped = threading.Event()

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, on the stack's clock."""
        return self._started_ms + int((self._monotonic() - self._started) * 1_000 * self.scale)

    def sleep(self, seconds: float) -> None:
        """Let `seconds` of the stack's time pass; ClockStopped if the stack ends meanwhile."""
        if self._stopped.wait(max(0.0, seconds) / self.scale):
            raise ClockStopped

    @property
    def stopped(self) -> bool:
        """Whether the stack is ending."""
        return self._stopped.is_set()

    def keep(self) -> None:
        """Note a time that is not passed before the next call, KEEP_EVERY_SECONDS from now."""
        ahead = int((self.scale - 1) * 2 * KEEP_EVERY_SECONDS * 1_000)
        self._write(self.now_ms() + max(0, ahead))

    def keep_until_stopped(self) -> None:
        """Keep noting the time; for a thread of its own."""
        while not self._stopped.wait(KEEP_EVERY_SECONDS):
            self.keep()

    def stop(self) -> None:
        """Wake every sleeper, and note the time as it is."""
        self._stopped.set()
        self._write(self.now_ms())

    def _write(self, now_ms: int) -> None:
        beside = self._kept.with_name(f"{self._kept.name}.{threading.get_ident()}.new")
        with beside.open("w", encoding="utf-8") as file:
            json.dump({"now_ms": now_ms}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self._kept)


def _read(kept: Path) -> int:
    try:
        return int(json.loads(kept.read_text(encoding="utf-8"))["now_ms"])
    except FileNotFoundError:
        return 0
