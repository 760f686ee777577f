"""Preparing a half message: what a publish stores that is committed or rolled back later.

    bucket, if large ──> mark ──> half message ──> answer: its handle

A crash before the half message leaves a mark that names none. A repetition with the same attempt
finds the half message of the first one: it is kept for longer than an attempt is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UnsetType

from cirrusmq.access.keys import Caller
from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidParameter, Unavailable
from cirrusmq.base.names import PRODUCERS_NAME, check_name
from cirrusmq.base.request_token import check_attempt
from cirrusmq.model.message import CONTRACT, ContentLimits, Message, check_size, pack
from cirrusmq.model.sender import with_sender
from cirrusmq.model.topic import Topic
from cirrusmq.publishing.half_messages.half import Half, Terms, first_due_ms, half_partition
from cirrusmq.publishing.half_messages.items import (
    Producers,
    mark_of,
    note_producers,
    put_half,
    put_mark,
    read_half,
)
from cirrusmq.publishing.publish import PublishRequest, TransactionInput, read_routing_keys
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed
from cirrusmq.sending.request_messages import (
    NO_TRACE,
    deduplication_key,
    new_send_id,
    read_contents,
    repeatable_send_ids,
)
from cirrusmq.storage.bodies.write import place_messages


def prepare(
    core: Core,
    topic: Topic,
    caller: Caller,
    request: PublishRequest,
    transaction: TransactionInput,
    limit: ContentLimits = CONTRACT,
    trace: Mapping[str, str] = NO_TRACE,
) -> Half:
    """Stores all messages of a caller's publish, seen by nobody before their commit.

    `limit`: of each message beside its body. `trace`: the trace context of messages without one.
    """
    now_ms = begun_ms = core.now_ms()
    if not request.atomic:
        raise InvalidParameter("atomic", "must be true with transaction: it is one decision")
    for index, given in enumerate(request.messages):
        if given.due is not None:
            name = f"messages[{index}].{given.due.parameter}"
            raise InvalidParameter(name, "is not allowed with transaction")
    if not isinstance(request.attempt, UnsetType):
        begun_ms = check_attempt(request.attempt, now_ms, core.clock.scale)
    # A check gets all of them in one answer.
    plain = read_contents(request.messages, limits.TABLE_BATCH_BYTES, limit, trace)
    account = caller.account
    contents = with_sender(plain, caller, topic.account, topic.attributes.sender)
    terms = _read_terms(topic, account, request, transaction)
    for index, message in enumerate(contents):
        check_size(message, topic.attributes.max_message_bytes, f"messages[{index}]")
    half = _place(
        core, topic, _half_id(core, topic, account, request, begun_ms), terms, contents, now_ms
    )
    note_producers(core, Producers(topic.id, terms.producers, topic.attributes.partitions), now_ms)
    put_mark(core, mark_of(half))
    try:
        put_half(core, half)
    except ConditionFailed as failed:  # an earlier try of this call
        if failed.item is None:
            raise Unavailable from failed
        return read_half(failed.item)
    return half


def _read_terms(
    topic: Topic, account: str, request: PublishRequest, transaction: TransactionInput
) -> Terms:
    return Terms(
        account=account,
        group=check_name("transaction.group", transaction.group, PRODUCERS_NAME),
        check_after_seconds=transaction.check_after_seconds,
        max_checks=transaction.max_checks,
        routing_keys=read_routing_keys(topic, request),
        deduplication_ids=[deduplication_key(each) for each in request.messages],
    )


def _half_id(core: Core, topic: Topic, account: str, request: PublishRequest, begun_ms: int) -> str:
    if isinstance(request.attempt, UnsetType):
        return new_send_id(core, begun_ms)
    return next(repeatable_send_ids(account, topic.id, request, begun_ms))


def _place(
    core: Core, topic: Topic, half_id: str, terms: Terms, contents: Sequence[Message], now_ms: int
) -> Half:
    """Returns the half message, with its object in the bucket if it is large."""
    placed = place_messages(core, half_id, contents, limits.HALF_LIFE_MS)
    packed = None if placed.days else placed.packed or pack(contents)
    return Half(
        topic_id=topic.id,
        partition=half_partition(topic, half_id),
        id=half_id,
        state="prepared",
        prepared_ms=now_ms,
        until_ms=now_ms + limits.HALF_LIFE_MS,
        due_ms=first_due_ms(now_ms, terms),
        checks=0,
        terms=terms,
        messages=dict(enumerate(contents)),
        packed=packed,
        object_days=placed.days,
    )
