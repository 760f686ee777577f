"""Runs functions by their schedules, on the stack's clock."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from cirrusmq_local.cloud.clock import ClockStopped, ScaledClock
from cirrusmq_local.cloud.cloudformation import ACCOUNT_ID
from cirrusmq_local.cloud.template import Schedule

# Also with a fast time scale, other work of the machine needs time between two runs.
MIN_PAUSE_SECONDS = 0.05

_log = logging.getLogger(__name__)


class Repeater:
    """One schedule. Its function never runs twice at once."""

    def __init__(
        self, schedule: Schedule, run: Callable[[str, Any], Any], clock: ScaledClock
    ) -> None:
        self.schedule = schedule
        self._run = run
        self._clock = clock
        self._running = threading.Lock()

    def run_now(self) -> None:
        """Runs the function once. Returns when it has run."""
        with self._running:
            self._run(self.schedule.function, self._event())

    def run_until_stopped(self) -> None:
        """Runs the function by its schedule; runs in its own thread.

        The first run is at once: after a restart some work may be overdue.
        """
        try:
            while True:
                started_ms = self._clock.now_ms()
                self._run_and_log()
                took = (self._clock.now_ms() - started_ms) / 1_000
                least = MIN_PAUSE_SECONDS * self._clock.scale
                self._clock.sleep(max(self.schedule.seconds - took, least))
        except ClockStopped:
            return

    def _run_and_log(self) -> None:
        try:
            self.run_now()
        except Exception:
            _log.exception("%s failed", self.schedule.function)

    def _event(self) -> dict[str, Any]:
        now = datetime.fromtimestamp(self._clock.now_ms() / 1_000, UTC)
        return {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": "Scheduled Event",
            "source": "aws.events",
            "account": ACCOUNT_ID,
            "time": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": "local",
            "resources": [],
            "detail": {},
        }
