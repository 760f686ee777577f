"""`Producer`: sending and publishing as many messages as one likes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from cirrusmq_client.client import Client
from cirrusmq_client.errors import CirrusMQError
from cirrusmq_client.messages import DEDUPLICATION_ATTRIBUTE, Message
from cirrusmq_client.outcomes import Published, Sent

BATCH_MESSAGES = 16
BATCH_BYTES = 262_144
REQUEST_BYTES = 1_000_000
"""Of JSON; the service takes 1 MiB. Escapes may make a body six times as long."""
ATTRIBUTES = 10

Entry = TypeVar("Entry", Sent, Published)


class PartlySent(CirrusMQError):
    """Some messages were sent before one was refused."""

    def __init__(self, sent: Sequence[Sent | Published], cause: CirrusMQError) -> None:
        super().__init__(f"{len(sent)} messages were sent, then: {cause.detail}")
        self.sent = list(sent)
        """The messages that were sent: the first ones, in order."""
        self.uncertain = cause.uncertain


class Producer:
    """Sends to queues and publishes on topics.

    A body is text or bytes, or a whole `Message`. A call whose answer was lost is repeated and
    stores nothing twice.
    """

    def __init__(self, client: Client | None = None) -> None:
        self.client = Client() if client is None else client

    def send(self, queue: str, body: str | bytes | Message, **fields: Any) -> Sent:
        """Send one message; `fields` are those of `Message`."""
        return self.client.send(queue, [_message(body, fields)])[0]

    def send_batch(self, queue: str, bodies: Iterable[str | bytes | Message]) -> list[Sent]:
        """Send any number of messages, in order, in as few calls as the limits allow.

        Each call is all or nothing. PartlySent where a later one is refused.
        """
        return _each_batch(bodies, lambda batch: self.client.send(queue, batch))

    def publish(self, topic: str, body: str | bytes | Message, **fields: Any) -> Published:
        """Publish one message; `fields` are those of `Message`."""
        return self.client.publish(topic, [_message(body, fields)])[0]

    def publish_batch(self, topic: str, bodies: Iterable[str | bytes | Message]) -> list[Published]:
        """Publish any number of messages, in order; as `send_batch`."""
        return _each_batch(bodies, lambda batch: self.client.publish(topic, batch))


def split(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """Messages in order, in batches that one call takes. One that is too large is alone."""
    batch: list[Message] = []
    held_bytes = held_json = 0
    for message in messages:
        size, size_json = message.size_bytes, _json_bytes(message)
        full = (
            len(batch) == BATCH_MESSAGES
            or held_bytes + size > BATCH_BYTES
            or held_json + size_json > REQUEST_BYTES
        )
        if batch and full:
            yield batch
            batch, held_bytes, held_json = [], 0, 0
        batch.append(message)
        held_bytes += size
        held_json += size_json
    if batch:
        yield batch


def _each_batch(
    bodies: Iterable[str | bytes | Message], send: Callable[[list[Message]], list[Entry]]
) -> list[Entry]:
    sent: list[Entry] = []
    for batch in split(_message(body, {}) for body in bodies):
        try:
            sent += send(batch)
        except CirrusMQError as error:
            if not sent:
                raise
            raise PartlySent(sent, error) from error
    return sent


def _message(body: str | bytes | Message, fields: dict[str, Any]) -> Message:
    message = replace(body, **fields) if isinstance(body, Message) else Message(body, **fields)
    known = message.attributes
    if message.deduplication_id is None or DEDUPLICATION_ATTRIBUTE in known:
        return message
    if len(known) >= ATTRIBUTES:
        return message
    # Answers do not repeat the id, and an exactly-once consumer wants to know it.
    noted = {**known, DEDUPLICATION_ATTRIBUTE: message.deduplication_id}
    return replace(message, attributes=noted)


def _json_bytes(message: Message) -> int:
    """Bytes in a request: bodies and values with their escapes; some more for the rest."""
    if message.size_bytes * 6 < REQUEST_BYTES // BATCH_MESSAGES:
        return message.size_bytes * 6
    return len(json.dumps(message.to_json(), ensure_ascii=False).encode()) + 2
