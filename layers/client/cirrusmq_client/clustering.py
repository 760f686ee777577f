"""Clustering: the members of a group share the messages of a source.

receive ──> inbox ──> workers: handler ──> settler: delete, give back, dead-letter
   ↑          └── leases are extended from the receive until the settling ──┘
   └───────── deletes of what was handled since the last receive ───────────┘
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from cirrusmq_client.client import Client
from cirrusmq_client.errors import CirrusMQError, Forbidden, NoAnswer, Throttled, Unavailable
from cirrusmq_client.inbox import Inbox
from cirrusmq_client.leases import Held, Leases
from cirrusmq_client.messages import Received
from cirrusmq_client.options import Options
from cirrusmq_client.results import Ack, Result, Retry
from cirrusmq_client.settling import Settler
from cirrusmq_client.sources import Queue, Source

logger = logging.getLogger("cirrusmq_client")
Handle = Callable[[Sequence[Received]], list[Result]]
PAUSE_SECONDS = (0.5, 30.0)
PASSING = (NoAnswer, Throttled, Unavailable)
AT_ONCE = Retry(after=0)


class Clustering:
    """The threads of one member."""

    def __init__(self, client: Client, source: Source, handle: Handle, options: Options) -> None:
        self._client, self._source, self._handle = client, source, handle
        self._options = options
        self._inbox = Inbox(max(options.prefetch, options.most - 1))
        self._leases = Leases(client, source)
        self._settler = Settler(client, source, self._leases)
        self._error: CirrusMQError | None = None
        self.stopping = threading.Event()
        self._receivers = self._threads("receiver", self._receive, options.receivers)
        self._workers = self._threads("worker", self._work, options.workers)

    def start(self) -> None:
        """Begin to receive and to handle."""
        self._leases.start()
        self._settler.start()
        for thread in (*self._workers, *self._receivers):
            thread.start()

    def finish(self) -> None:
        """Once `stopping` is set: give back what was not started, let handlers end within the
        grace time, settle. Raises what made receiving impossible."""
        unstarted = self._inbox.close()
        self._settler.put((held, AT_ONCE) for held in unstarted)
        ends = time.monotonic() + self._options.grace_seconds
        for thread in (*self._workers, *self._receivers):
            thread.join(max(0.0, ends - time.monotonic()))
        if any(thread.is_alive() for thread in self._workers):
            logger.warning("the grace time is over: what still runs comes again later")
        self._settler.close()
        self._leases.stop()
        if self._error is not None:
            raise self._error

    def _threads(self, name: str, target: Callable[[], None], count: int) -> list[threading.Thread]:
        return [
            threading.Thread(target=target, name=f"cirrusmq-{name}-{number}", daemon=True)
            for number in range(count)
        ]

    def _receive(self) -> None:
        learned = False
        pause, longest = PAUSE_SECONDS
        while not self.stopping.is_set():
            try:
                if not learned:
                    self._learn()
                    learned = True
                if self._receive_once():
                    pause = PAUSE_SECONDS[0]
                else:
                    # As many receives of the account wait as may: this one has not waited.
                    self.stopping.wait(pause)
                    pause = min(2 * pause, self._options.wait_seconds, longest)
            except PASSING as error:
                logger.warning("not received, again in %.1f s: %s", pause, error)
                self.stopping.wait(pause)
                pause = min(2 * pause, longest)
            except CirrusMQError as error:
                self._error = error
                self.stopping.set()

    def _learn(self) -> None:
        """Whether messages have an order, and how fast time runs."""
        self._leases.scale = self._client.health()["time_scale"]
        try:
            if isinstance(self._source, Queue):
                ordered = self._client.show_queue(self._source.name)["ordered"]
            else:
                shown = self._client.show_subscription(self._source.topic, self._source.name)
                ordered = bool(shown.get("ordered"))
        except Forbidden:
            # A grant to receive does not show attributes. Keeping the order harms in no case.
            ordered = True
        self._inbox.ordered = ordered

    def _receive_once(self) -> bool:
        """Receive; False where that answered nothing long before the end of its wait."""
        most = self._inbox.wait_for_room()
        if not most:
            return True
        begun = time.monotonic()
        received = self._exchange(most)
        if not received:
            waited_seconds = (time.monotonic() - begun) * self._leases.scale
            return waited_seconds >= self._options.wait_seconds / 2
        held = self._leases.add(received)
        if held and not self._inbox.put(held):
            self._settler.settle((each, AT_ONCE) for each in held)
        if len(received) < most and not self._inbox.ordered:
            # Nothing more is there for now: quick handlers end before the next receive is made.
            self._settler.wait_for_deletes(len(received))
        return True

    def _exchange(self, most: int) -> list[Received]:
        """Receive; what was handled since the last time is deleted by the same call."""
        done = self._settler.take_deletes()
        wanted: dict[str, Any] = {
            "wait_seconds": self._options.wait_seconds,
            "visibility_timeout_seconds": self._options.visibility_timeout_seconds,
        }
        if not done:
            return self._client.receive(self._source, most, **wanted)
        receipts = [held.message.receipt for held in done]
        try:
            exchanged = self._client.delete_and_receive(self._source, receipts, most, **wanted)
        except CirrusMQError:
            self._settler.delete_after_all(done)
            raise
        self._settler.note_deletes(done, exchanged.deleted)
        if exchanged.error is not None:
            raise exchanged.error
        return exchanged.messages

    def _work(self) -> None:
        while True:
            taken = self._inbox.take(self._options.most, self._options.await_seconds)
            if not taken:
                return
            started = [held for held in taken if not held.lost]
            if len(started) < len(taken):
                self._lose([held for held in taken if held.lost])
            if not started:
                continue
            results = list(zip(started, self._handle([h.message for h in started]), strict=True))
            if self._inbox.ordered:
                self._settle_in_order(results)
            else:
                self._settler.put(results)

    def _settle_in_order(self, results: Sequence[tuple[Held, Result]]) -> None:
        """The next message of a group starts when this one is surely gone, and never else."""
        done = self._settler.settle(results)
        for held, result in results:
            if held.message.receipt not in done or not isinstance(result, Ack):
                self._give_back_later(held)
            self._inbox.done(held)

    def _lose(self, lost: Sequence[Held]) -> None:
        """Another member may have received these by now: they are not handled here."""
        self._leases.drop(lost)
        for held in lost:
            logger.warning("%s was not started in time", held.message.id)
            self._give_back_later(held)
            self._inbox.done(held)

    def _give_back_later(self, held: Held) -> None:
        self._settler.settle((each, AT_ONCE) for each in self._inbox.fail(held))
