"""Leases of received messages, and their extension while a message is needed."""

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
MIN_SECONDS = 2.0
"""Minimum real seconds of an extension: the next call must arrive in time."""
LONGEST_SECONDS = 43_200
AGAIN_SECONDS = 0.5
SLACK_SECONDS = 0.1


class Held:
    """A message and its lease as known here; times are by the monotonic clock."""

    __slots__ = ("again", "ending", "ends", "message", "renew", "seconds")

    def __init__(self, message: Received, remaining_seconds: float, scale: float) -> None:
        self.message = message
        self.again = message.redeliveries > 0
        """True if it was received before: then it may have ended its process."""
        self.seconds = min(
            LONGEST_SECONDS, max(1, math.ceil(max(remaining_seconds, MIN_SECONDS * scale)))
        )
        """Visibility timeout of an extension, in the service's seconds."""
        self.ending = False
        """True if a call that deletes it is under way."""
        self.set(remaining_seconds / scale)

    @property
    def lost(self) -> bool:
        """True if the lease has expired, so that another consumer may have the message."""
        return time.monotonic() >= self.ends

    def set(self, real_seconds: float) -> None:
        """Sets the end of the lease, `real_seconds` from now."""
        now = time.monotonic()
        self.ends = now + real_seconds
        self.renew = now + real_seconds / 2

    def lose(self) -> None:
        """Notes that the receipt is no longer the message's newest."""
        self.ends, self.renew = -math.inf, math.inf


class Leases:
    """Extends the leases of messages from `add` until `drop`, in a separate worker."""

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
        """Seconds of the service in a real second."""
        self._workers: list[Any] = []
        self._end_watch: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Starts the worker."""
        self._workers = [self._kind.spawn("cirrusmq-leases", self._work, self._died)]
        self._end_watch = self._kind.watch(self._first_end, self._tell_blocked)

    @driven
    def stop(self, seconds: float) -> Steps[None]:
        """Stops extensions. A call that is under way has `seconds` to end."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._end_watch()
        self._kind.abandon(self._workers)
        yield partial(self._kind.join, self._workers, seconds)

    def end_after(self, seconds: float) -> None:
        """Stops extensions after some seconds, also without a call of `stop`."""
        self._until = time.monotonic() + seconds

    def add(self, messages: Sequence[Received]) -> list[Held]:
        """Adds messages that were just received. Returns them with their leases."""
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
        """Notes that a call is about to delete these messages.

        They are extended only if the call takes long, and then may be deleted already.
        """
        for each in held:
            each.ending = True
            each.renew = max(each.renew, each.ends - MIN_SECONDS)

    def drop(self, held: Sequence[Held]) -> None:
        """Ends the extension of these messages."""
        with self._changed:
            for each in held:
                self._held.pop(each.message.receipt, None)

    def _remaining(self, visible_at: datetime | None) -> float:
        # From the latest possible time of the service: better extend too early.
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
        """Notes the results of an extension."""
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
        """Returns the end of the first lease that has not expired; the watch uses it, too."""
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
