"""Sending messages to a queue: checks, ids, and what a repeated send answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base import limits
from cirrusmq.base.errors import CirrusMQError, InvalidParameter, LimitExceeded, Unavailable
from cirrusmq.base.request_token import check_attempt
from cirrusmq.model.message import Message, check_body_size
from cirrusmq.model.parcel import sort_key
from cirrusmq.model.queue import Queue
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import Item
from cirrusmq.sending import deduplication
from cirrusmq.sending.batch import (
    BatchMessage,
    deduplication_key,
    new_send_id,
    read_contents,
    repeatable_send_ids,
    store_once,
    stored,
)
from cirrusmq.sending.deduplication import Earlier, Stored
from cirrusmq.sending.late import under_present_keys
from cirrusmq.sending.parcels import Entry, items_for
from cirrusmq.sending.writes import is_leftover, store_items
from cirrusmq.storage import counters
from cirrusmq.storage.parcels import PARCELS, partition_key, read_positions
from cirrusmq.storage.sequences import take_sequence


class SendMessage(BatchMessage, forbid_unknown_fields=True, frozen=True):
    """One message of a send."""

    delay_seconds: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=limits.DELAY_SECONDS[1],
                description="an integer from 0 to 1,296,000 seconds",
            ),
        ]
        | UnsetType
    ) = UNSET
    visibility_timeout_seconds: (
        Annotated[int, Meta(ge=1, le=43_200, description="an integer from 1 to 43,200 seconds")]
        | UnsetType
    ) = UNSET


class SendRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a send."""

    messages: Annotated[
        list[SendMessage], Meta(min_length=1, description="an array of 1 to 16 messages")
    ]
    atomic: bool = True
    attempt: str | UnsetType = UNSET


class _Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A checked message of a request."""

    place: int
    """Its number in the request, which its id says."""
    deduplication_id: str | None
    message: Message
    delay_seconds: int
    own_delay: bool
    visibility_seconds: int


class _Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the messages of one write, by their places in the request."""

    sent_ms: int
    stored: frozenset[int]
    left_out: frozenset[int] = frozenset()
    """An earlier try stored others under their key: it had refused these."""


def send(core: Core, queue: Queue, request: SendRequest) -> list[Stored | CirrusMQError]:
    """Store the messages; one result for each, in the order sent.

    With `atomic` all are stored or an error is raised. Without, a message that its own size,
    delay or group rules out has its error in the list.
    """
    now_ms = core.now_ms()
    begun_ms = _check_attempt(queue, request, now_ms, core.clock.scale)
    contents = read_contents(request.messages)
    refused: dict[int, CirrusMQError] = {}
    drafts: list[_Draft] = []
    for number, (given, message) in enumerate(zip(request.messages, contents, strict=True)):
        try:
            drafts.append(_draft(queue, given, message, number))
        except CirrusMQError as error:
            if request.atomic:
                raise
            refused[number] = error
    if drafts and counters.kept(core, queue.id) + len(drafts) > queue.attributes.max_messages:
        raise LimitExceeded(f"the queue keeps at most {queue.attributes.max_messages} messages")
    if isinstance(request.attempt, UnsetType):
        send_id = new_send_id(core, begun_ms)
    else:
        send_id = next(repeatable_send_ids(queue.account, queue.id, request, begun_ms))

    # Only another call with the attempt may find other messages refused than this one does.
    whole = request.atomic or request.attempt is UNSET

    def store(numbers: Sequence[int]) -> list[Stored]:
        messages = {drafts[number].place: drafts[number].message for number in numbers}
        answers = dict(zip(messages, stored(send_id, messages, now_ms), strict=True))
        left = [drafts[number] for number in numbers]
        while left:
            outcome = _write(core, queue, send_id, left, begun_ms, now_ms, whole=whole)
            done = {place: messages[place] for place in outcome.stored}
            answers |= dict(zip(done, stored(send_id, done, outcome.sent_ms), strict=True))
            refused.update({place: _left_out(place) for place in outcome.left_out})
            settled = outcome.stored | outcome.left_out
            left = [draft for draft in left if draft.place not in settled]
        return list(answers.values())

    answers = store_once([draft.deduplication_id for draft in drafts], store)
    sent = {draft.place: answer for draft, answer in zip(drafts, answers, strict=True)}
    return [refused.get(number) or sent[number] for number in range(len(contents))]


def _left_out(place: int) -> CirrusMQError:
    return InvalidParameter(
        "attempt", f"messages[{place}] was refused when it was first shown: send it with a new one"
    )


def _check_attempt(queue: Queue, request: SendRequest, now_ms: int, scale: float) -> int:
    if request.attempt is UNSET:
        return now_ms
    assert isinstance(request.attempt, str)
    if queue.attributes.ordered:
        raise InvalidParameter(
            "attempt", "is refused by ordered queues: give each message a deduplication_id"
        )
    return check_attempt(request.attempt, now_ms, scale)


