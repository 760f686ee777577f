"""A parcel: the delivery state of the messages of one send in one queue, receiver or subscription.

Pure values: the state, and which of the messages can be received at a given time. The steps from
one state to the next are in `model.transitions`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cirrusmq.base import limits, ulid
from cirrusmq.model.message import answer_bytes
from cirrusmq.model.post_history import Post, unpack_posts

DELETED = 0
"""A `visible_ms` that says: deleted by its consumer."""
GONE = -1
"""A `visible_ms` that says: moved to another queue (dead-lettered, redriven)."""
MOVED = -2
"""A `visible_ms` that says: re-keyed in the same source, in a separate parcel."""
DROPPED = -3
"""A `visible_ms` that says: its retries are used up, and no dead-letter queue takes it."""
CANCELLED = -4
"""A `visible_ms` that says: cancelled by its sender, before it was received."""
NOTIFICATION = "N"
"""The attribute of a parcel whose messages are shown as SNS's notifications: it names the
subscription (`model.notification`). It is among `others`, which every move takes along."""
REPLACED = "X"
"""The attribute of a parcel, and of its log record, that names the message that its one replaced: a
send that is repeated answers by it. It is among `others`."""
_NOTIFICATION_BYTES = 4_096
"""Bytes of a notification beside its message, at most: ARNs, a URL, names of fields."""
_MARK_BYTES = 5
_HASH_CHARACTERS = 24
_OF_ONE_MESSAGE = re.compile(r"([a-zA-Z])([0-9]|1[0-5])", re.ASCII)
_MESSAGE_ID = re.compile(r"Msg-([0-7][0-9A-HJKMNP-TV-Z]{25})([0-9A-F])", re.ASCII)


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """The state of 1 to 16 messages. Lists are indexed by a message's index in the parcel."""

    source_id: str
    """Id of the queue, receiver or subscription that has the messages."""
    partition: int
    sort_key: str
    """`<available at, 13 digits of ms>#<parcel id>`, in fair sources behind `<hash of the group>#`;
    in ordered sources by group and sequence."""
    parcel_id: str
    """The send's id. `.<position>` behind it: re-keyed in its source, with the first message of
    this position; and `.<time>` behind that: a message that was put into another queue alone."""
    sent_ms: int
    expires_ms: int
    visible_ms: tuple[int, ...]
    """When each can be received next, without its wait: the end of its lease or of its delay."""
    nonces: tuple[bytes, ...]
    """Nonce of each message's newest receipt; empty before the first and after a give-back."""
    receives: tuple[int, ...]
    """How often each was received, also to be given back untried."""
    first_received_ms: tuple[int, ...]
    sizes: tuple[int, ...]
    """Bytes of body, attributes and tags."""
    waits_ms: tuple[int, ...] = ()
    """Retry waits that follow the leases; empty if the source has no retry policy."""
    answer_percent: int = 100
    """Bytes of a message in an answer's JSON for every 100 of its size, at most."""
    positions: tuple[int, ...] = ()
    """Each message's number in its send; empty: 0, 1, 2 …"""
    visibility_seconds: tuple[int, ...] = ()
    """Visibility timeout of each message, 0 if it has none; empty if no message has one."""
    content: bytes | None = None
    """The packed messages, if they fit in beside their state."""
    log: str | None = None
    """`<id>#<partition>` of the log with the messages; None: the source's, same partition."""
    object_days: int = 0
    """Class of life of the object with the messages, whose id is the send's; 0 if in none."""
    own_group: bool = False
    """True if a message that has no group, in its object, forms a separate group here."""
    moved_from: str | None = None
    """Id of the source that these messages were moved from, for the meter."""
    moved_ms: int = 0
    """When it was re-keyed, if a new receiver got its queue's backlog at that time."""
    dead_letter: dict[str, Any] | None = None
    fanned_out: bool = False
    """True if fan-out made it, under a key that it may want to use again for 24 hours."""
    invokes: bool = False
    """True if the stream announces its put: its source calls a function with messages."""
    histories: Mapping[int, bytes] = {}
    """The latest posts of messages to a URL, by index, packed (`model.post_history`)."""
    untried: Mapping[int, int] = {}
    """How many receives of a message ended in a give-back that tried nothing, by index."""
    errors: Mapping[int, str] = {}
    """Why the newest post failed, by index, for messages posted before histories were kept."""
    others: Mapping[str, Any] = {}
    """Attributes that this release does not know, as they are stored: a later one wrote them."""

    @property
    def count(self) -> int:
        """How many messages the parcel was made with."""
        return len(self.visible_ms)

    @property
    def send_id(self) -> str:
        """Id of the send: a ULID."""
        return self.parcel_id[: ulid.CHARACTERS]

    @property
    def key_ms(self) -> int:
        """The time in its key, in an unordered source."""
        return key_ms(self.sort_key)

    @property
    def key_prefix(self) -> str:
        """Its group's part of the key, in a fair source; empty in a plain one."""
        return key_prefix(self.sort_key)

    @property
    def first_key(self) -> bool:
        """True if its key derives from an id that a client or the stream may repeat."""
        return self.fanned_out or "." not in self.parcel_id

    @property
    def came_alone(self) -> bool:
        """True if its message was put here alone, from another queue."""
        return self.parcel_id.count(".") == 2

    @property
    def record_id(self) -> str:
        """Id of the log record with the content, where `content` is None.

        A message that came alone has its own record; one that was re-keyed in its source is still
        in its send's.
        """
        return self.parcel_id if self.came_alone else self.send_id

    def position(self, index: int) -> int:
        """Returns the number, in its send, of the message at `index`."""
        return self.positions[index] if self.positions else index

    def message_id(self, index: int) -> str:
        """Returns the id of the message at `index`."""
        return message_id(self.send_id, self.position(index))

    def posts(self, index: int) -> tuple[Post, ...]:
        """Returns the latest posts of the message at `index` to its URL, in order."""
        return unpack_posts(self.histories.get(index, b""), self.sent_ms)

    def last_error(self, index: int) -> str:
        """Returns why the newest post of the message at `index` failed, or "" if not known."""
        posts = self.posts(index)
        return (posts[-1].error or "") if posts else self.errors.get(index, "")

    def tries(self, index: int) -> int:
        """Returns the receive count of the message at `index` for consumers and dead letters.

        It leaves out receives that tried nothing, up to a bound: a message that is always given
        back untried comes to its end by its count too.
        """
        return self.receives[index] - min(self.untried.get(index, 0), limits.UNTRIED_RECEIVES)

    def wait_ms(self, index: int) -> int:
        """Returns how long the message at `index` waits for its retry after its lease."""
        return self.waits_ms[index] if self.waits_ms else 0

    def ready_ms(self, index: int) -> int:
        """Returns when the message at `index` can be received; meaningless if it is not live."""
        return self.visible_ms[index] + self.wait_ms(index)

    def live(self, index: int) -> bool:
        """Returns True if the message at `index` is still in the source."""
        return self.visible_ms[index] > DELETED

    def spent(self) -> bool:
        """Returns True if the parcel has no live message."""
        return max(self.visible_ms) <= DELETED

    def receivable(self, index: int, now_ms: int) -> bool:
        """Returns True if the message at `index` is active at `now_ms`."""
        return self.live(index) and self.ready_ms(index) <= now_ms < self.expires_ms

    def visible_indexes(self, now_ms: int) -> list[int]:
        """Returns the indexes of the messages that are active at `now_ms`."""
        if now_ms >= self.expires_ms:
            return []
        if self.waits_ms:
            return [index for index in range(self.count) if self.receivable(index, now_ms)]
        return [index for index, ms in enumerate(self.visible_ms) if DELETED < ms <= now_ms]

    def held(self, index: int, now_ms: int) -> bool:
        """Returns True if a receiver holds the message at `index`."""
        return self.live(index) and bool(self.nonces[index]) and self.visible_ms[index] > now_ms

    def delayed(self, index: int, now_ms: int) -> bool:
        """Returns True if the message at `index` still waits for its first delivery."""
        return self.live(index) and not self.receives[index] and self.visible_ms[index] > now_ms

    def waiting(self, index: int, now_ms: int) -> bool:
        """Returns True if the message at `index` has outlived its lease and waits for its retry."""
        return self.live(index) and self.visible_ms[index] <= now_ms < self.ready_ms(index)

    def awaits_group(self, index: int) -> bool:
        """Returns True if the message at `index` was rewound and waits until its group is free.

        It has the time of the rewind in the place of its first receive.
        """
        return not self.receives[index] and self.visible_ms[index] == self.expires_ms

    def answer_bytes(self, index: int) -> int:
        """Returns the most bytes that the message at `index` adds to an answer's JSON.

        A notification is JSON in JSON: if one of them makes a text longer by a byte, both make it
        longer by 3 at most: a quote has 1, then 2, then 4.
        """
        if NOTIFICATION in self.others:
            percent = 3 * self.answer_percent - 200
            return answer_bytes(self.sizes[index], percent) + _NOTIFICATION_BYTES
        return answer_bytes(self.sizes[index], self.answer_percent)


