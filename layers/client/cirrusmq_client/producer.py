"""`Producer`: sends and publishes any number of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, Unpack

from cirrusmq_client.batches import split
from cirrusmq_client.checks import several
from cirrusmq_client.client import BaseClient, Client
from cirrusmq_client.errors import BatchTooLarge, CirrusMQError, InvalidParameter
from cirrusmq_client.lingering import Lingering
from cirrusmq_client.messages import DEDUPLICATION_ATTRIBUTE, Message, MessageFields
from cirrusmq_client.options import check
from cirrusmq_client.outcomes import Published, Sent
from cirrusmq_client.signals import first_on_signals
from cirrusmq_client.steps import Blocking, Steps, driven
from cirrusmq_client.transactions import LocalTransactions, Transaction, TransactionOptions

T = TypeVar("T")
LINGER_SECONDS = (0.0, 10.0)
SENDS = (1, 64)
ATTRIBUTES = 10


class PartlySent(CirrusMQError):
    """Some messages were sent before one failed, whatever the reason: it is the `__cause__`."""

    def __init__(self, sent: Sequence[Sent | Published], cause: Exception) -> None:
        told = str(cause) if isinstance(cause, CirrusMQError) else repr(cause)
        super().__init__(f"{len(sent)} messages were sent, then: {told}")
        self.sent = list(sent)
        """The sent messages: the first ones, in order."""
        self.uncertain = getattr(cause, "uncertain", False)


class BaseProducer:
    """The calls of a producer, in steps."""

    client: BaseClient

    @driven
    def send(
        self, /, queue: str, body: str | bytes | Message, **fields: Unpack[MessageFields]
    ) -> Steps[Sent]:
        """Sends one message. Returns its id and time. `fields`: as of `Message`."""
        sent: list[Sent] = yield partial(self.client.send, queue, [make_message(body, fields)])
        return sent[0]

    @driven
    def send_batch(self, queue: str, bodies: Iterable[str | bytes | Message]) -> Steps[list[Sent]]:
        """Sends any number of messages, in order, in as few calls as the limits allow.

        Returns the id and time of each. Raises InvalidParameter, before the first call, if a list
        has an invalid body. Each call is all or nothing. Raises PartlySent, which has the sent
        messages, if a later call or an iterator of bodies fails.
        """
        return (yield from _each_batch(bodies, partial(self.client.send, queue)))

    @driven
    def publish(
        self, /, topic: str, body: str | bytes | Message, **fields: Unpack[MessageFields]
    ) -> Steps[Published]:
        """Publishes one message. Returns its id, time and matches. `fields`: as of `Message`."""
        published: list[Published] = yield partial(
            self.client.publish, topic, [make_message(body, fields)]
        )
        return published[0]

    @driven
    def publish_batch(
        self, topic: str, bodies: Iterable[str | bytes | Message]
    ) -> Steps[list[Published]]:
        """Publishes any number of messages, in order; as `send_batch`."""
        return (yield from _each_batch(bodies, partial(self.client.publish, topic)))


class Producer(Blocking, BaseProducer):
    """Sends to queues and publishes to topics.

    A body is text, bytes or a `Message`. A call whose answer was lost is repeated, and stores
    nothing twice.

        with Producer() as producer:
            futures = [producer.send_soon("orders", body) for body in bodies]

    - `client`: None makes a `Client()`.
    - `linger`: seconds that a message of `send_soon` waits to share a call with others; 0 to 10.
    - `sends`: threads that send them, 1 to 64: the maximum of calls in flight.
    """

    client: Client

    def __init__(
        self, client: Client | None = None, *, linger: float = 0.005, sends: int = 4
    ) -> None:
        check_producing(linger, sends)
        self.client = Client() if client is None else client
        self._lingering = Lingering(linger, sends, self.client)

    def send_soon(
        self, queue: str, body: str | bytes | Message, **fields: Unpack[MessageFields]
    ) -> Future[Sent]:
        """Sends one message in a call with others of the same time. Returns a future of the answer.

        Messages of one queue and delay share a call, or of one group, whose order is kept. Without
        a group, producers of one client share calls too. Each is
        stored, or its future has the message's or the call's error. Waits while 10,000 messages, or
        16 MiB, have no answer. Raises NotSent if the producer is closed. If a future is cancelled
        before its message is under way, the message is not sent. For asyncio: `AsyncProducer`.

        After an error that is `uncertain` the message may be stored nevertheless, even after later
        ones of its group.
        """
        message = make_message(body, fields)
        send = self.client.send_each
        soon: Future[Sent] = self._lingering.put(send, queue, message, shared=True)
        return soon

    def publish_soon(
        self, topic: str, body: str | bytes | Message, **fields: Unpack[MessageFields]
    ) -> Future[Published]:
        """Publishes one message in a call with others of the same time; as `send_soon`."""
        message = make_message(body, fields)
        soon: Future[Published] = self._lingering.put(self.client.publish, topic, message)
        return soon

    def transaction(
        self, topic: str, *, check: LocalTransactions[T], **options: Unpack[TransactionOptions]
    ) -> Transaction[T]:
        """Returns publishes that take effect together with local transactions: see `Transaction`.

        `options`: `group`, `check_after_seconds`, `max_checks`.
        """
        return Transaction(self.client, topic, check, **options)

    def flush(self, timeout_seconds: float | None = None) -> bool:
        """Sends all waiting messages now, and waits for the answers.

        Returns False if `timeout_seconds` pass before that. Errors are in the futures.
        """
        return bool(self._lingering.flush(timeout_seconds))

    def close(self, grace_seconds: float = 30.0) -> None:
        """Sends all waiting messages; then `send_soon` and `publish_soon` raise NotSent.

        A message without an answer after `grace_seconds` gets NotSent, `uncertain` if it was under
        way.
        """
        self._lingering.close(grace_seconds)

    @contextmanager
    def closed_on_signals(self) -> Iterator[None]:
        """Closes the producer at SIGTERM or Ctrl-C, then the signal acts as before.

        Works only in the main thread.
        """
        with first_on_signals(self.close):
            yield

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def check_producing(linger: float, sends: int) -> None:
    """Raises ValueError if an option of a producer is out of its range."""
    check("linger", linger, LINGER_SECONDS)
    check("sends", sends, SENDS)


def _each_batch(
    bodies: Iterable[str | bytes | Message], send: Callable[[list[Message]], Any]
) -> Steps[list[Any]]:
    sent: list[Any] = []
    try:
        for batch in split(_messages(bodies)):
            left = [batch]
            while left:
                part = left.pop(0)
                try:
                    sent += yield partial(send, part)
                except BatchTooLarge:
                    if len(part) == 1:
                        raise
                    # A deployment without a bucket takes less in a call; it stored nothing.
                    half = len(part) // 2
                    left = [part[:half], part[half:], *left]
    except Exception as error:
        if not sent:
            raise
        raise PartlySent(sent, error) from error
    return sent


def _messages(bodies: Iterable[str | bytes | Message]) -> Iterable[Message]:
    """Returns the messages; a list is checked at once, an iterator while it is read."""
    if isinstance(bodies, Iterator):
        return (make_message(body, {}) for body in bodies)
    return [_at(index, body) for index, body in enumerate(several("bodies", bodies))]


def _at(index: int, body: str | bytes | Message) -> Message:
    try:
        return make_message(body, {})
    except InvalidParameter as error:
        raise InvalidParameter(
            f"message {index + 1}: {error.detail}", parameter=error.parameter
        ) from None


def make_message(body: str | bytes | Message, fields: MessageFields) -> Message:
    """Returns a message with these fields, which notes its deduplication id."""
    message = replace(body, **fields) if isinstance(body, Message) else Message(body, **fields)
    known = message.attributes
    if message.deduplication_id is None or DEDUPLICATION_ATTRIBUTE in known:
        return message
    if len(known) >= ATTRIBUTES:
        return message
    # Receives do not return the id, which an exactly-once consumer needs.
    noted = {**known, DEDUPLICATION_ATTRIBUTE: message.deduplication_id}
    return replace(message, attributes=noted)
