"""Broadcasting: every member reads every message of a log, and continues after its last one."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

from cirrusmq_client.answers import Health
from cirrusmq_client.client import BaseClient
from cirrusmq_client.concurrency import THREADS, Concurrency, died_of
from cirrusmq_client.errors import CirrusMQError, NoAnswer, Throttled, Unavailable
from cirrusmq_client.handling import Handle
from cirrusmq_client.messages import Received
from cirrusmq_client.options import Options
from cirrusmq_client.progress import Progress
from cirrusmq_client.sources import Subscription, Topic
from cirrusmq_client.steps import Steps, driven
from cirrusmq_client.times import just_before
from cirrusmq_client.tracing import detached
from cirrusmq_client.upkeep import MISSING, MISSING_SECONDS, Upkeep

logger = logging.getLogger("cirrusmq_client")
Log: TypeAlias = str | Subscription
PAGE = (16, 100)
PAUSE_SECONDS = (0.1, 1.0)
OUTAGE_SECONDS = 30.0
START_SECONDS = 0.1
END_SECONDS = 2.0
"""Wait for a cancelled handler, and the interval between two checks for the end."""
PASSING = (NoAnswer, Throttled, Unavailable)


class Broadcasting:
    """One member with one worker: handles messages in the order of the log.

    Progress is saved after the messages' handling, so delivery is at least once: after a crash the
    last messages are read again. A failure is logged and not retried.
    """

    def __init__(
        self,
        client: BaseClient,
        log: Log,
        handle: Handle,
        options: Options,
        progress: Progress,
        kind: Concurrency = THREADS,
    ) -> None:
        self._kind, self._run = kind, kind.run
        self._client, self._log, self._handle = client, log, handle
        self._options, self._progress = options, progress
        self._named = Topic(log) if isinstance(log, str) else log
        self._upkeep = Upkeep(client, self._named, _creating(log, options), kind)
        self._error: CirrusMQError | None = None
        self._begun = kind.event()
        self._abandoned = False
        self._sought: str | None = None
        """Time after which to continue when the handler has ended, or None."""
        self._gathered: list[Received] = []
        self._since = 0.0
        self.stopping = kind.event()
        self._workers: list[Any] = []

    @driven
    def start(self) -> Steps[None]:
        """Starts to read; messages published after this returns are read, unless it is stopped.

        Raises the error that made the start impossible.
        """
        with detached(self._client.spans):
            self._workers = [self._kind.spawn("cirrusmq-broadcast", self._work, self._die)]
        try:
            # In short waits: the service may be unreachable for longer than a `stop` may take.
            while not self._begun.is_set() and not self.stopping.is_set():
                yield partial(self._begun.wait, START_SECONDS)
        except self._kind.cancelled:
            self.stopping.set()
            yield partial(self._kind.join, self.abandon(), END_SECONDS)
            raise
        if self._error is not None and not self._begun.is_set():
            raise self._error

    @driven
    def finish(self) -> Steps[None]:
        """Lets the handler end within the grace time, after `stopping` is set.

        Raises the error that made reading impossible or ended the worker.
        """
        ends = time.monotonic() + self._options.grace_seconds
        while not self._abandoned and (left := ends - time.monotonic()) > 0:
            if (yield partial(self._kind.join, self._workers, min(left, END_SECONDS))):
                break
        yield partial(self._kind.join, self.abandon(), END_SECONDS)
        if self._error is not None:
            raise self._error

    def seek(self, to: datetime | str) -> None:
        """Reads everything published at a time or later (again); drops gathered messages.

        A running handler ends before. Then the progress is saved: after a crash before that, the
        member continues at its earlier position.
        """
        self._sought = just_before(to)

    def abandon(self) -> Sequence[Any]:
        """Ends the handler now, if possible; its messages are read again."""
        self._abandoned = True
        return self._kind.abandon(self._workers)

    def hurry(self) -> None:
        """Ends the grace time now."""
        self.abandon()

    def _die(self, error: BaseException) -> None:
        """Notes the exception that ended the worker: `finish` raises it."""
        if self._abandoned:
            return
        self._error = died_of(self._named, error)
        self.stopping.set()

    def _begin(self) -> Steps[None]:
        """Finds the start of reading: the progress, or else the service's time now."""
        known = self._sought or self._progress.load()
        if not known:
            health: Health = yield self._client.health
            known = health["time"]
        self._cursor = known
        self._begun.set()

    @driven
    def _work(self) -> Steps[None]:
        try:
            yield from self._begin()
        except CirrusMQError as error:
            self._error = error
            self.stopping.set()
            return
        after, pause, outage = self._cursor, PAUSE_SECONDS[0], PAUSE_SECONDS[1]
        while not self.stopping.is_set():
            try:
                if self._sought is not None:
                    after = self._begin_anew()
                page, following = yield from self._read(after, self._limit())
                outage = PAUSE_SECONDS[1]
                if self._sought is not None:
                    continue
                if page and not self._gathered:
                    self._since = time.monotonic()
                self._gathered += page
                after = following
                if self._due():
                    yield from self._handle_gathered(after)
                pause = PAUSE_SECONDS[0] if page else min(2 * pause, PAUSE_SECONDS[1])
                if not page:
                    yield partial(self.stopping.wait, min(pause, self._left()))
            except PASSING as error:
                logger.warning("%s not read, again in %.1f s: %s", self._named, outage, error)
                yield partial(self.stopping.wait, outage)
                outage = min(2 * outage, OUTAGE_SECONDS)
            except MISSING as error:
                outage = min(outage, MISSING_SECONDS)
                made: bool = yield partial(self._upkeep.make, error, outage)
                if not made:
                    yield partial(self.stopping.wait, outage)
                    outage *= 2
            except CirrusMQError as error:
                self._error = error
                self.stopping.set()

    def _begin_anew(self) -> str:
        """Returns the cursor for the time of `seek`."""
        sought, self._sought = self._sought, None
        assert sought is not None
        self._gathered = []
        self._cursor = sought
        self._progress.save(sought)
        return sought

    def _read(self, after: str, limit: int) -> Steps[tuple[list[Received], str]]:
        page: tuple[list[Received], str] = yield partial(
            self._client.read_log, self._log, after, limit
        )
        return page

    def _limit(self) -> int:
        least, maximum = PAGE
        return max(1, min(maximum, max(least, self._options.limit) - len(self._gathered)))

    def _left(self) -> float:
        """Returns the seconds until the gathered messages have waited long enough."""
        if not self._gathered:
            return PAUSE_SECONDS[1]
        return max(0.0, self._since + self._options.await_seconds - time.monotonic())

    def _due(self) -> bool:
        enough = len(self._gathered) >= self._options.limit
        return bool(self._gathered) and (enough or self._left() <= 0)

    def _handle_gathered(self, following: str) -> Steps[None]:
        maximum, handled = self._options.limit, 0
        while handled < len(self._gathered) and not self._interrupted():
            yield from self._handle(self._gathered[handled : handled + maximum])
            handled = min(handled + maximum, len(self._gathered))
        if self._sought is not None:
            return  # its progress is obsolete
        if handled < len(self._gathered):
            following = yield from self._cursor_behind(handled)
        self._gathered = []
        self._progress.save(following)
        self._cursor = following

    def _interrupted(self) -> bool:
        return self.stopping.is_set() or self._sought is not None

    def _cursor_behind(self, count: int) -> Steps[str]:
        """Returns the cursor behind the first `count` messages, read from the log."""
        cursor = self._cursor
        while count:
            page, cursor = yield from self._read(cursor, min(count, PAGE[1]))
            count -= len(page)
        return cursor


def _creating(log: Log, options: Options) -> Options:
    """Returns the options, with the mode for a new subscription."""
    if options.create is None or isinstance(log, str):
        return options
    return replace(options, create={"mode": "broadcasting", **options.create})
