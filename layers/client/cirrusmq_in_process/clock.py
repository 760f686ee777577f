"""The clock of a client's machine, compared with the `Date` of DynamoDB's answers.

The service reckons with clocks that are 2 s apart. A clock that is further off would answer sends
that nobody receives, or take messages that others hold. So calls go by the URL while this one is
more than a second off, and no call sees a time that is: a clock that is set while a call runs is
held at that bound.

    Date header   |12:00:00 ........ 12:00:01|     a second is cut off
    answers       narrow what the time can be, as they do for the client's own clock
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import Any

from cirrusmq.base.errors import Unavailable
from cirrusmq.runtime.clock import SystemClock
from cirrusmq_client.clocks import ServerClock

OFF_SECONDS = 1.0
_SENT = "cirrusmq_sent"
_logger = logging.getLogger("cirrusmq_client")


def _find_steady() -> Any:
    """A clock that is never set, and goes on while the machine is suspended."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    return time.monotonic


steady = _find_steady()


class WatchedClock(SystemClock):
    """The machine's clock, within a second of DynamoDB's as far as answers tell."""

    def __init__(self, system: Any = time.time, steadily: Any = steady) -> None:
        self._system, self._steadily = system, steadily
        self._dates = ServerClock(monotonic=steadily, system=system)
        self._seen = self._was_off = False
        self._closed = threading.Event()
        super().__init__(system_ms=self._within_bounds_ms, monotonic=steadily)

    def watch(self, client: Any) -> None:
        """Learn from each answer that a botocore client gets from DynamoDB."""
        client.meta.events.register("before-call.dynamodb", self._note_sent)
        client.meta.events.register("after-call.dynamodb", self._note_answer)

    def see(self, date: str | None, sent: float, received: float) -> None:
        """Learn from the `Date` of an answer; both times are of the clock that is never set."""
        self._dates.see(date, sent, received)
        self._seen = self._seen or date is not None

    def is_right(self) -> bool:
        """Returns True if the clock is at most a second off. A change is logged in one line."""
        off = self._off_seconds()
        if off is None:
            return False  # no answer told the time yet
        if bool(off) != self._was_off:
            self._was_off = bool(off)
            line = "the clock is more than 1 s %s DynamoDB's: calls go by the service's URL"
            if off:
                _logger.warning(line, "ahead of" if off > 0 else "behind")
            else:
                _logger.warning("the clock is right again: calls are made in this process")
        return not off

    def sleep(self, seconds: float) -> None:
        """Waits. Raises Unavailable once the client is closed."""
        if self._closed.wait(max(0.0, seconds)):
            raise Unavailable("the client is closed")

    def close(self) -> None:
        """Ends all waits."""
        self._closed.set()

    def _off_seconds(self) -> float | None:
        """Seconds beyond the bound: positive if the clock is ahead, 0 if it is right."""
        if not self._seen:
            return None
        now = self._system()
        ahead = now - (self._dates.latest() + OFF_SECONDS)
        behind = self._dates.earliest() - OFF_SECONDS - now
        return float(ahead if ahead > 0 else -max(0.0, behind))

    def _within_bounds_ms(self) -> int:
        now = float(self._system())
        if self._seen:
            latest, earliest = self._dates.latest(), self._dates.earliest()
            now = max(min(now, latest + OFF_SECONDS), earliest - OFF_SECONDS)
        return int(now * 1_000)

    def _note_sent(self, context: dict[str, Any], **_: Any) -> None:
        context[_SENT] = self._steadily()

    def _note_answer(self, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        headers = parsed.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        if _SENT in context:
            self.see(headers.get("date"), context[_SENT], self._steadily())
