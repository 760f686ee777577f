"""Publishing together with a local transaction: both take place, or neither, whatever stops.

    prepare ──> handle ──> local transaction, with the handle's record ──> commit
                                │ raises                                     │ no answer
                                └──> no record: roll back                    └──> a check finds the
                                                                                  record: commit

A check asks the local store for the handle's record, and where there is none it writes that there
never will be: so a local transaction that is still under way then fails, whoever runs it.
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
    """The options of a transaction; as in the docstring of `Transaction`."""

    group: str
    check_after_seconds: int
    max_checks: int


class TakenOver(Exception):
    """A check came first and rolled the messages back: nothing of the local transaction is kept."""


class LocalTransactions(Protocol[T_co]):
    """The store of the local transactions, with a record of each handle."""

    def run(self, handle: str, work: Callable[[T_co], object]) -> object:
        """Do the work and record the handle, both or neither; the work's result. TakenOver."""
        ...

    def took_place(self, handle: str) -> bool:
        """Whether the handle's transaction took place; where it did not, it never will."""
        ...


@dataclass(frozen=True)
class Done:
    """A local transaction that took place, and what was published with it."""

    result: Any
    """Of the work."""
    published: list[Published] | None
    """None: the commit got no answer; a check makes it."""


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
        """In a forked child: the parent alone makes the checks that it began."""
        self._stop: Any = None
        self._workers: list[Any] = []

    @driven
    def run(
        self, bodies: Iterable[str | bytes | Message], work: Callable[[T], object]
    ) -> Steps[Done]:
        """Publish at most 16 messages if and only if `work` takes place in a local transaction.

        `work` gets the store's tools, a connection of SQLAlchemy with `SqlDecisions`. If it raises,
        nothing is published, and its error is raised. Conflict: it took place, but so late that the
        service had rolled the messages back; they are not published.
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
        """Decide what this group's producers left undecided; how many. Done by itself in `with`."""
        return (yield from self._check_all())

    def _is_lost(self, handle: str) -> Steps[bool]:
        """After an error of the local transaction: whether it took place all the same.

        Where it did not, the messages are rolled back; where nobody knows, a check decides.
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
        """Decide one; an error is logged, and it is asked for again."""
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
        """The checks ended: other programs of the group decide what is left."""
        if not self._stop.is_set():
            _logger.error("the checks of topic %s ended: %r", self._topic, error, exc_info=error)

    def _in_store(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """The step that calls the store, which blocks."""
        return call


class Transaction(Blocking, BaseTransaction[T]):
    """Publishes together with local transactions, and decides what others left undecided.

        store = SqlDecisions(engine)
        with producer.transaction("orders", check=store) as transaction:
            transaction.run(["order 17"], lambda connection: connection.execute(...))

    While it is open, a thread asks for what producers of the same `group` left undecided. Every
    program of a group has the same store.
    """

    _concurrency = THREADS

    def close(self) -> None:
        """End the checks, the one under way first."""
        if self._stop is not None:
            self._stop.set()
            self._concurrency.join(self._workers)

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
