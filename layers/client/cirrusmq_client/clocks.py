"""What time it is at the service, learned from the `Date` header of its answers.

    here       sent ────────────────────────────── received
    there              Date (its second cut off)

The answer was made at Date or up to a second later, so at the time of receiving it is at least
Date there; and when the call was sent it was before Date + 1 s.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime


class ServerClock:
    """The service's time. Seconds since the Unix epoch; safe to use from several threads."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        system: Callable[[], float] = time.time,
    ) -> None:
        self._monotonic = monotonic
        ahead = system() - monotonic()
        self._earliest = self._latest = ahead
        self._seen = False
        self._lock = threading.Lock()
        self._parsed: tuple[str, float] = ("", 0.0)

    def see(self, date: str | None, sent: float, received: float) -> None:
        """Learn from an answer; `sent` and `received` are of the monotonic clock."""
        if date is None:
            return
        with self._lock:
            seconds = self._parse(date)
            if seconds is None:
                return
            earliest, latest = seconds - received, seconds + 1 - sent
            if self._seen:
                earliest, latest = max(earliest, self._earliest), min(latest, self._latest)
            if earliest > latest or not self._seen:
                # A clock was set, or runs at another speed: only this answer counts.
                earliest, latest = seconds - received, seconds + 1 - sent
            self._earliest, self._latest, self._seen = earliest, latest, True

    def earliest(self) -> float:
        """Now, or a little before: never ahead of the service."""
        return self._monotonic() + self._earliest

    def latest(self) -> float:
        """Now, or a little after: never behind the service."""
        return self._monotonic() + self._latest

    def _parse(self, date: str) -> float | None:
        text, seconds = self._parsed
        if text != date:
            try:
                seconds = parsedate_to_datetime(date).timestamp()
            except ValueError:
                return None
            self._parsed = (date, seconds)
        return seconds
