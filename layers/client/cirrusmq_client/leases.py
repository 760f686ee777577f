"""Leases: how long a received message stays ours, and extending that while it is needed."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from cirrusmq_client.client import BaseClient
from cirrusmq_client.concurrency import THREADS, Concurrency
from cirrusmq_client.errors import CirrusMQError, ReceiptExpired
from cirrusmq_client.messages import Received
from cirrusmq_client.outcomes import Outcome
from cirrusmq_client.sources import Source
from cirrusmq_client.steps import Steps, driven

logger = logging.getLogger("cirrusmq_client")
BATCH = 16
LEAST_SECONDS = 2.0
"""Real seconds that an extension gives at least: the next call must arrive in time."""
LONGEST_SECONDS = 43_200
AGAIN_SECONDS = 0.5
SLACK_SECONDS = 0.1


class Held:
    """A message and its lease as known here; times of the monotonic clock."""

    __slots__ = ("again", "ending", "ends", "message", "renew", "seconds")

    def __init__(self, message: Received, remaining_seconds: float, scale: float) -> None:
        self.message = message
        self.again = message.redeliveries > 0
        """Whether it was received before: it may be what ended the process that had it."""
        self.seconds = min(
            LONGEST_SECONDS, max(1, math.ceil(max(remaining_seconds, LEAST_SECONDS * scale)))
        )
        """The visibility timeout that an extension asks for, in the service's seconds."""
        self.ending = False
        """Whether a call is under way that deletes it."""
        self.set(remaining_seconds / scale)

    @property
    def lost(self) -> bool:
        """Whether the lease is over, so that another consumer may have the message."""
        return time.monotonic() >= self.ends

    def set(self, real_seconds: float) -> None:
        """The lease ends so many seconds from now."""
        now = time.monotonic()
        self.ends = now + real_seconds
        self.renew = now + real_seconds / 2

    def lose(self) -> None:
        """The receipt is no longer the message's newest."""
        self.ends, self.renew = -math.inf, math.inf


class Leases:
    """Extends the leases of messages from `add` until `drop`, in a worker of its own."""

    def __init__(
        self,
        client: BaseClient,
        source: Source,
        kind: Concurrency = THREADS,
        died: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self._client, self._source = client, source
        self._kind, self._run, self._died = kind, kind.run, died
        self._held: dict[str, Held] = {}
        self._changed = kind.condition()
        self._wakes = self._until = math.inf
        self._stopped = False
        self.scale = 1.0
        """Seconds of the service in a real one."""
        self._workers: list[Any] = []
        self._end_watch: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Begin."""
        self._workers = [self._kind.spawn("cirrusmq-leases", self._work, self._died)]
        self._end_watch = self._kind.watch(self._first_end, self._tell_blocked)

    @driven
    def stop(self, seconds: float) -> Steps[None]:
        """Extend nothing more. A call that is under way has so long to end."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._end_watch()
        self._kind.abandon(self._workers)
        yield partial(self._kind.join, self._workers, seconds)

    def end_after(self, seconds: float) -> None:
        """Extend nothing from then on, also if nobody calls `stop`."""
        self._until = time.monotonic() + seconds

    def add(self, messages: Sequence[Received]) -> list[Held]:
        """Take over messages just received."""
        added = [
            Held(message, self._remaining(message.visible_at), self.scale) for message in messages
        ]
        with self._changed:
            for held in added:
                self._held[held.message.receipt] = held
            if any(held.renew < self._wakes for held in added):
                self._changed.notify_all()
        return added

    def end(self, held: Sequence[Held]) -> None:
        """A call that deletes these is about to be made: they are extended only if it takes long,
        and may be gone by then."""
        for each in held:
            each.ending = True
            each.renew = max(each.renew, each.ends - LEAST_SECONDS)

    def drop(self, held: Sequence[Held]) -> None:
        """These are no longer needed."""
        with self._changed:
            for each in held:
                self._held.pop(each.message.receipt, None)

    def _remaining(self, visible_at: datetime | None) -> float:
        # Reckoned from the latest time that it can be there: rather extend too early.
        ends = 0.0 if visible_at is None else visible_at.timestamp()
        return max(0.0, ends - self._client.server_seconds)

    @driven
    def _work(self) -> Steps[None]:
        while True:
            with self._changed:
                self._wakes = min((held.renew for held in self._held.values()), default=math.inf)
                pause = self._wakes - time.monotonic()
                if pause > 0 and not self._stopped:
                    yield partial(self._changed.wait, None if pause == math.inf else pause)
                if self._stopped:
                    return
                if time.monotonic() >= self._until:
                    self._held.clear()
                soon = time.monotonic() + SLACK_SECONDS
                due = [held for held in self._held.values() if held.renew <= soon]
            for start in range(0, len(due), BATCH):
                yield from self._extend(due[start : start + BATCH])

    def _extend(self, due: Sequence[Held]) -> Steps[None]:
        by_receipt = {held.message.receipt: held for held in due}
        wanted = {receipt: held.seconds for receipt, held in by_receipt.items()}
        try:
            outcome: Outcome = yield partial(self._client.change_visibility, self._source, wanted)
            self._note(outcome, by_receipt)
        except Exception as error:
            known = isinstance(error, CirrusMQError)
            line = "leases of %s not extended: %s"
            logger.warning(line, self._source, error, exc_info=None if known else error)
            for held in due:
                held.renew = time.monotonic() + AGAIN_SECONDS

    def _note(self, outcome: Outcome, by_receipt: dict[str, Held]) -> None:
        """What became of an extension."""
        for receipt, visible_at in outcome.done.items():
            if visible_at is not None:
                remaining = self._remaining(datetime.fromisoformat(visible_at))
                by_receipt[receipt].set(remaining / self.scale)
        for failed in outcome.failed:
            with self._changed:
                known = failed.receipt in self._held
            if failed.code == ReceiptExpired.__name__:
                by_receipt[failed.receipt].lose()
            else:
                by_receipt[failed.receipt].renew = math.inf
            if known and not by_receipt[failed.receipt].ending:
                message = by_receipt[failed.receipt].message
                line = "%s of %s is no longer held: %s"
                logger.warning(line, message.id, self._source, failed.detail)

    def _first_end(self) -> float:
        """When the first lease ends that is not known to be over; also asked by the watch."""
        ends = [held.ends for held in list(self._held.values()) if not held.ending]
        return min((end for end in ends if end != -math.inf), default=math.inf)

    def _tell_blocked(self, stack: str) -> None:
        lost = [held.message.id for held in list(self._held.values()) if held.lost]
        line = (
            "a handler blocks the event loop, so %d leases of %s were not extended and have ended:"
            " others may get these messages: %s. Await what takes long, or call it by"
            " asyncio.to_thread. The loop is here:\n%s"
        )
        logger.error(line, len(lost), self._source, ", ".join(lost), stack)
