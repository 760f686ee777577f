"""How many messages one call takes: by number, by their bytes, and by those of its JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cirrusmq_client.messages import Message

BATCH_MESSAGES = 16
BATCH_BYTES = 1_048_576
"""Of messages that are sent together, so that a call stays short. A larger one goes alone."""
REQUEST_BYTES = 3_000_000
"""Of their JSON, which is sent as it is. Escapes may make a body six times as long."""


class Size(NamedTuple):
    """Of messages: how many they are, their bytes, and their bytes in a request."""

    messages: int = 0
    bytes: int = 0
    json_bytes: int = 0

    def plus(self, other: Size) -> Size:
        """Both together."""
        return Size(self[0] + other[0], self[1] + other[1], self[2] + other[2])

    def minus(self, other: Size) -> Size:
        """What is left without the other."""
        return Size(self[0] - other[0], self[1] - other[1], self[2] - other[2])

    @property
    def fits(self) -> bool:
        """Whether one call takes so much."""
        return (
            self.messages <= BATCH_MESSAGES
            and self.bytes <= BATCH_BYTES
            and self.json_bytes <= REQUEST_BYTES
        )

    @property
    def full(self) -> bool:
        """Whether one call takes no more."""
        return (
            self.messages >= BATCH_MESSAGES
            or self.bytes >= BATCH_BYTES
            or self.json_bytes >= REQUEST_BYTES
        )


def size_of(message: Message) -> Size:
    """Of one message; in a request bodies and values have escapes, and some more for the rest."""
    size = message.size_bytes
    if size * 6 < REQUEST_BYTES // BATCH_MESSAGES:
        return Size(1, size, size * 6)
    encoded = json.dumps(message.to_json(), ensure_ascii=False).encode()
    return Size(1, size, len(encoded) + 2)


def split(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """Messages in order, in batches that one call takes. One that is too large is alone."""
    batch: list[Message] = []
    held = Size()
    for message in messages:
        size = size_of(message)
        if batch and not held.plus(size).fits:
            yield batch
            batch, held = [], Size()
        batch.append(message)
        held = held.plus(size)
    if batch:
        yield batch
