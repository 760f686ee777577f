"""Sending messages to a queue: ids, writes, and the answer to a repeated send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType, structs

from cirrusmq.access.keys import Caller
from cirrusmq.base import ulid
from cirrusmq.base.errors import CirrusMQError, InvalidParameter, LimitExceeded, Unavailable
from cirrusmq.model.delayed_id import with_delay
from cirrusmq.model.message import (
    CONTRACT,
    ContentLimits,
    Message,
)
from cirrusmq.model.parcel import order_number
from cirrusmq.model.queue import Queue
from cirrusmq.model.sender import with_sender
from cirrusmq.queues.wake_ups.announce import wake_receivers
from cirrusmq.runtime.core import Core, LeftToService
from cirrusmq.runtime.store import Item
from cirrusmq.sending import deduplication
from cirrusmq.sending.asking import note_of, with_deadline
from cirrusmq.sending.conditional_writes import (
    find_with_earlier_delay,
    is_orphan_record,
    store_items,
    under_present_keys,
)
from cirrusmq.sending.deduplication import PreviousAttempt, Stored
from cirrusmq.sending.making import Entry, Items, items_for, queue_prefix
from cirrusmq.sending.request_messages import (
    NO_TRACE,
    new_send_id,
    read_contents,
    repeatable_send_ids,
    store_once,
    stored,
)
from cirrusmq.sending.send_request import (
    SendDraft,
    SendRequest,
    check_messages,
    check_send_attempt,
    with_priorities,
)
from cirrusmq.storage import counters
from cirrusmq.storage.bodies.own_records import writes_record
from cirrusmq.storage.bodies.write import Placed, place_messages
from cirrusmq.storage.parcels import read_parcel, read_positions
from cirrusmq.storage.sequences import take_sequence

if TYPE_CHECKING:
    from cirrusmq.sending.replacing.rules import Replacement


class _Send(msgspec.Struct, frozen=True, kw_only=True):
    """A send on its way: into which queue, under which id."""

    core: Core
    queue: Queue
    caller: str
    """The account that sends."""
    id: str
    begun_ms: int
    """The time in the id."""
    now_ms: int
    whole: bool
    """True if an earlier try with one of the messages had all of them."""
    count: int
    """How many messages the request has."""
    placed: Placed
    """The place where the request's messages are stored."""


_Result: TypeAlias = Stored | CirrusMQError


def send(
    core: Core,
    queue: Queue,
    request: SendRequest,
    caller: Caller,
    limit: ContentLimits = CONTRACT,
    trace: Mapping[str, str] = NO_TRACE,
) -> list[_Result]:
    """Stores the messages. Returns a result for each, in the order sent.

    With `atomic` all are stored or an error is raised. Without, a message that its own size,
    delay or group rules out has its error in the list. `limit`: of each beside its body.
    `trace`: the trace context of messages that have none.
    """
    now_ms = core.now_ms()
    begun_ms = check_send_attempt(queue, request, now_ms, core.clock.scale)
    plain = read_contents(request.messages, core.settings.batch_bytes, limit, trace)
    contents = with_sender(
        with_priorities(request, plain),
        caller,
        queue.account,
        queue.attributes.sender,
    )
    drafts, refused = check_messages(queue, request, contents)
    check_room(core, queue, len(drafts))
    rate = queue.attributes.send_rate
    if rate is not None and drafts:
        # Few queues have a rate: the others' cold starts do without.
        from cirrusmq.access.source_rates import take_sends

        take_sends(core, queue.id, rate, len(drafts))
    send_id = _send_id(core, queue, request, begun_ms)
    life_ms = queue.attributes.message_retention_seconds * 1000
    sending = _Send(
        core=core,
        queue=queue,
        caller=caller.account,
        id=send_id,
        begun_ms=begun_ms,
        now_ms=now_ms,
        # Only another call with the attempt may find other messages refused than this one does.
        whole=request.atomic or request.attempt is UNSET,
        count=len(contents),
        placed=place_messages(core, send_id, contents, life_ms) if drafts else Placed(),
    )
    keys = {index: draft.deduplication_id for index, draft in drafts.items()}
    fresh, duplicates = store_once(keys, partial(_store, sending, drafts))
    results: dict[int, _Result] = {**refused, **fresh, **duplicates}
    if 0 in drafts and drafts[0].asked is not None:
        results[0] = with_deadline(results[0], drafts[0].asked)
    return [results[index] for index in range(len(request.messages))]


def check_room(core: Core, queue: Queue, count: int) -> None:
    """Raises LimitExceeded if the queue has no room for `count` messages more."""
    limit = queue.attributes.max_messages
    if not core.tables.usage:
        return  # a client's own process: its calls by the URL ask, once a minute
    if count and counters.kept(core, queue.id) + count > limit:
        raise LimitExceeded(f"the queue keeps at most {limit} messages")


def _send_id(core: Core, queue: Queue, request: SendRequest, begun_ms: int) -> str:
    """Returns the id of a send, which contains the delay of its first message with one.

    An id has one delay: the client library sends messages of one delay in a call.
    """
    if isinstance(request.attempt, UnsetType):
        send_id = new_send_id(core, begun_ms)
    else:
        send_id = next(repeatable_send_ids(queue.account, queue.id, request, begun_ms))
    for message in request.messages:
        if not isinstance(message.delay_seconds, UnsetType):
            return ulid.encode(
                begun_ms, with_delay(ulid.entropy_of(send_id), message.delay_seconds)
            )
    return send_id


def _store(
    sending: _Send, drafts: Mapping[int, SendDraft], indexes: Sequence[int]
) -> dict[int, _Result]:
    """Stores the messages at `indexes`, unless an earlier try of the send has."""
    results: dict[int, _Result] = {}
    while left := {index: drafts[index] for index in indexes if index not in results}:
        results |= _write(sending, left)
    return results


