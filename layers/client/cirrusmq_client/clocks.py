"""The service's time, learned from its answers.

    here       sent ────────────── received
    there            the answer's time

The call was sent no later than the answer's time, and the answer received no earlier. A `Date`
header has its second cut off, so it leaves a second open; `/health` has milliseconds.
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
        """Whether an answer has told the time to the millisecond."""
        self._parsed: tuple[str, float] = ("", 0.0)
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """In a forked child: a lock that no thread of the parent holds."""
        self._lock = threading.Lock()

    def see(self, date: str | None, sent: float, received: float) -> None:
        """Learn from a `Date` header; `sent` and `received` are of the monotonic clock."""
        with self._lock:
            seconds = None if date is None else self._parse(date)
            if seconds is not None:
                self._narrow(seconds - received, seconds + 1 - sent)

    def see_exactly(self, seconds: float, sent: float, received: float) -> None:
        """Learn from an answer that tells the service's time when it was made."""
        with self._lock:
            self._narrow(seconds - received, seconds - sent)
            self.exact = True

    def earliest(self) -> float:
        """Now, or a little before: never ahead of the service."""
        return self._monotonic() + self._earliest

    def begun(self) -> float:
        """Now, for an `attempt`: hardly behind the service, ahead by a second at most.

        A topic's log is ordered by this time, so it never decreases.
        """
        with self._lock:
            ahead = min(self._latest, self._earliest + 1) if self._seen else self._earliest
            self._begun = max(self._begun, self._monotonic() + ahead)
            return self._begun

    def latest(self) -> float:
        """Now, or a little after: never behind the service."""
        return self._monotonic() + self._latest

    def _narrow(self, earliest: float, latest: float) -> None:
        """Keep what the answers so far have in common."""
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
