"""Limits of one call's messages: their number, their bytes, and the bytes of its JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cirrusmq_client.messages import Message

BATCH_MESSAGES = 16
BATCH_BYTES = 1_048_576
"""Maximum bytes of messages in one call, so that it stays short. A larger message is alone."""
REQUEST_BYTES = 3_000_000
"""Maximum bytes of the JSON without gzip. Escapes may make a body six times as long."""


class Size(NamedTuple):
    """Number of messages, their bytes, and their bytes in a request."""

    messages: int = 0
    bytes: int = 0
    json_bytes: int = 0

    def plus(self, other: Size) -> Size:
        """Returns the sum of both."""
        return Size(self[0] + other[0], self[1] + other[1], self[2] + other[2])

    def minus(self, other: Size) -> Size:
        """Returns the difference."""
        return Size(self[0] - other[0], self[1] - other[1], self[2] - other[2])

    @property
    def fits(self) -> bool:
        """True if one call takes this size."""
        return (
            self.messages <= BATCH_MESSAGES
            and self.bytes <= BATCH_BYTES
            and self.json_bytes <= REQUEST_BYTES
        )

    @property
    def full(self) -> bool:
        """True if one call takes nothing beyond this size."""
        return (
            self.messages >= BATCH_MESSAGES
            or self.bytes >= BATCH_BYTES
            or self.json_bytes >= REQUEST_BYTES
        )


def size_of(message: Message) -> Size:
    """Returns the size of one message; JSON escapes bodies and values, and adds names."""
    size = message.size_bytes
    if size * 6 < REQUEST_BYTES // BATCH_MESSAGES:
        return Size(1, size, size * 6)
    encoded = json.dumps(message.to_json(), ensure_ascii=False).encode()
    return Size(1, size, len(encoded) + 2)


def split(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """Yields the messages in order, in batches for one call.

    A too large message is alone, and so is one that replaces another one or asks for a reply.
    """
    batch: list[Message] = []
    held = Size()
    for message in messages:
        size = size_of(message)
        alone = message.is_alone or (batch and batch[0].is_alone)
        if batch and (alone or not held.plus(size).fits):
            yield batch
            batch, held = [], Size()
        batch.append(message)
        held = held.plus(size)
    if batch:
        yield batch
