"""The service's time, derived from its answers.

    here       sent ────────────── received
    there            the answer's time

The call was sent no later than the answer's time, and the answer received no earlier. A `Date`
header has no fraction of a second, so a second stays open; `/health` has milliseconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

from cirrusmq_client.forking import renew_in_children

SET_SECONDS = 1.0


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
        self._begun = 0.0
        self.exact = False
        """True if an answer had the time to the millisecond."""
        self._parsed: tuple[str, float] = ("", 0.0)
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Makes a new lock in a forked child: a thread of the parent may hold the old one."""
        self._lock = threading.Lock()

    def see(self, date: str | None, sent: float, received: float) -> None:
        """Learns from a `Date` header; `sent` and `received` are by the monotonic clock."""
        with self._lock:
            seconds = None if date is None else self._parse(date)
            if seconds is not None:
                self._narrow(seconds - received, seconds + 1 - sent)

    def see_exactly(self, seconds: float, sent: float, received: float) -> None:
        """Learns from an answer with the service's exact time."""
        with self._lock:
            self._narrow(seconds - received, seconds - sent)
            self.exact = True

    def earliest(self) -> float:
        """Returns now or a little earlier: never ahead of the service."""
        return self._monotonic() + self._earliest

    def begun(self) -> float:
        """Returns now for an `attempt`: almost never behind the service, at most a second ahead.

        A topic's log is ordered by this time, so it never decreases.
        """
        with self._lock:
            ahead = min(self._latest, self._earliest + 1) if self._seen else self._earliest
            self._begun = max(self._begun, self._monotonic() + ahead)
            return self._begun

    def latest(self) -> float:
        """Returns now or a little later: never behind the service."""
        return self._monotonic() + self._latest

    def _narrow(self, earliest: float, latest: float) -> None:
        """Narrows the range of times to the one on which all answers agree."""
        off = max(earliest - self._latest, self._earliest - latest)
        if not self._seen or off > SET_SECONDS:
            # A clock was set, or runs at another speed: only this answer counts.
            self._earliest, self._latest, self._seen = earliest, latest, True
            self._begun = 0.0
            return
        # Clocks drift: the nearest that agrees with this answer.
        self._earliest = min(max(earliest, self._earliest), latest)
        self._latest = max(min(latest, self._latest), earliest)

    def _parse(self, date: str) -> float | None:
        text, seconds = self._parsed
        if text != date:
            try:
                seconds = parsedate_to_datetime(date).timestamp()
            except ValueError:
                return None
            self._parsed = (date, seconds)
        return seconds
