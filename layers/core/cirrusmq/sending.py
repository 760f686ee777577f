"""Sending messages to a queue: checks, ids, and the order of writes that loses nothing.

    log record (only where the bodies do not fit in the parcel) ──> parcels ──> answer

A crash before the parcels leaves a log record that nothing points to, and TTL removes it. Where a
queue has receivers, the log record itself delivers, so it goes into one transaction with the
parcels.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cirrusmq import counters, deduplication, limits, ulid
from cirrusmq.attempt import check_attempt
from cirrusmq.core import Core
from cirrusmq.deduplication import Duplicate
from cirrusmq.enqueue import Entry, Shipment, ship
from cirrusmq.errors import BatchTooLarge, CirrusMQError, InvalidParameter, LimitExceeded
from cirrusmq.message import (
    Message,
    MessageInput,
    check_body_size,
    read_attributes,
    read_body,
    read_tags,
)
from cirrusmq.parcel import message_id
from cirrusmq.queue import Queue
from cirrusmq.storage.sequences import take_sequence
from cirrusmq.storage.store import ConditionFailed, Item, TransactionRefused, put_if_absent
from cirrusmq.timestamps import format_time

_Key: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=128, description="a text of 1 to 128 characters")
]


class SendMessage(MessageInput, forbid_unknown_fields=True, frozen=True):
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
    group: _Key | UnsetType = UNSET
    deduplication_id: _Key | UnsetType = UNSET


class SendRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a send."""

    messages: Annotated[
        list[SendMessage], Meta(min_length=1, description="an array of 1 to 16 messages")
    ]
    atomic: bool = True
    attempt: str | UnsetType = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What a sender learns of one message."""

    id: str
    body_md5: str
    sent_ms: int

    def show(self) -> dict[str, Any]:
        """The entry of the answer."""
        return {"id": self.id, "body_md5": self.body_md5, "sent_at": format_time(self.sent_ms)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A checked message of a request."""

    message: Message
    delay_seconds: int
    visibility_seconds: int
    deduplication_id: str | None


def send(core: Core, queue: Queue, request: SendRequest) -> list[Sent | CirrusMQError]:
    """Store the messages; one result for each, in the order sent.

    With `atomic` all are stored or an error is raised. Without, a message that its own size,
    delay or group rules out has its error in the list.
    """
    now_ms = core.now_ms()
    begun_ms = _check_attempt(queue, request, now_ms)
    contents = _read_contents(request.messages)
    results: list[Sent | CirrusMQError | None] = []
    drafts: list[_Draft] = []
    for number, (given, message) in enumerate(zip(request.messages, contents, strict=True)):
        try:
            drafts.append(_draft(queue, given, message, f"messages[{number}]"))
            results.append(None)
        except CirrusMQError as error:
            if request.atomic:
                raise
            results.append(error)
    if drafts:
        if counters.kept(core, queue.id) + len(drafts) > queue.attributes.max_messages:
            raise LimitExceeded(f"the queue keeps at most {queue.attributes.max_messages} messages")
        sent = iter(_store(core, queue, drafts, request, begun_ms, now_ms))
        results = [next(sent) if result is None else result for result in results]
    return [result for result in results if result is not None]


def _check_attempt(queue: Queue, request: SendRequest, now_ms: int) -> int:
    if request.attempt is UNSET:
        return now_ms
    assert isinstance(request.attempt, str)
    if queue.attributes.ordered:
        raise InvalidParameter(
            "attempt", "is refused by ordered queues: give each message a deduplication_id"
        )
    return check_attempt(request.attempt, now_ms)


def _read_contents(given: Sequence[SendMessage]) -> list[Message]:
    if len(given) > limits.BATCH_MESSAGES:
        raise BatchTooLarge(f"a batch has 1 to {limits.BATCH_MESSAGES} messages")
    contents = []
    for number, message in enumerate(given):
        where = f"messages[{number}]"
        contents.append(
            Message(
                body=read_body(message, where),
                attributes=read_attributes(message.attributes, where),
                tags=read_tags(message.tags, where),
                group=None if isinstance(message.group, UnsetType) else message.group,
            )
        )
    total = sum(message.size_bytes for message in contents)
    if total > limits.BATCH_BYTES:
        raise BatchTooLarge(f"the batch has {total} bytes; at most {limits.BATCH_BYTES} are taken")
    return contents


def _draft(queue: Queue, given: SendMessage, message: Message, where: str) -> _Draft:
    attributes = queue.attributes
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
    key = given.deduplication_id
    return _Draft(
        message=message,
        delay_seconds=delay_seconds,
        visibility_seconds=0 if isinstance(own, UnsetType) else own,
        deduplication_id=None if isinstance(key, UnsetType) else key,
    )


