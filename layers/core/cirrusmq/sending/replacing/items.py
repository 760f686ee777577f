"""The item of a `replace` key: the newest message under it, and its place.

pk: `X#<queue id>#<hash of the key>`; sk: `X`. It is written with each message under the key, in one
transaction, and stays to the end of that message's life. The message may have been received since:
a reader compares the parcel itself.
"""

from __future__ import annotations

import msgspec

from cirrusmq.base import limits, ulid
from cirrusmq.model.parcel import Parcel, send_and_position
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key
from cirrusmq.sending.deduplication import key_digest
from cirrusmq.storage.parcels import ttl_seconds

_KEYS = "X"
_TIME_BYTES = 6
_ENTRY_BYTES = 2 * _TIME_BYTES
_PAST_SENDS = 40
"""Received sends that a key remembers; with them its item is below 1 KB."""


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """The newest message under a key."""

    message_id: str
    partition: int
    sort_key: str
    """Its parcel's key, when it was sent."""
    sent_ms: int
    expires_ms: int
    first_ms: int
    """Time of the first send in the row of messages that replaced each other."""
    replaced: str | None = None
    """Id of the message that it replaced."""
    repeatable: bool = False
    """True if its send may be repeated by its client."""
    past: bytes = b""
    """Earlier sends that were not replaced, and may still be repeated: of each the time of its
    sending and the last 6 bytes of its id."""
    horizon_ms: int = 0
    """Begin of the latest send that `past` had no room for."""

    @property
    def send_id(self) -> str:
        """Id of its send."""
        known = send_and_position(self.message_id)
        assert known is not None
        return known[0]


def read_waiting(core: Core, queue_id: str, text: str) -> Waiting | None:
    """Returns the newest message under a key, or None. One read unit."""
    item = core.store.get(core.tables.messages, *_key(queue_id, text))
    if item is None:
        return None
    return Waiting(
        message_id=item["i"]["S"],
        partition=int(item["q"]["N"]),
        sort_key=item["n"]["S"],
        sent_ms=int(item["t"]["N"]),
        expires_ms=int(item["x"]["N"]),
        first_ms=int(item["f"]["N"]),
        replaced=item["r"]["S"] if "r" in item else None,
        repeatable="a" in item,
        past=item["p"]["B"] if "p" in item else b"",
        horizon_ms=int(item["h"]["N"]) if "h" in item else 0,
    )


def waiting_item(queue_id: str, text: str, waiting: Waiting) -> Item:
    """Returns the item that names this message under a key."""
    ends_ms = max(waiting.expires_ms, waiting.sent_ms + limits.TOMBSTONE_MS) + limits.KEY_SLACK_MS
    item: Item = {
        **key(*_key(queue_id, text)),
        "i": {"S": waiting.message_id},
        "q": {"N": str(waiting.partition)},
        "n": {"S": waiting.sort_key},
        "t": {"N": str(waiting.sent_ms)},
        "x": {"N": str(waiting.expires_ms)},
        "f": {"N": str(waiting.first_ms)},
        "expires_at": {"N": str(ttl_seconds(ends_ms))},
    }
    if waiting.replaced is not None:
        item["r"] = {"S": waiting.replaced}
    if waiting.repeatable:
        item["a"] = {"BOOL": True}
    if waiting.past:
        item["p"] = {"B": waiting.past}
    if waiting.horizon_ms:
        item["h"] = {"N": str(waiting.horizon_ms)}
    return item


def past_sent_ms(waiting: Waiting, send_id: str) -> int | None:
    """Returns when a send stored a message that was received since; None if it is not known."""
    mark = ulid.entropy_of(send_id)[-_TIME_BYTES:]
    for entry in _entries(waiting.past):
        if entry[_TIME_BYTES:] == mark:
            return _sent_ms(entry)
    return None


def with_past(waiting: Waiting, since_ms: int) -> tuple[bytes, int]:
    """Returns (past, horizon) for the message that follows this one, which was not replaced.

    since_ms: earlier sends cannot be repeated any more.
    """
    entries = [entry for entry in _entries(waiting.past) if _sent_ms(entry) >= since_ms]
    if waiting.repeatable and waiting.sent_ms >= since_ms:
        mark = ulid.entropy_of(waiting.send_id)[-_TIME_BYTES:]
        entries.append(waiting.sent_ms.to_bytes(_TIME_BYTES, "big") + mark)
    dropped = entries[:-_PAST_SENDS]
    # A send's attempt may be ahead of the time at which it was stored.
    ahead_ms = [_sent_ms(entry) + limits.ATTEMPT_AHEAD_MS for entry in dropped]
    horizon_ms = max([waiting.horizon_ms, *ahead_ms])
    return b"".join(entries[-_PAST_SENDS:]), horizon_ms if horizon_ms >= since_ms else 0


def waiting_of(parcel: Parcel, first_ms: int) -> Waiting:
    """Returns what a key says of the message in this parcel, which is alone there."""
    return Waiting(
        message_id=parcel.message_id(0),
        partition=parcel.partition,
        sort_key=parcel.sort_key,
        sent_ms=parcel.sent_ms,
        expires_ms=parcel.expires_ms,
        first_ms=first_ms,
    )


def _key(queue_id: str, text: str) -> tuple[str, str]:
    return f"{_KEYS}#{queue_id}#{key_digest(text)}", _KEYS


def _entries(past: bytes) -> list[bytes]:
    return [past[at : at + _ENTRY_BYTES] for at in range(0, len(past), _ENTRY_BYTES)]


def _sent_ms(entry: bytes) -> int:
    return int.from_bytes(entry[:_TIME_BYTES], "big")
