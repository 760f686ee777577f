"""An envelope: a message without its body, which is in an object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import msgspec

from cirrusmq.model.message import Message, compress, decompress


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """Enough of a message to choose its readers and to make its parcels."""

    size_bytes: int
    answer_percent: int
    attributes: Mapping[str, str | bytes] = {}
    tags: tuple[str, ...] = ()
    group: str | None = None
    further: Sequence[Any] = ()
    """Fields of a later release, packed behind these: they are packed again as they are."""
    body_md5: ClassVar[str] = ""
    """The digest of a body that is not at hand is never shown."""


Described: TypeAlias = Message | Envelope
"""Either has the size, the attributes, the tags and the group of a message."""


def pack_envelopes(messages: Mapping[int, Described]) -> bytes:
    """Returns envelopes of messages, by their numbers in their send, as bytes."""
    return compress(
        msgspec.msgpack.encode([(position, *_said_of(each)) for position, each in messages.items()])
    )


def unpack_envelopes(content: bytes) -> dict[int, Envelope]:
    """Returns the envelopes that `pack_envelopes` packed, by their numbers in their send."""
    return {
        position: Envelope(
            size_bytes=size,
            answer_percent=percent,
            attributes=attributes,
            tags=tuple(tags),
            group=group,
            further=tuple(further),
        )
        for position, size, percent, attributes, tags, group, *further in msgspec.msgpack.decode(
            decompress(content)
        )
    }


def _said_of(message: Described) -> tuple[object, ...]:
    sizes = message.size_bytes, message.answer_percent
    return *sizes, message.attributes, message.tags, message.group, *message.further