def _draft(queue: Queue, given: SendMessage, message: Message, place: int) -> _Draft:
    attributes, where = queue.attributes, f"messages[{place}]"
    check_body_size(message, attributes.max_message_bytes, where)
    delay_seconds = attributes.delay_seconds
    if not isinstance(given.delay_seconds, UnsetType):
        delay_seconds = given.delay_seconds
        if attributes.ordered:
            raise InvalidParameter(
                f"{where}.delay_seconds", "a message of an ordered queue has no delay of its own"
            )
        if delay_seconds >= attributes.message_retention_seconds:
            raise InvalidParameter(
                f"{where}.delay_seconds",
                f"must be 0 to {attributes.message_retention_seconds - 1}, below the retention",
            )
    if attributes.ordered and message.group is None:
        raise InvalidParameter(f"{where}.group", "is needed in an ordered queue")
    own = given.visibility_timeout_seconds
    return _Draft(
        place=place,
        deduplication_id=deduplication_key(given),
        message=message,
        delay_seconds=delay_seconds,
        own_delay=not isinstance(given.delay_seconds, UnsetType),
        visibility_seconds=0 if isinstance(own, UnsetType) else own,
    )


def _write(
    core: Core,
    queue: Queue,
    send_id: str,
    drafts: Sequence[_Draft],
    begun_ms: int,
    now_ms: int,
    *,
    whole: bool,
) -> _Outcome:
    """Store one send, unless an earlier try of it did.

    `whole`: an earlier try had the same messages. Else what stands there says which it had; what
    it neither holds nor keeps out is still to be stored.
    """
    places = frozenset(draft.place for draft in drafts)
    earlier = _sent_with_earlier_delay(core, queue, send_id, drafts, begun_ms)
    if earlier is not None:
        met = frozenset(draft.place for draft in drafts if not draft.own_delay)
        return _outcome(earlier, places, met, whole)
    entries = [
        Entry(
            position=draft.place,
            message=draft.message,
            available_ms=now_ms + draft.delay_seconds * 1000,
            visibility_seconds=draft.visibility_seconds,
        )
        for draft in drafts
    ]
    items = items_for(
        queue,
        entries,
        parcel_id=send_id,
        begun_ms=begun_ms,
        now_ms=now_ms,
        take_sequence=lambda partition, count: take_sequence(core, queue.id, partition, count),
    )
    if not queue.attributes.ordered:
        items = under_present_keys(items, now_ms, core.clock.scale)
    reminders = deduplication.reminders(
        queue.id,
        [draft.deduplication_id for draft in drafts],
        stored(send_id, {draft.place: draft.message for draft in drafts}, now_ms),
    )
    if reminders:
        earlier = deduplication.transact(
            core,
            items.all,
            reminders,
            begun_ms=begun_ms,
            now_ms=now_ms,
            whole=whole,
            purged_ms=queue.purged_ms,
        )
    else:
        earlier = store_items(core, queue, items)
    if earlier is None:
        return _Outcome(sent_ms=now_ms, stored=places)
    taken = {_key(item) for item in earlier.items}
    met = frozenset(p for item in items.all if _key(item) in taken for p in read_positions(item))
    return _outcome(earlier, places, met, whole)


def _outcome(
    earlier: Earlier, places: frozenset[int], met: frozenset[int], whole: bool
) -> _Outcome:
    """`met`: the places of messages whose keys are taken by what the earlier try stored."""
    if whole:
        return _Outcome(sent_ms=earlier.sent_ms, stored=places)
    if all(map(is_leftover, earlier.items)):
        raise Unavailable  # it died before it stored anything, and may have had others
    held = frozenset(p for item in earlier.items for p in read_positions(item))
    return _Outcome(sent_ms=earlier.sent_ms, stored=held & places, left_out=met - held)


def _key(item: Item) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["S"]


def _sent_with_earlier_delay(
    core: Core, queue: Queue, send_id: str, drafts: Sequence[_Draft], begun_ms: int
) -> Earlier | None:
    """This very send, where it was stored before the queue's delay changed.

        a client      send (attempt) ──> answer lost ............. the same send again
        the queue     delay 0: stored at the attempt's time ...... delay 5: another key

    Keys hold the delay, so the earlier ones are looked up; only just after such a change.
    """
    if all(draft.own_delay for draft in drafts):
        return None
    pk = partition_key(PARCELS, queue.id, queue.partition_of(send_id))
    for seconds in queue.earlier_delays_of(begun_ms) - {queue.attributes.delay_seconds}:
        key = sort_key(begun_ms + seconds * 1000, send_id)
        item = core.store.get(core.tables.messages, pk, key)
        if item is not None and int(item["t"]["N"]) > queue.purged_ms:
            return Earlier(int(item["t"]["N"]), (item,))
    return None
