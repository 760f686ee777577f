"""Large sends: their messages go into an object before anything names it.

packed      < the deployment's least ──> parcel or log record
            from there on            ──> object; if the bucket refuses, log record
unpacked    > 262,144 bytes          ──> object, however small it packs; refused with the bucket

So there is a separate bound for the bytes that readers of the stream unpack from many records.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from cirrusmq.base.limits import TABLE_BATCH_BYTES
from cirrusmq.model.message import Message, pack
from cirrusmq.model.queue import Queue
from cirrusmq.runtime.core import Core
from cirrusmq.storage.bodies.object import life_days, pack_object
from cirrusmq.storage.bodies.objects import BucketUnavailable, keep_object, put_object

_FIELD_BYTES = 5
"""Most bytes of MessagePack for each value."""
_GROUP_BYTES = 512
_logger = logging.getLogger(__name__)


class Placed(NamedTuple):
    """The place of a send's messages."""

    days: int = 0
    """The class of life of their object; 0 if they are in none."""
    packed: bytes | None = None
    """All messages, if they were packed to find that out."""


def place_messages(core: Core, send_id: str, messages: Sequence[Message], life_ms: int) -> Placed:
    """Puts the messages of a request into an object that lives `life_ms`, if they are large.

    All messages of the request are in it, so that a repetition writes the same bytes. Raises
    Unavailable if the bucket refuses messages that are too large for a log record.
    """
    least = core.settings.bodies_in_s3_from
    if not least or sum(map(_most_packed_bytes, messages)) < least:
        return Placed()
    large = sum(message.size_bytes for message in messages) > TABLE_BATCH_BYTES
    packed = None if large else pack(messages)
    if packed is not None and len(packed) < least:
        return Placed(packed=packed)
    days = life_days(life_ms)
    try:
        put_object(core, send_id, days, pack_object(messages, packed))
    except BucketUnavailable as error:
        if packed is None:
            raise
        _logger.warning("send %s is stored without the bucket: %r", send_id, error.__cause__)
        return Placed(packed=packed)
    return Placed(days)


def keep_messages(core: Core, queue: Queue, send_id: str, days: int, now_ms: int) -> int | None:
    """Keeps the object of a send for a life in `queue` that begins now, as `keep_object` does.

    days: its class of life. Returns 0 if that is 0, since the messages are in no object.
    """
    if not days:
        return 0
    end_ms = now_ms + queue.attributes.message_retention_seconds * 1000
    return keep_object(core, send_id, days, end_ms, now_ms)


def _most_packed_bytes(message: Message) -> int:
    fields = 2 * len(message.attributes) + len(message.tags) + 5
    group = 0 if message.group is None else _GROUP_BYTES
    return message.size_bytes + _FIELD_BYTES * fields + group
