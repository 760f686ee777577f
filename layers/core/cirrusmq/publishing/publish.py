"""Publishing: one log record, with its chosen subscriptions; fan-out does the rest.

Large messages are in an object, and the record, as the stream brings it to all its readers, has
everything of them but their bodies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from cirrusmq.access.keys import Caller
from cirrusmq.access.rate_limit import count_copies
from cirrusmq.base import limits
from cirrusmq.base.errors import CirrusMQError, InvalidParameter
from cirrusmq.base.request_token import check_attempt
from cirrusmq.base.shapes import integer
from cirrusmq.filters.routing import check_routing_key
from cirrusmq.model.message import (
    CONTRACT,
    ContentLimits,
    Message,
    check_answer_size,
    check_event_size,
    check_size,
    fits_any_event,
)
from cirrusmq.model.parcel import message_id
from cirrusmq.model.queue import Queue
from cirrusmq.model.sender import with_sender
from cirrusmq.model.topic import Subscription, Topic
from cirrusmq.publishing.log_records import (
    is_in_order,
    make_log_record,
    moved_to,
    new_id,
    settle_id,
)
from cirrusmq.publishing.recipients import (
    Draft,
    WantedDelay,
    any_ordered,
    confirmed_subscriptions,
    endpoints,
    goes_to_functions_alone,
    make_draft,
    with_delay,
)
from cirrusmq.publishing.records import Published, TopicRecord, read_record
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed
from cirrusmq.sending import deduplication
from cirrusmq.sending.deduplication import PreviousAttempt
from cirrusmq.sending.request_messages import (
    NO_TRACE,
    BatchMessage,
    deduplication_key,
    read_contents,
    repeatable_send_ids,
    store_once,
    stored,
)
from cirrusmq.storage.bodies.write import place_messages

DEFAULT_GROUP = "default"
"""The producers of a half message that names none."""


class PublishMessage(BatchMessage, forbid_unknown_fields=True, frozen=True):
    """One message of a publish."""

    routing_key: str | UnsetType = UNSET
    delay_seconds: Annotated[int, integer(limits.PUBLISH_DELAY_SECONDS, " seconds")] | UnsetType = (
        UNSET
    )
    deliver_at: (
        Annotated[
            str | int | float,
            Meta(description="an RFC 3339 time, or seconds since the beginning of 1970 in UTC"),
        ]
        | UnsetType
    ) = UNSET

    @property
    def due(self) -> WantedDelay | None:
        """When it is to be delivered, or None if that is not given."""
        if self.delay_seconds is UNSET and self.deliver_at is UNSET:
            return None
        return WantedDelay(self.delay_seconds, self.deliver_at)


class TransactionInput(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How a publish that is to be committed or rolled back later is asked about."""

    check_after_seconds: Annotated[int, integer(limits.CHECK_AFTER_SECONDS, " seconds")] = (
        limits.CHECK_AFTER_SECONDS_DEFAULT
    )
    max_checks: Annotated[int, integer(limits.CHECKS)] = limits.CHECKS_DEFAULT
    group: str = DEFAULT_GROUP


class PublishRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a publish."""

    messages: Annotated[
        list[PublishMessage], Meta(min_length=1, description="an array of 1 to 16 messages")
    ]
    atomic: bool = True
    attempt: str | UnsetType = UNSET
    transaction: TransactionInput | UnsetType = UNSET


class _Publish(msgspec.Struct, frozen=True, kw_only=True):
    """A publish on its way: into which topic's log, under which id."""

    core: Core
    topic: Topic
    queues: Mapping[str, Queue]
    """The queues that it is delivered to, by the ids of their subscriptions."""
    in_order: bool
    contents: Sequence[Message]
    """All messages of the request."""
    id: str
    begun_ms: int
    now_ms: int


def publish(
    core: Core,
    topic: Topic,
    caller: Caller,
    request: PublishRequest,
    limit: ContentLimits = CONTRACT,
    trace: Mapping[str, str] = NO_TRACE,
) -> list[Published | CirrusMQError]:
    """Publishes the messages. Returns a result for each, in the order given.

    caller: who sends them, and whose account's rate the copies count against. `limit`: of each
    message beside its body. `trace`: the trace context of messages that have none.
    """
    now_ms = begun_ms = core.now_ms()
    if not isinstance(request.attempt, UnsetType):
        begun_ms = check_attempt(request.attempt, now_ms, core.clock.scale)
    contents = with_sender(
        read_contents(request.messages, core.settings.batch_bytes, limit, trace),
        caller,
        topic.account,
        topic.attributes.sender,
    )
    subscriptions = confirmed_subscriptions(core, topic)
    drafts, refused = check_messages(core, topic, request, contents, subscriptions)
    queues = endpoints(core, drafts.values())
    in_order = any_ordered(drafts.values(), queues, begun_ms)
    publishing = _Publish(
        core=core,
        topic=topic,
        queues=queues,
        in_order=in_order,
        contents=contents,
        id=_publish_id(core, topic, request, begun_ms, drafts, in_order=in_order),
        begun_ms=begun_ms,
        now_ms=now_ms,
    )
    keys = {
        index: draft.deduplication_id if draft.subscriptions else None
        for index, draft in drafts.items()
    }
    fresh, duplicates = store_once(keys, partial(_store, publishing, drafts))
    count_copies(core, caller.account, sum(len(drafts[index].subscriptions) for index in fresh))
    results: dict[int, Published | CirrusMQError] = {**refused, **fresh}
    for index, first in duplicates.items():
        matched = len(drafts[index].subscriptions)
        results[index] = Published(id=first.id, matched=matched, sent_ms=first.sent_ms)
    return [results[index] for index in range(len(request.messages))]


