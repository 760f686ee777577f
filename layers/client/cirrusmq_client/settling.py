"""Settling messages with the service: many in a call, while handlers work."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

from cirrusmq_client.client import Client
from cirrusmq_client.errors import CirrusMQError, NoDeadLetterQueue
from cirrusmq_client.leases import BATCH, Held, Leases
from cirrusmq_client.outcomes import Outcome
from cirrusmq_client.results import Ack, DeadLetter, Result, Retry
from cirrusmq_client.sources import Source

logger = logging.getLogger("cirrusmq_client")
THREADS = 2
PENDING = 1_024
"""Results that may wait; then handlers wait for them."""


class Settler:
    """Deletes, gives back and dead-letters. Results that wait during a call are in the next one."""

    def __init__(self, client: Client, source: Source, leases: Leases) -> None:
        self._client, self._source, self._leases = client, source, leases
        self._pending: deque[tuple[Held, Result]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._run, name=f"cirrusmq-settler-{number}", daemon=True)
            for number in range(THREADS)
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def put(self, results: Iterable[tuple[Held, Result]]) -> None:
        """Settle these some time soon."""
        with self._changed:
            while len(self._pending) >= PENDING and not self._closed:
                self._changed.wait()
            self._pending.extend(results)
            self._changed.notify_all()

    def close(self) -> None:
        """Settle what waits, then end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def settle(self, results: Iterable[tuple[Held, Result]]) -> set[str]:
        """Settle these now; the receipts for which the service did it."""
        together: defaultdict[Result, list[Held]] = defaultdict(list)
        for held, result in results:
            together[result].append(held)
        done: set[str] = set()
        for result, group in together.items():
            for start in range(0, len(group), BATCH):
                done |= self._settle(group[start : start + BATCH], result)
        return done

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._pending and not self._closed:
                    self._changed.wait()
                if not self._pending:
                    return
                count = min(len(self._pending), BATCH)
                taken = [self._pending.popleft() for _ in range(count)]
                self._changed.notify_all()
            self.settle(taken)

    def _settle(self, group: Sequence[Held], result: Result) -> set[str]:
        receipts = [held.message.receipt for held in group]
        try:
            outcome = self._call(receipts, result)
        except CirrusMQError as error:
            # They are delivered again when their leases end.
            logger.warning("%d messages not settled: %s", len(group), error)
            return set()
        finally:
            self._leases.drop(group)
        hopeless = [
            failed.receipt for failed in outcome.failed if failed.code == NoDeadLetterQueue.__name__
        ]
        for failed in outcome.failed:
            logger.warning("not settled: %s: %s", failed.code, failed.detail)
        if hopeless:
            self._settle([held for held in group if held.message.receipt in hopeless], Retry())
        return set(outcome.done)

    def _call(self, receipts: Sequence[str], result: Result) -> Outcome:
        match result:
            case Ack():
                return self._client.delete(self._source, receipts)
            case DeadLetter(reason):
                return self._client.dead_letter(self._source, receipts, reason)
            case Retry():
                return self._client.give_back(self._source, receipts, result.delay_seconds)
