"""Publishes together with a local transaction: both take effect or neither, after any failure.

    prepare ──> handle ──> local transaction, with the handle's record ──> commit
                                │ raises                                     │ no answer
                                └──> no record: roll back                    └──> a check finds the
                                                                                  record: commit

A check reads the handle's record in the local store. If there is none, it writes a record of the
rollback, so that a local transaction that is still under way fails, in any process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, Self, TypedDict, TypeVar

from cirrusmq_client.batches import split
from cirrusmq_client.checks import several
from cirrusmq_client.client import BaseClient
from cirrusmq_client.concurrency import THREADS, Concurrency
from cirrusmq_client.errors import CirrusMQError, Conflict, MessageNotFound
from cirrusmq_client.forking import renew_in_children
from cirrusmq_client.messages import Message
from cirrusmq_client.outcomes import Published, Undecided
from cirrusmq_client.steps import Blocking, Steps, driven

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_AT_ONCE = 16
_HELD_SECONDS = 30
_LONGEST_PAUSE_SECONDS = 30.0
_logger = logging.getLogger(__name__)


class TransactionOptions(TypedDict, total=False):
    """The options of a transaction; see `Transaction`."""

    group: str
    check_after_seconds: int
    max_checks: int


class TakenOver(Exception):
    """A check has rolled the messages back before: nothing of the local transaction is kept."""


class LocalTransactions(Protocol[T_co]):
    """The store of the local transactions, with a record of each handle."""

    def run(self, handle: str, work: Callable[[T_co], object]) -> object:
        """Does the work and records the handle, both or neither.

        Returns the work's result. Raises TakenOver if a check came first.
        """
        ...

    def took_place(self, handle: str) -> bool:
        """Returns True if the handle's transaction took place; if not, it never will."""
        ...


@dataclass(frozen=True)
class Done:
    """A local transaction that took place, and the messages published with it."""

    result: Any
    """Result of the work."""
    published: list[Published] | None
    """None if the commit got no answer; then a check commits."""


class BaseTransaction(Generic[T]):
    """The calls of a transaction, in steps."""

    _concurrency: Concurrency

    def __init__(
        self,
        client: BaseClient,
        topic: str,
        check: LocalTransactions[T],
        *,
        group: str = "default",
        check_after_seconds: int = 60,
        max_checks: int = 15,
    ) -> None:
        self._client: Any = client
        self._topic = topic
        self._check = check
        self._group = group
        self._terms = {"check_after_seconds": check_after_seconds, "max_checks": max_checks}
        self._pause_seconds = min(float(check_after_seconds), _LONGEST_PAUSE_SECONDS)
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Stops checks in a forked child: the parent continues its own."""
        self._stop: Any = None
        self._workers: list[Any] = []

    @driven
    def run(
        self, bodies: Iterable[str | bytes | Message], work: Callable[[T], object]
    ) -> Steps[Done]:
        """Publishes at most 16 messages if and only if a local transaction with `work` commits.

        Returns the work's result and the published messages. If the work raises, nothing is
        published, and its error is raised. Raises Conflict if the transaction committed after the
        service had rolled the messages back; they are not published.

        `work`: gets the store's object, a connection of SQLAlchemy with `SqlDecisions`.
        """
        messages = [
            each if isinstance(each, Message) else Message(each)
            for each in several("bodies", bodies)
        ]
        if len(list(split(messages))) != 1:
            raise ValueError("a transaction has the messages of one call, at least one")
        handle: str = yield partial(
            self._client.prepare, self._topic, messages, group=self._group, **self._terms
        )
        try:
            result = yield self._in_store(partial(self._check.run, handle, work))
        except Exception as error:
            if not (yield from self._is_lost(handle)):
                raise
            _logger.warning("the transaction of %s took place, though it said: %r", handle, error)
            result = None
        return Done(result, (yield from self._commit(handle)))

    @driven
    def check(self) -> Steps[int]:
        """Decides messages that this group's producers left undecided. Returns their number.

        In `with`, this runs automatically.
        """
        return (yield from self._check_all())

    def _is_lost(self, handle: str) -> Steps[bool]:
        """Returns True if the local transaction took place despite its error.

        Otherwise rolls the messages back; if the store does not answer, a check decides later.
        """
        try:
            if (yield self._in_store(partial(self._check.took_place, handle))):
                return True
        except Exception:
            _logger.warning("whether %s took place is for a check to find", handle, exc_info=True)
            return False
        try:
            yield partial(self._client.roll_back, self._topic, handle)
        except CirrusMQError as failed:
            _logger.warning("%s is for a check to roll back: %s", handle, failed.detail)
        return False

    def _commit(self, handle: str) -> Steps[list[Published] | None]:
        try:
            published: list[Published] = yield partial(self._client.commit, self._topic, handle)
        except (Conflict, MessageNotFound):
            raise
        except CirrusMQError as error:
            _logger.warning("%s is for a check to commit: %s", handle, error.detail)
            return None
        return published

    def _check_all(self) -> Steps[int]:
        decided = 0
        while True:
            asked: list[Undecided] = yield partial(
                self._client.receive_undecided,
                self._topic,
                _AT_ONCE,
                visibility_timeout_seconds=_HELD_SECONDS,
                group=self._group,
            )
            for each in asked:
                decided += yield from self._decide(each)
            if not asked:
                return decided

    def _decide(self, undecided: Undecided) -> Steps[bool]:
        """Decides one; logs an error, after which it is received again."""
        handle = undecided.handle
        try:
            if (yield self._in_store(partial(self._check.took_place, handle))):
                yield partial(self._client.commit, self._topic, handle)
            else:
                yield partial(self._client.roll_back, self._topic, handle)
        except self._concurrency.cancelled:
            raise
        except BaseException:
            left = undecided.max_checks - undecided.checks
            _logger.exception("%s is not decided; checks left: %d", handle, left)
            return False
        return True

    def _work(self) -> Steps[None]:
        while not self._stop.is_set():
            try:
                yield from self._check_all()
            except CirrusMQError as error:
                _logger.warning("the check of topic %s failed: %s", self._topic, error.detail)
            except Exception:
                _logger.exception("the check of topic %s failed", self._topic)
            yield partial(self._stop.wait, self._pause_seconds)

    def _start(self) -> None:
        self._stop = self._concurrency.event()
        work = lambda: self._concurrency.run(self._work())  # noqa: E731
        self._workers = [self._concurrency.spawn(f"checks of {self._topic}", work, self._die)]

    def _die(self, error: BaseException) -> None:
        """Logs the end of the checks: other programs of the group decide the rest."""
        if not self._stop.is_set():
            _logger.error("the checks of topic %s ended: %r", self._topic, error, exc_info=error)

    def _in_store(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """Returns the step that calls the store, which blocks."""
        return call


class Transaction(Blocking, BaseTransaction[T]):
    """Publishes together with local transactions, and decides messages left undecided.

        store = SqlDecisions(engine)
        with producer.transaction("orders", check=store) as transaction:
            transaction.run(["order 17"], lambda connection: connection.execute(...))

    While it is open, a thread receives messages that producers of the same `group` left undecided.
    All programs of a group must use the same store.

    - `check`: the store of local transactions, such as `SqlDecisions`.
    - `group`: name of the producers that share the store.
    - `check_after_seconds`: time for a decision before producers are asked.
    - `max_checks`: checks without a decision after which messages are rolled back.
    """

    _concurrency = THREADS

    def close(self) -> None:
        """Ends the checks, after the one under way."""
        if self._stop is not None:
            self._stop.set()
            self._concurrency.join(self._workers)

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