def message_id(send_id: str, position: int) -> str:
    """Returns `Msg-`, the id of the send, and the message's number in it as one hex digit."""
    return f"Msg-{send_id}{position:X}"


def send_and_position(message_id: str) -> tuple[str, int] | None:
    """Returns the send's id and the number in it from a message's id, or None if it is no id."""
    match = _MESSAGE_ID.fullmatch(message_id)
    return (match[1], int(match[2], 16)) if match else None


def order_number(sort_key: str, position: int) -> int:
    """Returns a number of an ordered source's message that grows with its group's order.

    sort_key: of its parcel, which has the sequence number that all of its messages share.
    """
    return int(sort_key.partition("#")[2]) * limits.BATCH_MESSAGES + position


def sequence_number(order: int) -> str:
    """Returns an order number as SQS has it: 20 digits, so that texts sort like numbers."""
    return f"{order:020d}"


def others_of(parcel: Parcel, indexes: Sequence[int]) -> Mapping[str, Any]:
    """Returns the attributes that this release does not know, for a parcel of these messages.

    One that is named by a letter and an index belongs to the message there, every other one to the
    parcel:

        parcel of 3   flags, q0, q2      the messages at 1 and 2 move
        new parcel    flags, q1          1 is at 0 there, and 2 at 1
    """
    if not parcel.others:
        return {}
    index_of = {place: index for index, place in enumerate(indexes)}
    kept: dict[str, Any] = {}
    for name, value in parcel.others.items():
        found = _OF_ONE_MESSAGE.fullmatch(name)
        if found is None:
            kept[name] = value
        elif int(found[2]) in index_of:
            kept[f"{found[1]}{index_of[int(found[2])]}"] = value
    return kept


