"""`Producer`: sending and publishing as many messages as one likes."""

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
        """The messages that were sent: the first ones, in order."""
        self.uncertain = getattr(cause, "uncertain", False)


class BaseProducer:
    """The calls of a producer, in steps."""

    client: BaseClient

    @driven
    def send(
        self, /, queue: str, body: str | bytes | Message, **fields: Unpack[MessageFields]
    ) -> Steps[Sent]:
        """Send one message; `fields` are those of `Message`."""
        sent: list[Sent] = yield partial(self.client.send, queue, [make_message(body, fields)])
        return sent[0]

    @driven
    def send_batch(self, queue: str, bodies: Iterable[str | bytes | Message]) -> Steps[list[Sent]]:
        """Send any number of messages, in order, in as few calls as the limits allow.

        What is wrong in a list of bodies is found before the first call: InvalidParameter, and
        nothing is sent. Each call is all or nothing. PartlySent if a later one fails, or if an
        iterator does from which the bodies come: it has what was sent.
        """
        return (yield from _each_batch(bodies, partial(self.client.send, queue)))

    @driven
    def publish(
        self, /, topic: str, body: str | bytes | Message, **fields: Unpack[MessageFields]
    ) -> Steps[Published]:
        """Publish one message; `fields` are those of `Message`."""
        published: list[Published] = yield partial(
            self.client.publish, topic, [make_message(body, fields)]
        )
        return published[0]

    @driven
    def publish_batch(
        self, topic: str, bodies: Iterable[str | bytes | Message]
    ) -> Steps[list[Published]]:
        """Publish any number of messages, in order; as `send_batch`."""
        return (yield from _each_batch(bodies, partial(self.client.publish, topic)))


class Producer(Blocking, BaseProducer):
    """Sends to queues and publishes on topics.

    A body is text or bytes, or a whole `Message`. A call whose answer was lost is repeated and
    stores nothing twice.

        with Producer() as producer:
            futures = [producer.send_soon("orders", body) for body in bodies]

    - `linger`: seconds that a message of `send_soon` waits for others to be sent with; 0 to 10.
    - `sends`: threads that send them, 1 to 64, so calls in flight.
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
        """Send one message together with others of this moment; the future is its answer.

        Together go messages of one queue and delay, and of one group, whose order is kept; without
        a group messages of all producers of the client. Each is
        stored, or its future has the error: that of the message alone, or of the call. Waits while
        10,000 messages, or 16 MiB, are without an answer. NotSent once closed. A future that is
        cancelled before its message is on the way is not sent. For asyncio: `AsyncProducer`.

        After an error that is `uncertain` the message may be stored all the same, and behind
        later ones of its group.
        """
        message = make_message(body, fields)
        send = self.client.send_each
        soon: Future[Sent] = self._lingering.put(send, queue, message, shared=True)
        return soon

    def publish_soon(
        self, topic: str, body: str | bytes | Message, **fields: Unpack[MessageFields]
    ) -> Future[Published]:
        """Publish one message together with others of this moment; as `send_soon`."""
        message = make_message(body, fields)
        soon: Future[Published] = self._lingering.put(self.client.publish, topic, message)
        return soon

    def transaction(
        self, topic: str, *, check: LocalTransactions[T], **options: Unpack[TransactionOptions]
    ) -> Transaction[T]:
        """Publishes that take place together with local transactions: see `Transaction`.

        `options`: `group`, `check_after_seconds`, `max_checks`.
        """
        return Transaction(self.client, topic, check, **options)

    def flush(self, timeout_seconds: float | None = None) -> bool:
        """Send what waits now, without lingering, and wait for the answers; False where the time
        ended before. Errors are in the futures."""
        return bool(self._lingering.flush(timeout_seconds))

    def close(self, grace_seconds: float = 30.0) -> None:
        """Send what waits, and take no more by `send_soon` and `publish_soon`.

        A message without an answer by then gets NotSent, `uncertain` where it was on its way.
        """
        self._lingering.close(grace_seconds)

    @contextmanager
    def closed_on_signals(self) -> Iterator[None]:
        """In the main thread: at SIGTERM or Ctrl-C close, then let the signal do what it does."""
        with first_on_signals(self.close):
            yield

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def check_producing(linger: float, sends: int) -> None:
    """Raise ValueError where an option of a producer is out of its range."""
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
                    # A deployment without a bucket takes less at once; it stored nothing.
                    half = len(part) // 2
                    left = [part[:half], part[half:], *left]
    except Exception as error:
        if not sent:
            raise
        raise PartlySent(sent, error) from error
    return sent


def _messages(bodies: Iterable[str | bytes | Message]) -> Iterable[Message]:
    """The messages: a list is checked as a whole, an iterator as far as it is read."""
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
    """A message with these fields, which notes its deduplication id."""
    message = replace(body, **fields) if isinstance(body, Message) else Message(body, **fields)
    known = message.attributes
    if message.deduplication_id is None or DEDUPLICATION_ATTRIBUTE in known:
        return message
    if len(known) >= ATTRIBUTES:
        return message
    # Answers do not repeat the id, and an exactly-once consumer wants to know it.
    noted = {**known, DEDUPLICATION_ATTRIBUTE: message.deduplication_id}
    return replace(message, attributes=noted)
