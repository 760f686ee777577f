"""The object with the messages of one send: its bytes, its key and its life. Pure.

    bytes   0        1       2          2 + 4n
            version  count   n ends     message 0, message 1, … each packed for itself

An end is the byte behind a message, counted from the beginning of the object, so that a few of many
messages are read by a range. It has all messages of a request, by their indexes there, also those
that were rejected and duplicates: a repeated send has the same id, and writes the same bytes.

The first part of a key says for how many days the bucket keeps an object after it was written. It
ends by a rule of the bucket; nobody deletes it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence

from cirrusmq.base import limits, ulid
from cirrusmq.model.message import Message, pack, unpack

DAY_MS = 86_400_000
MARGIN_MS = limits.KEY_SLACK_MS
"""A repeated send may store its parcel that much later than the object was first written."""
MAX_HEAD_BYTES = 2 + 4 * limits.BATCH_MESSAGES
_VERSION = 1
_SPREAD_DIGITS = 3


def pack_object(messages: Sequence[Message], packed: bytes | None = None) -> bytes:
    """Returns the object of a send with 1 to 16 messages. packed: them all, or None."""
    one = packed if len(messages) == 1 else None
    parts = [one] if one else [pack([message]) for message in messages]
    ends, end = [], 2 + 4 * len(parts)
    for each in parts:
        end += len(each)
        ends.append(end)
    head = struct.pack(f">BB{len(ends)}I", _VERSION, len(ends), *ends)
    return b"".join([head, *parts])


def read_spans(head: bytes) -> list[tuple[int, int]]:
    """Returns the first byte of each message in the object and the byte behind it.

    head: the beginning of the object. Raises ValueError if it is none of our objects.
    """
    if len(head) < 2 or head[0] != _VERSION or len(head) < 2 + 4 * head[1]:
        raise ValueError("these bytes do not begin an object with messages")
    ends = struct.unpack_from(f">{head[1]}I", head, 2)
    return list(zip((2 + 4 * len(ends), *ends), ends, strict=False))


def unpack_object(
    spans: Sequence[tuple[int, int]], part: bytes, begins: int, positions: Iterable[int]
) -> dict[int, Message]:
    """Returns the messages at these positions; `part` is the object from its byte `begins` on."""
    return {
        position: unpack(part[start - begins : end - begins])[0]
        for position in positions
        for start, end in [spans[position]]
    }


def life_days(life_ms: int) -> int:
    """Returns the class of life of an object whose messages can be read for `life_ms` from now."""
    return -(-(life_ms + MARGIN_MS) // DAY_MS)


def surely_lives_until_ms(send_id: str, days: int) -> int:
    """Returns until when an object can surely be read: it is not older than its send."""
    return ulid.time_of(send_id) - limits.ATTEMPT_AHEAD_MS + days * DAY_MS


def object_key(send_id: str, days: int) -> str:
    """Returns `d<days>/<3 hex digits>/<send id>`: the digits spread the keys of one time."""
    spread = hashlib.blake2b(send_id.encode(), digest_size=8).hexdigest()[:_SPREAD_DIGITS]
    return f"d{days:02d}/{spread}/{send_id}"
