"""`Consumer`: a handler for the messages of a queue, a receiver or a subscription."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Unpack, overload

from cirrusmq_client.broadcasting import Broadcasting
from cirrusmq_client.client import BaseClient, Client
from cirrusmq_client.clustering import Clustering
from cirrusmq_client.concurrency import THREADS, Concurrency
from cirrusmq_client.forking import renew_in_children
from cirrusmq_client.handling import (
    Attempt,
    BatchHandler,
    Handler,
    attempt,
    check_handler,
    one_by_one,
    together,
)
from cirrusmq_client.options import Batches, ConsumerOptions, Options
from cirrusmq_client.progress import Progress
from cirrusmq_client.results import Ack, Result, Retry
from cirrusmq_client.signals import stop_on_signals
from cirrusmq_client.sources import Source, Subscription, Topic, source_of

WAKE_SECONDS = 1.0


class Consumer:
    """Receives messages and passes them to a handler, in threads, until it is stopped.

        def handle(message):
            print(message.text)

        Consumer("orders", handle).run()

    The handler's result decides about the message:

    - None or `Ack()`: it is deleted. With `none_means_retry`, None is a retry.
    - `Retry(after=seconds)`: it is delivered again after that time. `Retry()`: by the retry policy
    of the source, or without a policy after 1, 2, 4, … 300 seconds by its receive count, of which
    up to half is left out at random.
    - `DeadLetter(reason)`: it is moved to the dead-letter queue.
    - `Reply(body)`: its sender, who waits for it, gets the reply, and it is deleted.
    - an exception, `SystemExit` too, or any other value: a failure, which is like `Retry()`.

    Parameters:

    - `source`: a queue's name, a `Queue` (also with a receiver), or a `Subscription`. Consumers of
      the same source share its messages. For broadcasting, also a topic's name.
    - `client`: None makes a `Client()`.
    - `batches`: the handler gets lists; see `Batches`. It returns one result for all messages, or a
      list with one for each.
    - `broadcasting`: the store of the member's progress; every member gets every message. None is
      clustering: members share the messages.
    - `workers`: threads that run handlers. `receivers`: threads that receive messages.
    - `prefetch`: maximum of unstarted messages. With slow handlers, fewer are shared better. With
      `batches` it is at least a whole batch, unless it is 0.
    - `wait_seconds`: time of a long poll; an idle consumer takes up to this time to stop.
    - `visibility_timeout_seconds`: of leases; None takes the message's or the source's. Leases are
    extended until the messages are settled.
    - `grace_seconds`: time for running handlers after a stop; settling has up to 2 s more.
    - `create`: attributes with which a missing queue, receiver or subscription is made, `{}` for
      the defaults. With None the consumer waits until it exists, and logs that.
    - `make_dead_letter_queue`: `DeadLetter` makes `dlq-<queue>` if the source has no dead-letter
      queue (with `max_receives` 1,000). If this is False, or the key lacks the permission, the
      message is delivered again as after an exception.

    A receive also deletes the messages handled before it, in one call; if no receive comes within
    50 ms, a separate call does. When few messages wait, a receive first gives handlers 20 ms to
    end.

    In ordered sources one message of a group is handled at a time, and after a failure the same
    message comes before all others of its group.
    """

    @overload
    def __init__(
        self,
        source: str | Source,
        handler: Handler,
        *,
        client: Client | None = None,
        batches: None = None,
        broadcasting: Progress | None = None,
        none_means_retry: bool = False,
        **options: Unpack[ConsumerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        source: str | Source,
        handler: BatchHandler,
        *,
        client: Client | None = None,
        batches: Batches,
        broadcasting: Progress | None = None,
        none_means_retry: bool = False,
        **options: Unpack[ConsumerOptions],
    ) -> None: ...

    def __init__(
        self,
        source: str | Source,
        handler: Callable[[Any], object],
        *,
        client: Client | None = None,
        batches: Batches | None = None,
        broadcasting: Progress | None = None,
        none_means_retry: bool = False,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        check_handler(handler)
        chosen = Options(batches=batches, **options)
        none = Retry() if none_means_retry else Ack()
        self.client = Client() if client is None else client
        self._make_mode = partial(
            make_mode, self.client, source, handler, none, chosen, broadcasting, THREADS
        )
        self._mode, self._started = self._make_mode(), False
        renew_in_children(self)

    def renew(self) -> None:
        """Resets the consumer in a forked child; messages of the parent stay with the parent."""
        if self._started:
            self._mode, self._started = self._make_mode(), False

    def run(self) -> None:
        """Consumes until SIGTERM, Ctrl-C or `stop`; then ends as `join` does."""
        with stop_on_signals(self.stop):
            self.start()
            self.join()

    def start(self) -> None:
        """Starts the consumer's threads. A consumer runs once, and once in each forked child."""
        self._started = True
        self._mode.start()

    def stop(self) -> None:
        """Stops receiving; returns at once."""
        self._mode.stopping.set()

    def seek(self, to: datetime | str) -> None:
        """Makes a broadcasting member read everything published at a time or later.

        It may be called before the start. For a clustering group, use
        `Client.rewind_subscription`, which is for all members.
        """
        seek(self._mode, to)

    def join(self) -> None:
        """Waits for `stop`, then gives unstarted messages back, and lets handlers end.

        Raises the error that made receiving impossible, such as QueueNotFound or Unauthenticated.
        """
        # In short waits: a signal just before a wait is handled only after it.
        while not self._mode.stopping.wait(WAKE_SECONDS):
            pass
        self._mode.finish()

    def __enter__(self) -> Consumer:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()
        self.join()


def seek(mode: Clustering | Broadcasting, to: datetime | str) -> None:
    """Makes a broadcasting member read from a time on. Raises an error for other consumers."""
    if not isinstance(mode, Broadcasting):
        raise ValueError("only a broadcasting member seeks: use Client.rewind_subscription")
    mode.seek(to)


def make_mode(
    client: BaseClient,
    source: str | Source,
    handler: Callable[[Any], object],
    none: Result,
    options: Options,
    progress: Progress | None,
    kind: Concurrency,
    call: Attempt = attempt,
) -> Clustering | Broadcasting:
    """Returns a consumer's mode, broadcasting or clustering, by threads or tasks."""
    wrap = one_by_one if options.batches is None else together
    if progress is None:
        shared = source_of(source)
        call = _traced(client, shared, call)
        return Clustering(client, shared, wrap(handler, none, shared, call), options, kind)
    if not isinstance(source, str | Subscription):
        raise ValueError("broadcasting reads a topic or a subscription, not a queue")
    log = Topic(source) if isinstance(source, str) else source
    call = _traced(client, log, call)
    return Broadcasting(client, source, wrap(handler, none, log, call), options, progress, kind)


def _traced(client: BaseClient, source: object, call: Attempt) -> Attempt:
    return call if client.spans is None else client.spans.processing(source, call)