def check_messages(
    core: Core,
    topic: Topic,
    request: PublishRequest,
    contents: Sequence[Message],
    subscriptions: Sequence[Subscription],
) -> tuple[dict[int, Draft], dict[int, CirrusMQError]]:
    """Returns the messages by their indexes in the request, and without `atomic` others' errors.

    `subscriptions`: get the messages that their filters let pass.
    """
    routing_keys = read_routing_keys(topic, request)
    drafts: dict[int, Draft] = {}
    refused: dict[int, CirrusMQError] = {}
    for index, (message, routing_key) in enumerate(zip(contents, routing_keys, strict=True)):
        given, where = request.messages[index], f"messages[{index}]"
        try:
            check_size(message, topic.attributes.max_message_bytes, where)
            check_answer_size(message, where)
            key = deduplication_key(given)
            draft = make_draft(topic, subscriptions, message, routing_key, key, message.body)
            if not fits_any_event(message) and goes_to_functions_alone(core, draft):
                check_event_size(message, where, "each function that gets it")
            drafts[index] = with_delay(core, draft, given.due, where)
        except CirrusMQError as error:
            if request.atomic:
                raise
            refused[index] = error
    return drafts, refused


def read_routing_keys(topic: Topic, request: PublishRequest) -> list[str]:
    """Returns the routing key of each message, checked; empty if it has none."""
    return [
        _routing_key(topic, given, f"messages[{index}]")
        for index, given in enumerate(request.messages)
    ]


def _routing_key(topic: Topic, given: PublishMessage, where: str) -> str:
    if isinstance(given.routing_key, UnsetType):
        return ""
    if topic.attributes.filter == "tags":
        raise InvalidParameter(
            f"{where}.routing_key", "the topic filters by tags; create it with filter=routing_key"
        )
    return check_routing_key(given.routing_key, f"{where}.routing_key")


def _publish_id(
    core: Core,
    topic: Topic,
    request: PublishRequest,
    begun_ms: int,
    drafts: Mapping[int, Draft],
    *,
    in_order: bool,
) -> str:
    if isinstance(request.attempt, UnsetType):
        return new_id(core, topic, begun_ms, in_order=in_order)
    ids = repeatable_send_ids(topic.account, topic.id, request, begun_ms)
    begun_id = next(filter(partial(is_in_order, topic), ids) if in_order else ids)
    if not any(draft.subscriptions for draft in drafts.values()):
        return begun_id  # nothing is stored
    return settle_id(core, topic, begun_id, in_order=in_order)


def _store(
    publishing: _Publish, drafts: Mapping[int, Draft], indexes: Sequence[int]
) -> dict[int, Published]:
    """Stores the messages at `indexes` that any subscription gets, unless an earlier try did."""
    core, topic = publishing.core, publishing.topic
    matched = {index: drafts[index] for index in indexes if drafts[index].subscriptions}
    earlier = _write(publishing, matched) if matched else None
    while earlier is not None and earlier.items:
        later_id = moved_to(earlier.items[0])
        if later_id is None:
            break
        # A repetition took this try for dead, and settled for all under which id they are.
        settled_id = settle_id(core, topic, later_id, in_order=publishing.in_order)
        publishing = replace(publishing, id=settled_id, now_ms=core.now_ms())
        earlier = _write(publishing, matched)
    counts = {index: len(draft.subscriptions) for index, draft in matched.items()}
    if earlier is not None and earlier.items:
        decided = _counts(read_record(earlier.items[0]))
        counts = {index: decided.get(index, 0) for index in matched}
    sent_ms = publishing.now_ms if earlier is None else earlier.sent_ms
    return {
        index: Published(
            id=message_id(publishing.id, index),
            matched=counts.get(index, 0),
            sent_ms=sent_ms if index in matched else publishing.now_ms,
        )
        for index in indexes
    }


def _counts(record: TopicRecord) -> dict[int, int]:
    """For each message of a stored record, by its index in the call, how many subscriptions get it.

    That was decided when it was stored: a subscription made since gets nothing by a repetition.
    """
    return {
        position: sum(index in delivery.indexes for delivery in record.header.deliveries)
        for index, position in enumerate(record.positions)
    }


def _write(publishing: _Publish, drafts: Mapping[int, Draft]) -> PreviousAttempt | None:
    """Stores messages, given by their indexes in the call, unless an earlier try of it did."""
    core, now_ms = publishing.core, publishing.now_ms
    place = partial(place_messages, core, publishing.id, publishing.contents)
    record = make_log_record(
        core,
        publishing.topic,
        drafts,
        publishing.queues,
        send_id=publishing.id,
        now_ms=now_ms,
        whole=len(drafts) == len(publishing.contents),
        place=place,
    )
    reminders = deduplication.reminders(
        publishing.topic.id,
        {place: draft.deduplication_id for place, draft in drafts.items()},
        stored(publishing.id, {place: draft.message for place, draft in drafts.items()}, now_ms),
    )
    if reminders:
        return deduplication.transact(
            core, [record], reminders, begun_ms=publishing.begun_ms, now_ms=now_ms
        )
    try:
        core.store.put_if_absent(core.tables.messages, record)
    except ConditionFailed as failed:  # the same key: an earlier try of this publish
        if failed.item is None:
            return PreviousAttempt(now_ms, ())
        return PreviousAttempt(int(failed.item["t"]["N"]), (failed.item,))
    return None
