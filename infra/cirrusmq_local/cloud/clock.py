"""The stack's time: may run faster than real time, never decreases, also over restarts."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from cirrusmq_local.engine.data_errors import DataError, naming
from cirrusmq_local.hub import caller, current

KEEP_EVERY_SECONDS = 1.0
KEPT_AHEAD_SECONDS = 3.0
"""Seconds of real time for which writes of the kept time may fail before the clock stops."""
LEVEL_MS = 100
"""Up to this lead over the machine's clock, the kept time need not be ahead of the clock."""
LAST_MS = 9_000_000_000_000
"""Last time, in the year 2255: keys have 13 digits of milliseconds."""
STANDSTILL_PAUSE_SECONDS = 0.05

_KEPT_BYTES = 64


class ClockStopped(BaseException):
    """The stack is ending, and every thread that sleeps on its clock ends with it.

    Not an Exception: a handler that catches everything must not wait on.
    """


class CallerGone(ClockStopped):
    """Nobody waits for the call's answer any more: the call ends at its sleep."""


class ScaledClock:
    """Real time times the scale, from max(now, the last time kept).

    While it runs, the file holds a time that the clock does not pass, so that a stack which was
    killed starts at no earlier time than it returned before. If the file cannot be written, as on
    a full disk, the clock stops at that time until a write succeeds:

        kept ─────────┐ (now + what the scale adds until some keepings later)
        now ──┬───────┴──┬─────────┐············┌──> time
              keep       keep      keepings fail keep

    A clock that is level with the machine's needs no such bound, because a restart begins with the
    machine's time. The file is overwritten in place, which takes no space. Before the first write
    nothing bounds the clock.
    """

    def __init__(
        self,
        kept: Path,
        scale: float = 1.0,
        *,
        system_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises DataError if the file `kept` exists and holds no time."""
        self.scale = scale
        self._kept = kept
        self._system_ms = system_ms
        self._monotonic = monotonic
        self._started = monotonic()
        kept_ms = _read(kept)
        self._started_ms = max(system_ms(), kept_ms)
        self.started_ahead_ms = self._started_ms - system_ms()
        """Lead over the machine's clock at the start."""
        self._bound_ms: int | None = None
        self._said_ms = 0
        self._saying = threading.Lock()
        self._keeping = threading.Lock()
        self._stopped = threading.Event()

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, on the stack's clock."""
        running_ms, bound_ms = self._running_ms(), self._bound_ms
        if bound_ms is None or running_ms <= bound_ms:
            return running_ms
        if running_ms <= self._said_ms:
            return self._said_ms  # returned before: most calls ask several times within one
        with self._saying:
            # The machine's clock may have been set back since the last time was said.
            now_ms = min(running_ms, max(bound_ms, self._system_ms()))
            self._said_ms = max(self._said_ms, now_ms)
            return self._said_ms

    def start_after(self, moment_ms: int) -> None:
        """Continues from `moment_ms` at least: a stored item has this time."""
        missing_ms = max(0, moment_ms - self._running_ms())
        self._started_ms += missing_ms
        self.started_ahead_ms += missing_ms

    def sleep(self, seconds: float) -> None:
        """Sleeps for `seconds` of the stack's time.

        Raises ClockStopped if the stack ends during the sleep, CallerGone if the caller goes.
        """
        real_seconds = max(0.0, seconds) / self.scale
        if self._stands():
            # A caller that sleeps until a moment would call again at once, without end.
            real_seconds = max(real_seconds, STANDSTILL_PAUSE_SECONDS)
        hub = current()
        if hub is None:
            self._stopped.wait(real_seconds)
        else:
            hub.sleep(real_seconds, self._stopped.is_set)
        if self.stopped:
            raise ClockStopped
        waiting = caller.get()
        if waiting is not None and waiting.ended:
            raise CallerGone

    @property
    def stopped(self) -> bool:
        """True if the stack is ending."""
        return self._stopped.is_set()

    def keep(self) -> None:
        """Writes a time that the clock does not pass before a later call. Raises OSError."""
        running_ms = self._running_ms()
        level = self.scale == 1 and running_ms - self._system_ms() <= LEVEL_MS
        ahead_ms = 0 if level else int(KEPT_AHEAD_SECONDS * 1_000 * self.scale)
        bound_ms = running_ms + ahead_ms
        with self._keeping:
            if not self._stopped.is_set():
                _write(self._kept, bound_ms)
                self._bound_ms = bound_ms

    def keep_until_stopped(self, failed: Callable[[OSError], None]) -> None:
        """Keeps the time again and again, and calls `failed` with each failure; for a thread."""
        while not self._stopped.wait(KEEP_EVERY_SECONDS):
            try:
                self.keep()
            except OSError as error:
                failed(error)

    def stop(self) -> None:
        """Wakes every sleeper, and stops at the time that is written last."""
        self._stopped.set()
        with self._keeping:
            last_ms = self._stand_still()
            # If this fails, the file has a later time.
            with contextlib.suppress(OSError):
                _write(self._kept, last_ms)

    def _running_ms(self) -> int:
        return self._started_ms + int((self._monotonic() - self._started) * 1_000 * self.scale)

    def _stands(self) -> bool:
        return self._bound_ms is not None and self._running_ms() - self.now_ms() > LEVEL_MS

    def _stand_still(self) -> int:
        """Bounds the clock to now, which is no earlier than any time that it has returned."""
        with self._saying:
            bound_ms, self._bound_ms = self._bound_ms, -1
            # A thread that still uses the previous bound has read the time before this line.
            last_ms = self._running_ms()
            if bound_ms is not None:
                last_ms = min(last_ms, max(bound_ms, self._system_ms()))
            self._said_ms = self._bound_ms = max(self._said_ms, last_ms)
            return self._said_ms


def _read(kept: Path) -> int:
    with naming(kept):
        try:
            text = kept.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return 0
    if not text:
        return 0  # made on a full disk
    try:
        now_ms = json.loads(text)["now_ms"]
    except (ValueError, RecursionError, TypeError, KeyError):
        now_ms = None
    if type(now_ms) is not int or now_ms < 0:
        raise DataError(
            f"{kept} is damaged, it holds no time: remove it, and the time goes on from the last"
            " write in the store"
        )
    if now_ms > LAST_MS:
        raise DataError(f"{kept} holds a time after the year 2255: take another --data")
    return now_ms


def _write(kept: Path, now_ms: int) -> None:
    """Overwrites the file in place: a write within one sector is done whole or not at all."""
    text = json.dumps({"now_ms": now_ms}).ljust(_KEPT_BYTES - 1) + "\n"
    descriptor = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(descriptor, text.encode(), 0)
        os.ftruncate(descriptor, _KEPT_BYTES)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
