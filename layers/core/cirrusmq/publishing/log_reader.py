"""Reading a topic's log in order, for broadcasting consumers, each from its own position.

Records are ordered by their keys, across the log's partitions. Records younger than two seconds
may still be overtaken by a publish that began before them, and are held back; one second longer
where clocks differ, since a reader's may be that much ahead of the store's, by which a record is
late. These are real seconds, of calls on their way, also if the service's time runs faster. A later
one is shown again:

    publish   put(K) on its way ............................... takes effect
    reader                         passes K, which is free                    finds K by P
    fan_out                                           reads K: put(P, "see K")
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from cirrusmq.base import limits, ulid
from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.timestamps import parse_time
from cirrusmq.model.message import Message, answer_too_large
from cirrusmq.model.parcel import message_id
from cirrusmq.model.topic import Subscription, Topic
from cirrusmq.publishing.records import (
    TopicRecord,
    holds_messages,
    is_topic_record,
    read_record,
    topic_log_key,
)
from cirrusmq.publishing.selecting import select
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item, key, number_in, put_if_absent
from cirrusmq.sending.request_messages import new_send_id
from cirrusmq.storage import cursors
from cirrusmq.storage.bodies.objects import BucketUnavailable, WantedObject, read_objects
from cirrusmq.storage.parcels import LOG, log_key, page_request, partition_key

_PAGE_RECORDS = 16
_AHEAD_BYTES = 1_000_000
"""Bytes of messages in objects that are read in parallel."""
_BETWEEN_BYTES = 1
_CURSOR_BYTES = 1_000
"""Bytes of a cursor, and of the names of the answer's fields."""


