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
    """Receives messages and gives them to a handler, in threads, until it is stopped.

        def handle(message):
            print(message.text)

        Consumer("orders", handle).run()

    The handler returns None or `Ack()`: the message is deleted. `Retry(after=seconds)`, or an
    exception: it is delivered again, by the source's retry policy where no time is given; without
    a policy after 1, 2, 4, … 300 seconds by its receive count, of which up to half is left out at
    random. `DeadLetter(reason)`: it is moved to the dead-letter queue. With `none_means_retry` a
    handler that returns None asks for a retry. Any other value, and whatever the handler raises,
    `SystemExit` too, is a failure as an exception is.

    - `source`: a queue's name, a `Queue` (also with a receiver), a `Subscription`. Members that
      name the same source share its messages. For broadcasting also a topic's name.
    - `batches`: the handler gets lists; see `Batches`. It answers one result, or one for each.
    - `broadcasting`: every member gets every message; the store of its progress.
    - `workers`: threads that run handlers. `receivers`: threads that fetch messages.
    - `prefetch`: unstarted messages to hold. Fewer share better when handlers are slow.
    - `wait_seconds`: how long an idle receive waits; an idle consumer takes so long to stop.
    - `visibility_timeout_seconds`: of leases; else the message's or the source's. They are
      extended as long as a message is here.
    - `grace_seconds`: for handlers that still run when it stops; settling has 2 s more at most.
    - `create`: attributes with which a queue, receiver or subscription is made where it is
      missing, `{}` for the defaults. Without them it is waited for, and the log says so.
    - `make_dead_letter_queue`: whether `DeadLetter` makes `dlq-<queue>` where there is no
      dead-letter queue (`max_receives` is 1,000 then), as subscriptions do. If not, or where the
      key may not, the message is delivered again as after an exception.

    The next receive deletes what was handled before it, in one call; without one within 50 ms, a
    call of its own does. While little waits, a receive leaves handlers 20 ms to end before it.

    In ordered sources one message of a group is handled at a time, and after a failure none of
    the group before the same one again.
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
        """In a forked child: as if just made. What the parent received is handled there alone."""
        if self._started:
            self._mode, self._started = self._make_mode(), False

    def run(self) -> None:
        """Consume until SIGTERM, Ctrl-C or `stop`; then end as `join` says."""
        with stop_on_signals(self.stop):
            self.start()
            self.join()

    def start(self) -> None:
        """Begin, in threads of its own. A consumer runs once, and once in a forked child."""
        self._started = True
        self._mode.start()

    def stop(self) -> None:
        """Receive nothing more; returns at once."""
        self._mode.stopping.set()

    def seek(self, to: datetime | str) -> None:
        """Have a broadcasting member read from a time on: everything published then or later.

        Also before it starts. A group of other consumers is rewound instead, for all its members.
        """
        seek(self._mode, to)

    def join(self) -> None:
        """Wait for `stop`; then give back what was not started, and let handlers end.

        Raises what made receiving impossible: the queue is not there, the key is wrong.
        """
        # In pieces: a signal just before a wait is handled only after it.
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
    """Have a broadcasting member read from a time on."""
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
    """The way in which a consumer works, by threads or tasks."""
    wrap = one_by_one if options.batches is None else together
    if progress is None:
        shared = source_of(source)
        return Clustering(client, shared, wrap(handler, none, shared, call), options, kind)
    if not isinstance(source, str | Subscription):
        raise ValueError("broadcasting reads a topic or a subscription, not a queue")
    log = Topic(source) if isinstance(source, str) else source
    return Broadcasting(client, source, wrap(handler, none, log, call), options, progress, kind)