def _store(
    core: Core,
    queue: Queue,
    drafts: Sequence[_Draft],
    request: SendRequest,
    begun_ms: int,
    now_ms: int,
) -> list[Sent]:
    send_id = _send_id(core, queue, request, begun_ms)
    if all(draft.deduplication_id is None for draft in drafts):
        sent_ms = _write(core, queue, send_id, drafts, begun_ms, now_ms)
        return [_sent(send_id, number, draft, sent_ms) for number, draft in enumerate(drafts)]
    known: dict[str, Sent] = {}
    while True:
        fresh = _without_duplicates(drafts, known)
        try:
            sent_ms = _write(core, queue, send_id, fresh, begun_ms, now_ms) if fresh else now_ms
        except Duplicate as duplicate:
            known.update(
                (key, Sent(id=found.message_id, body_md5=found.body_md5, sent_ms=found.sent_ms))
                for key, found in duplicate.found.items()
            )
            continue
        break
    stored = iter(_sent(send_id, number, draft, sent_ms) for number, draft in enumerate(fresh))
    results = []
    for draft in drafts:
        key = draft.deduplication_id
        if key is None:
            results.append(next(stored))
            continue
        if key not in known:
            known[key] = next(stored)
        results.append(known[key])
    return results


def _without_duplicates(drafts: Sequence[_Draft], known: dict[str, Sent]) -> list[_Draft]:
    fresh, seen = [], set(known)
    for draft in drafts:
        if draft.deduplication_id is None or draft.deduplication_id not in seen:
            fresh.append(draft)
            seen.add(draft.deduplication_id or "")
    return fresh


def _send_id(core: Core, queue: Queue, request: SendRequest, begun_ms: int) -> str:
    """A ULID; with an `attempt` the same for every repetition of the same call."""
    if isinstance(request.attempt, UnsetType):
        entropy = core.random.getrandbits(8 * ulid.ENTROPY_BYTES).to_bytes(
            ulid.ENTROPY_BYTES, "big"
        )
        return ulid.encode(begun_ms, entropy)
    canonical = msgspec.json.encode(request, order="deterministic")
    digest = hashlib.sha256(f"{queue.account}\n{queue.id}\n".encode() + canonical).digest()
    return ulid.encode(begun_ms, digest[: ulid.ENTROPY_BYTES])


def _sent(send_id: str, number: int, draft: _Draft, sent_ms: int) -> Sent:
    return Sent(id=message_id(send_id, number), body_md5=draft.message.body_md5, sent_ms=sent_ms)


def _write(
    core: Core,
    queue: Queue,
    send_id: str,
    drafts: Sequence[_Draft],
    begun_ms: int,
    now_ms: int,
) -> int:
    """Store one send; answers its `sent_ms`, which is the first one's where this is a repeat."""
    entries = [
        Entry(
            position=number,
            message=draft.message,
            available_ms=now_ms + draft.delay_seconds * 1000,
            visibility_seconds=draft.visibility_seconds,
        )
        for number, draft in enumerate(drafts)
    ]
    shipment = ship(
        queue,
        entries,
        parcel_id=send_id,
        begun_ms=begun_ms,
        now_ms=now_ms,
        take_sequence=lambda partition, count: take_sequence(core, queue.id, partition, count),
    )
    reminders = [
        (
            draft.deduplication_id,
            deduplication.reminder(
                queue.id,
                draft.deduplication_id,
                message_id(send_id, number),
                draft.message.body_md5,
                now_ms,
            ),
        )
        for number, draft in enumerate(drafts)
        if draft.deduplication_id is not None
    ]
    if reminders:
        sent_ms = deduplication.transact(core, queue, shipment, reminders, now_ms)
    else:
        sent_ms = store_shipment(core, queue, shipment, now_ms)
    for item in shipment.parcels:
        core.hints.forget(item["pk"]["S"], item["sk"]["S"])
    return sent_ms


def store_shipment(core: Core, queue: Queue, shipment: Shipment, now_ms: int) -> int:
    """Write a shipment; answers its `sent_ms`, the first one's where it is stored already.

        a client      send ──> put ──> (answer lost)     the same send again ──> put
        the store               stored                                            key taken

    Keys come from the send's id alone, so a key that is taken holds this very send.
    """
    table = core.tables.messages
    logged = queue.log_since_ms is not None
    if shipment.log is not None and not logged:
        with contextlib.suppress(ConditionFailed):  # written by an earlier try of this send
            core.store.put_if_absent(table, shipment.log)
    together = list(shipment.parcels)
    if shipment.log is not None and logged:
        together.append(shipment.log)
    try:
        if len(together) == 1:
            core.store.put_if_absent(table, together[0])
        else:
            core.store.transact([{"Put": put_if_absent(table, item)} for item in together])
    except ConditionFailed as failed:
        return _sent_before(failed.item, now_ms)
    except TransactionRefused as refused:
        return _sent_before(next(iter(refused.failed.values())), now_ms)
    return now_ms


def _sent_before(item: Item | None, now_ms: int) -> int:
    return now_ms if item is None else int(item["t"]["N"])