class Logged(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a topic's log; `routing_key` if the topic filters by it."""

    id: str
    message: Message
    sent_ms: int
    routing_key: str | None


def read_log(
    core: Core,
    topic: Topic,
    subscription: Subscription | None,
    after: str | None,
    limit: int,
    encode: Callable[[Logged], bytes],
    alone_bytes: int = limits.ANSWER_BYTES,
) -> tuple[list[bytes], str]:
    """Returns up to `limit` messages after `after` (a time or a cursor), and the next cursor.

    The messages are as `encode` makes them, as many as an answer has room for. With a subscription
    only messages that its filter selects, published since it was created. `alone_bytes`: limit
    of a message alone. Raises MessageTooLarge, with the cursor after it, if the next one has more.
    """
    now_ms = core.now_ms()
    listing = ("log", topic.id, subscription.id if subscription else "")
    position, skip, floor_ms = _start(core, after, listing)
    shown_from_ms = max(floor_ms, now_ms - limits.TOPIC_LIFE_SECONDS * 1000 + 1)
    if subscription is not None:
        shown_from_ms = max(shown_from_ms, subscription.created_ms)
    held_back = (
        f"{now_ms - int(limits.LOG_HELD_BACK_MS * core.clock.scale) - core.skew_ms // 2:013d}"
    )
    # A publish with an attempt has a key with the attempt's time, a little before its own.
    fresh_ms = int(limits.ATTEMPT_FRESH_MS * core.clock.scale)
    start = max(position, f"{shown_from_ms - fresh_ms:013d}")
    messages: list[bytes] = []
    size = 0
    chosen = (
        _choose(core, item, topic, subscription, shown_from_ms)
        for item in log_between(core, topic.id, topic.attributes.partitions, start, held_back)
    )
    for sort_key, shown_messages in _read_ahead(core, topic, chosen):
        first = skip if sort_key == position else 0
        for index, logged in shown_messages:
            if index < first:
                continue
            shown = encode(logged)
            size += len(shown) + _BETWEEN_BYTES
            if not messages and size > alone_bytes - _CURSOR_BYTES:
                too_large = answer_too_large(size, alone_bytes, logged.id)
                behind = f"{sort_key}/{index + 1}/{floor_ms}"
                too_large.cursor = cursors.make(core, behind, *listing)
                raise too_large
            over = bool(messages) and size > limits.ANSWER_BYTES - _CURSOR_BYTES
            if len(messages) == limit or over:
                cursor = cursors.make(core, f"{sort_key}/{index}/{floor_ms}", *listing)
                return messages, cursor
            messages.append(shown)
        position, skip = sort_key, limits.BATCH_MESSAGES
    if not skip:
        position = max(position, held_back)
    cursor = cursors.make(core, f"{position}/{skip}/{floor_ms}", *listing)
    return messages, cursor


def came_late(core: Core, item: Item, came_ms: int) -> bool:
    """Returns True if a record came into a topic's log so late that readers may be past its key.

    `came_ms`: when it was put, in whole seconds, rounded down.
    """
    if not is_topic_record(item) and "a" not in item:
        return False
    late_ms = came_ms + 999 - ulid.time_of(item["sk"]["S"].partition("#")[2])
    return late_ms > limits.LOG_HELD_BACK_MS * core.clock.scale


def show_again(core: Core, item: Item) -> None:
    """Puts a pointer to a late record, under a key that no reader has passed.

    A pointer may be late itself, and put twice if the stream repeats its record: some readers get
    the messages again, none misses them.
    """
    now_ms = core.now_ms()
    shown_id = {"a": {"S": item["sk"]["S"].partition("#")[2]}}
    shown = shown_id | {name: item[name] for name in ("a", "d") if name in item}
    _put_pointer(core, item, new_send_id(core, now_ms), shown, now_ms)


def show_delayed(core: Core, item: Item, record: TopicRecord) -> None:
    """Puts pointers to a record under the times at which messages of it are to be delivered.

    Readers find them there, and leave them out at the record itself. Their keys follow from the
    record: a repetition changes nothing. A pointer that comes too late is put under a key of now.
    """
    now_ms = core.now_ms()
    for due_ms in sorted({record.due_ms(index) for index in range(len(record.messages))} - {0}):
        own_id = new_send_id(core, now_ms)
        if due_ms > now_ms:
            time, entropy = ulid.first(due_ms), record.send_id[ulid.TIME_CHARACTERS :]
            own_id = time + entropy
            if own_id == record.send_id:
                # The record's own key: its attempt was made by a clock that is ahead by the delay.
                own_id = time + entropy[::-1]
        shown = {"a": {"S": record.send_id}, "d": {"N": str(due_ms)}}
        _put_pointer(core, item, own_id, shown, now_ms)


def _put_pointer(core: Core, item: Item, own_id: str, shown: Item, now_ms: int) -> None:
    """Puts a pointer into the log of an item, unless one of this id is there.

    shown: the id of the record (`a`), and the time of the messages that are shown (`d`).
    """
    pointer: Item = {
        **key(*log_key(item["pk"]["S"].partition("#")[2], own_id)),
        **shown,
        "t": {"N": str(now_ms)},
        "expires_at": item["expires_at"],
    }
    # Refused if the SDK, or the stream, repeats it.
    core.store.try_write("PutItem", put_if_absent(core.tables.messages, pointer))


def _start(core: Core, after: str | None, listing: tuple[str, ...]) -> tuple[str, int, int]:
    """The key of the record to continue with, how many of its messages were read, and the first
    time of publishing that is wanted."""
    if after is None:
        return "", 0, 0
    try:
        return "", 0, parse_time("after", after) + 1
    except InvalidParameter:
        pass
    try:
        read = cursors.read(core, after, *listing)
    except InvalidParameter as error:
        raise InvalidParameter("after", "must be a time or a cursor of this log") from error
    assert read is not None
    begun, count, floor_ms = read.split("/")
    return begun, int(count), int(floor_ms)


def log_between(core: Core, log_id: str, partitions: int, start: str, until: str) -> Iterator[Item]:
    """The items with keys from `start` to before `until`, of all partitions in order."""
    each = [
        _partition(core, partition_key(LOG, log_id, number), start, until)
        for number in range(partitions)
    ]
    return heapq.merge(*each, key=lambda item: item["sk"]["S"])


def _partition(core: Core, pk: str, start: str, until: str) -> Iterator[Item]:
    if start >= until:
        return
    table = core.tables.messages
    request = page_request(table, pk, start, until, _PAGE_RECORDS, consistent=True)
    yield from core.store.query_pages(request)


class _Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """An item of the log, and which messages of it are to be shown."""

    sort_key: str
    record: TopicRecord | None = None
    """None if it has no messages to be shown."""
    indexes: Sequence[int] = ()

    @property
    def bytes_in_object(self) -> int:
        """Bytes to be read of its object; 0 if the messages are in none."""
        if self.record is None or not self.record.object_days:
            return 0
        return sum(self.record.messages[index].size_bytes for index in self.indexes)


def _choose(
    core: Core, item: Item, topic: Topic, subscription: Subscription | None, floor_ms: int
) -> _Chosen:
    sort_key, due_ms = item["sk"]["S"], number_in(item, "d")
    if "a" in item:
        record_key = topic_log_key(topic, item["a"]["S"])
        item = core.store.get(core.tables.messages, *record_key) or item
    if not holds_messages(item):
        return _Chosen(sort_key=sort_key)
    record = read_record(item)
    expired = core.now_ms() >= record.sent_ms + limits.TOPIC_LIFE_SECONDS * 1_000
    before = subscription is not None and record.sent_ms < subscription.created_ms
    if expired or before or (due_ms or record.sent_ms) < floor_ms:
        return _Chosen(sort_key=sort_key)
    indexes: Sequence[int] = range(len(record.messages))
    if subscription is not None:
        indexes = select(core, record, subscription, topic.attributes.filter)
    indexes = [index for index in indexes if record.due_ms(index) == due_ms]
    return _Chosen(sort_key=sort_key, record=record, indexes=indexes)


def _read_ahead(
    core: Core, topic: Topic, chosen: Iterator[_Chosen]
) -> Iterator[tuple[str, Iterator[tuple[int, Logged]]]]:
    """Each item's sort key, and its messages with their indexes in it.

    Objects of several records are read in parallel, up to `_AHEAD_BYTES` together.
    """
    ahead: list[_Chosen] = []
    for each in chosen:
        ahead.append(each)
        size = sum(record.bytes_in_object for record in ahead)
        # A record in the table is shown before the next one is read.
        if not each.bytes_in_object or size >= _AHEAD_BYTES or len(ahead) == _PAGE_RECORDS:
            yield from _shown(core, topic, ahead)
            ahead = []
    yield from _shown(core, topic, ahead)


def _shown(
    core: Core, topic: Topic, ahead: Sequence[_Chosen]
) -> Iterator[tuple[str, Iterator[tuple[int, Logged]]]]:
    in_objects = [
        (each.record, each.indexes) for each in ahead if each.record and each.bytes_in_object
    ]
    read = read_objects(core, [_wanted(record, indexes) for record, indexes in in_objects])
    objects = iter(read)
    for each in ahead:
        there = next(objects) if each.bytes_in_object else {}
        if isinstance(there, BucketUnavailable):
            raise there
        yield each.sort_key, _logged(topic, each, there)


def read_logged(core: Core, topic: Topic, record: TopicRecord, index: int) -> Logged | None:
    """Returns a message of a record, or None if it is in an object that does not have it.

    Raises Unavailable if the bucket refuses.
    """
    chosen = _Chosen(sort_key="", record=record, indexes=[index])
    shown = (each for _, messages in _shown(core, topic, [chosen]) for _, each in messages)
    return next(shown, None)


def _wanted(record: TopicRecord, indexes: Sequence[int]) -> WantedObject:
    sizes = (each.size_bytes for each in record.messages)
    return WantedObject(
        send_id=record.send_id,
        days=record.object_days,
        positions={record.positions[index] for index in indexes},
        sizes=dict(zip(record.positions, sizes, strict=True)),
    )


def _logged(
    topic: Topic, chosen: _Chosen, there: Mapping[int, Message]
) -> Iterator[tuple[int, Logged]]:
    """Yields the messages with their indexes, without messages that their object does not have."""
    record = chosen.record
    if record is None:
        return
    for index in chosen.indexes:
        message = record.messages[index]
        if not isinstance(message, Message):
            if record.positions[index] not in there:
                continue
            message = there[record.positions[index]]
        by_routing_key = topic.attributes.filter == "routing_key"
        yield (
            index,
            Logged(
                id=message_id(record.send_id, record.positions[index]),
                message=message,
                sent_ms=record.sent_ms,
                routing_key=record.header.routing_keys[index] if by_routing_key else None,
            ),
        )
