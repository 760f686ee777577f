"""Receiving: new messages, or the messages of a receive whose answer was lost."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from cirrusmq.base import ulid
from cirrusmq.base.sdk_attributes import TRACE_HEADER, said_beside
from cirrusmq.base.shapes import read_values
from cirrusmq.model.parcel import Parcel, order_number, sequence_number
from cirrusmq.model.queue import Queue
from cirrusmq.model.sender import sender_of
from cirrusmq.queues.receivers import source_named
from cirrusmq.receiving.receive import PreparedReceive, begin, take_again, take_what_fits
from cirrusmq.receiving.receive_request import Received, ReceiveRequest
from cirrusmq_dialects.asking import RECEIVE
from cirrusmq_dialects.bodies import shown_body
from cirrusmq_dialects.fifo_names import shown_fifo
from cirrusmq_dialects.messages import ANSWER_SECONDS, hide
from cirrusmq_dialects.sqs import attributes as shapes
from cirrusmq_dialects.sqs.asking import Asked
from cirrusmq_dialects.sqs.contents import (
    attributes_md5,
    content_id,
    md5,
    shown_attributes,
    to_members,
)
from cirrusmq_dialects.sqs.errors import SqsError
from cirrusmq_dialects.sqs.kept_attributes import hides_nothing
from cirrusmq_dialects.sqs.names import arn
from cirrusmq_dialects.sqs.reading import Members, integer, key_text, texts
from cirrusmq_dialects.sqs.settle_calls import VISIBILITY

Result: TypeAlias = dict[str, Any]
_WAIT = (0, 20)
_ATTEMPT_MS = 60_000
"""Two of them are within the age that an attempt of the core may have."""
_SYSTEM = frozenset(
    {
        *("All", "SenderId", "SentTimestamp", "ApproximateReceiveCount", TRACE_HEADER),
        *("ApproximateFirstReceiveTimestamp", "SequenceNumber", "MessageDeduplicationId"),
        *("MessageGroupId", "DeadLetterQueueSourceArn"),
    }
)


def receive_message(asked: Asked) -> Result:
    """Receives up to 10 messages."""
    members = asked.members
    system = _system_names(members)
    named = texts(members, "MessageAttributeNames")
    timeout = integer(members, "VisibilityTimeout", VISIBILITY)
    wait = integer(members, "WaitTimeSeconds", _WAIT)
    limit = integer(members, "MaxNumberOfMessages", (1, 10))
    queue = asked.find(RECEIVE)
    if timeout is None and hides_nothing(queue):
        timeout = 0
    given: Result = {"max": 1 if limit is None else limit}
    if wait is not None:
        given["wait_seconds"] = wait
    if timeout is not None:
        given["visibility_timeout_seconds"] = max(1, timeout)
    received = _received(asked, queue, given, _attempts(asked, queue))
    shown = [_shown(asked, queue, each, system, named) for each in received]
    if timeout == 0 and received:
        hide(asked.core, queue, {each.receipt: 0 for each in received})
    return {"Messages": shown} if shown else {}


def _received(asked: Asked, queue: Queue, given: Result, attempts: Sequence[str]) -> list[Received]:
    """Takes messages, or returns the messages that a receive of an attempt still holds."""
    core, find = asked.core, asked.finder(RECEIVE)

    def begun(**more: str) -> PreparedReceive:
        request = read_values(given | more, ReceiveRequest)
        found = begin(core, lambda: source_named(core, find(), None), asked.caller, request)
        answer_bytes = found.wanted.answer_bytes // asked.answer_share
        return replace(found, wanted=replace(found.wanted, answer_bytes=answer_bytes))

    for attempt in attempts:
        held = take_again(core, begun(attempt=attempt))
        if held:
            return held
    left = asked.call.left_seconds() - ANSWER_SECONDS
    more = {"attempt": attempts[0]} if attempts else {}
    return take_what_fits(core, begun(**more), asked.caller, left)


def _attempts(asked: Asked, queue: Queue) -> list[str]:
    """The core's attempts that a ReceiveRequestAttemptId stands for, the present one first.

    SQS's ids have no time, and the core's must have one that is fresh. So an id stands for one
    attempt in each minute, and a receive looks for what it took in this minute and in the last:

        minute    ──── 1 ────|──── 2 ────|──── 3 ────
        receive          r                              takes as attempt 1
        repeat                  r'                      finds attempt 1
                                             r''        is another receive: attempts 3 and 2
    """
    given = key_text(asked.members, "ReceiveRequestAttemptId")
    if given is None or not queue.attributes.ordered:
        return []
    core = asked.core
    minute_ms = int(_ATTEMPT_MS * core.clock.scale)
    begun_ms = core.now_ms() // minute_ms * minute_ms
    digest = hashlib.sha256(given.encode()).digest()[:10]
    return [ulid.encode(begun_ms - earlier, digest) for earlier in (0, minute_ms)]


def _shown(
    asked: Asked, queue: Queue, each: Received, system: frozenset[str], named: list[str]
) -> Result:
    body = shown_body(each.message)
    notification = _notification(queue, each) if each.parcel.others else None
    body = body if notification is None else notification
    shown: Result = {
        "MessageId": each.parcel.message_id(each.index),
        "ReceiptHandle": each.receipt,
        "MD5OfBody": md5(body.encode()),
        "Body": body,
    }
    told = _told(asked, queue, each) if system else {}
    found = {name: value for name, value in told.items() if name in system or "All" in system}
    if found:
        shown["Attributes"] = found
    attributes = {} if notification else shown_attributes(each.message, named)
    if attributes:
        shown["MD5OfMessageAttributes"] = attributes_md5(attributes)
        shown["MessageAttributes"] = to_members(attributes)
    return shown


def _notification(queue: Queue, each: Received) -> str | None:
    """Returns the text of a message by SNS's default delivery, with its attributes, or None."""
    # Few messages did: the cold starts of others do without.
    from cirrusmq.model.notification import notification_of

    return notification_of(each.parcel, each.index, each.message, queue.account)