def where_differing(positions: tuple[int, ...]) -> tuple[int, ...]:
    """Returns numbers in a send as items hold them: empty for 0, 1, 2 …, which most sends have."""
    return () if positions == tuple(range(len(positions))) else positions


def sort_key(available_ms: int, parcel_id: str) -> str:
    """Returns the key of a parcel in its partition: in order of when it can first be received."""
    return f"{available_ms:013d}#{parcel_id}"


def key_prefix(sort_key: str) -> str:
    """Returns the group's part of a fair source's sort key; empty in a plain source."""
    grouped = sort_key[_HASH_CHARACTERS : _HASH_CHARACTERS + 1] == "#"
    return sort_key[: _HASH_CHARACTERS + 1] if grouped else ""


def key_in_group(sort_key: str) -> str:
    """Returns the sort key of a parcel of an unordered source without the group's part."""
    return sort_key[len(key_prefix(sort_key)) :]


def key_ms(sort_key: str) -> int:
    """Returns the time in the sort key of a parcel of an unordered source."""
    return int(key_in_group(sort_key)[:13])


def lone_parcel_id(send_id: str, position: int, now_ms: int, came_from: str) -> str:
    """Returns the id of a parcel for one message of a send, put into another queue at `now_ms`.

    It is unique, also when a message is moved the same way for the second time. came_from: its
    source, since a queue and its receivers may dead-letter the same message in one millisecond.
    """
    mark = hashlib.blake2b(came_from.encode(), digest_size=_MARK_BYTES).hexdigest()
    return f"{send_id}.{position:X}.{now_ms:x}{mark}"


def tombstone_until(parcel: Parcel, scale: float) -> int:
    """Returns until when a parcel's first key must stay taken, once its messages moved away.

    An attempt's age is in real seconds, each of which is `scale` seconds of the service.
    """
    if parcel.fanned_out:
        return ulid.time_of(parcel.send_id) + limits.FAN_OUT_TOMBSTONE_MS
    return ulid.time_of(parcel.send_id) + int(limits.TOMBSTONE_MS * scale)