def _write(sending: _Send, drafts: Mapping[int, SendDraft]) -> Mapping[int, _Result]:
    """Stores the messages, all or none.

    Returns the results that are settled then: for all messages, if they were stored, else for the
    messages that an earlier try of the send stored or keeps out.
    """
    core, queue = sending.core, sending.queue
    messages = {index: draft.message for index, draft in drafts.items()}
    met = {index for index, draft in drafts.items() if not draft.own_delay}
    prefixes = dict.fromkeys(queue_prefix(queue, messages[index]) for index in sorted(met))
    earlier = find_with_earlier_delay(core, queue, sending.id, sending.begun_ms, prefixes)
    keys = {index: draft.deduplication_id for index, draft in drafts.items()}
    first = next(iter(drafts.values()))
    if first.replacement is not None:
        return _write_in_place(sending, first.replacement, drafts, earlier)
    if earlier is not None:
        own = stored(sending.id, messages, earlier.sent_ms)
        reminders = deduplication.reminders(queue.id, keys, own)
        deduplication.check_reminded(core, reminders, earlier.sent_ms)
        return _results_after_conflict(sending, messages, earlier, met)
    items = _items(sending, drafts)
    if core.settings.in_process and not writes_record(items.log, items.parcels):
        raise LeftToService
    orders = _orders(items) if queue.attributes.ordered else {}
    fresh = stored(sending.id, messages, sending.now_ms, orders)
    reminders = deduplication.reminders(queue.id, keys, fresh)
    if reminders:
        earlier = deduplication.transact(
            core,
            items.all,
            reminders,
            begun_ms=sending.begun_ms,
            now_ms=sending.now_ms,
            whole=sending.whole,
            purged_ms=queue.purged_ms,
        )
    else:
        earlier = store_items(core, queue, items)
    if earlier is None:
        wake_receivers(core, queue, map(read_parcel, items.parcels), sending.now_ms)
        return fresh
    taken = {_key(item) for item in earlier.items}
    met = {index for item in items.all if _key(item) in taken for index in read_positions(item)}
    return _results_after_conflict(sending, messages, earlier, met, orders)


def _write_in_place(
    sending: _Send,
    replacement: Replacement,
    drafts: Mapping[int, SendDraft],
    earlier: PreviousAttempt | None,
) -> Mapping[int, _Result]:
    """Stores a message that replaces another one, unless an earlier try did."""
    from cirrusmq.sending.replacing.in_place import store_in_place, told_by

    if sending.core.settings.in_process:
        raise LeftToService
    if earlier is not None:
        done = told_by(earlier.items[0])
    else:
        items = _items(sending, drafts)
        done = store_in_place(sending.core, sending.queue, replacement, sending.id, items)
    if done.parcels:
        put = map(read_parcel, done.parcels)
        wake_receivers(sending.core, sending.queue, put, sending.now_ms)
    messages = {index: draft.message for index, draft in drafts.items()}
    found = stored(sending.id, messages, done.sent_ms)
    return {index: structs.replace(each, replaced=done.replaced) for index, each in found.items()}


def _orders(items: Items) -> dict[int, int]:
    """The numbers of an ordered queue's messages, by their indexes in the request."""
    return {
        index: order_number(item["sk"]["S"], index)
        for item in items.parcels
        for index in read_positions(item)
    }


def _items(sending: _Send, drafts: Mapping[int, SendDraft]) -> Items:
    core, queue, now_ms = sending.core, sending.queue, sending.now_ms
    asked = next(iter(drafts.values())).asked
    entries = [
        Entry(
            position=index,
            message=draft.message,
            available_ms=now_ms + draft.delay_seconds * 1000,
            visibility_seconds=draft.visibility_seconds,
        )
        for index, draft in drafts.items()
    ]
    items = items_for(
        queue,
        entries,
        parcel_id=sending.id,
        begun_ms=sending.begun_ms,
        now_ms=now_ms,
        take_sequence=lambda partition, count: take_sequence(core, queue.id, partition, count),
        object_days=sending.placed.days,
        packed=sending.placed.packed if len(drafts) == sending.count else None,
        others=None if asked is None else note_of(asked, queue.id, sending.caller, now_ms),
    )
    if queue.attributes.ordered:
        return items
    return under_present_keys(items, now_ms, core.clock.scale)


def _results_after_conflict(
    sending: _Send,
    messages: Mapping[int, Message],
    earlier: PreviousAttempt,
    met: Set[int],
    orders: Mapping[int, int] = MappingProxyType({}),
) -> Mapping[int, _Result]:
    """Returns results of messages that an earlier try decided; the others are still to be stored.

    `met`: the indexes of messages whose keys are taken by items of the earlier try. If that was not
    `whole`, it may have refused some of them, and its items keep them out for good:

        first try     message 0 is too large: refused      message 1: stored under the key
        the queue     .................................................. takes larger ones
        second try    message 0 and 1 under the key: taken by message 1 alone

    A message that has another key, by its delay, is stored separately.
    """
    if sending.whole:
        return stored(sending.id, messages, earlier.sent_ms, orders)
    if all(map(is_orphan_record, earlier.items)):
        raise Unavailable  # it died before it stored anything, and may have had others
    held = {index for item in earlier.items for index in read_positions(item)}
    kept = {index: message for index, message in messages.items() if index in held}
    said = "was rejected by the first call with this attempt; send it again with a new attempt"
    left_out = {
        index: InvalidParameter("attempt", f"messages[{index}] {said}") for index in met - held
    }
    return {**stored(sending.id, kept, earlier.sent_ms), **left_out}


def _key(item: Item) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["S"]