def _told(asked: Asked, queue: Queue, each: Received) -> dict[str, str]:
    """Returns the system attributes of a message."""
    parcel, index, message = each.parcel, each.index, each.message
    told = {
        "SenderId": sender_of(message, queue.account).account,
        "SentTimestamp": str(_sent_ms(queue, parcel)),
        "ApproximateReceiveCount": str(parcel.tries(index) + _tries_before(parcel)),
        "ApproximateFirstReceiveTimestamp": str(parcel.first_received_ms[index]),
    }
    if message.group is not None:
        told["MessageGroupId"] = message.group
    told |= said_beside(message.attributes)
    if queue.attributes.ordered:
        position = parcel.position(index)
        told["SequenceNumber"] = sequence_number(order_number(parcel.sort_key, position))
        content_based = shapes.fifo_attribute(queue, "ContentBasedDeduplication") == "true"
        if content_based and "MessageDeduplicationId" not in told:
            told["MessageDeduplicationId"] = content_id(shown_body(message))
    came = parcel.dead_letter or {}
    if "source_queue" in came:
        name = str(came["source_queue"])
        name = shown_fifo(name) if queue.attributes.ordered else name
        told["DeadLetterQueueSourceArn"] = arn(asked.region, queue.account, name)
    return told


def _sent_ms(queue: Queue, parcel: Parcel) -> int:
    """Returns when a message was sent: a dead letter of a standard queue keeps that time."""
    if parcel.dead_letter and not queue.attributes.ordered:
        return min(parcel.sent_ms, ulid.time_of(parcel.send_id))
    return parcel.sent_ms


def _tries_before(parcel: Parcel) -> int:
    """The receives of a dead letter in the queue that it came from."""
    count = (parcel.dead_letter or {}).get("receive_count", 0)
    return count if isinstance(count, int) else 0


def _system_names(members: Members) -> frozenset[str]:
    names = texts(members, "MessageSystemAttributeNames") + texts(members, "AttributeNames")
    for name in names:
        if name not in _SYSTEM:
            raise SqsError("InvalidAttributeName", f"Unknown Attribute {name[:80]}.")
    return frozenset(names)
