"""The events of a function and its answers: batches as SQS's event source mapping has them.

The member `cirrusmq` of a record has the fields of a receive's answer that SQS's shape does not
hold, or not exactly. The client library's `lambda_events` makes a received message of both.

Source: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from cirrusmq.base import sdk_attributes
from cirrusmq.base.sdk_attributes import Typed
from cirrusmq.base.timestamps import format_time
from cirrusmq.model.invoke import EventSource
from cirrusmq.model.parcel import NOTIFICATION, order_number, sequence_number
from cirrusmq.model.reply_note import reply_note
from cirrusmq.model.sender import sender_of
from cirrusmq.model.source import Source
from cirrusmq.receiving.receive_request import Received

_SERVICES: dict[EventSource, str] = {"cirrusmq": "cirrusmq", "aws:sqs": "sqs"}
"""Event source -> service in the ARN of a record."""
TAGS = "TAGS"
"""The message attribute with a message's tags, separated by commas: no other one has this name."""


def event_of(source: Source, batch: Sequence[Received]) -> bytes:
    """Returns the event, as JSON. The attribute `bodyEncoding` marks a body of bytes in base64."""
    origin = {
        "eventSource": _event_source(source),
        "eventSourceARN": source_arn(source),
        "awsRegion": _region(),
    }
    records = [_of_sns(source, each) or (_record(source, each) | origin) for each in batch]
    return msgspec.json.encode({"Records": records})


def source_arn(source: Source) -> str:
    """Returns `arn:aws:cirrusmq:<region>:<account>:<queue>`, or `…:<topic>/<subscription>`.

    The service is `sqs` if the records' event source is SQS's.
    """
    name = source.queue_name
    if source.subscription is not None:
        name = f"{name}/{source.subscription}"
    return f"arn:aws:{_SERVICES[_event_source(source)]}:{_region()}:{source.account}:{name}"


def _event_source(source: Source) -> EventSource:
    return source.invoke.event_source if source.invoke is not None else "cirrusmq"


class InvocationOutcome(NamedTuple):
    """Receipts of the messages that a call of a function leaves in the source."""

    failed: frozenset[str] = frozenset()
    untried: frozenset[str] = frozenset()
    """Messages that it did not begin: this receive of them does not count."""


def outcome_of(answer: Any, batch: Sequence[Received]) -> InvocationOutcome:
    """Reads which messages a function's answer names as failed or not begun.

    `batchItemFailures` names a message by its id, which names all messages with it, or by its
    receipt. With `"tried": false` it was not begun, unless it is named without it as well. No
    answer, or one without `batchItemFailures`: none failed. As in SQS, the whole batch failed if an
    answer cannot be understood, or names a message that was not in the batch.
    """
    if not isinstance(answer, dict) or not answer.get("batchItemFailures"):
        return InvocationOutcome()
    whole = InvocationOutcome(frozenset(each.receipt for each in batch))
    listed = answer["batchItemFailures"]
    if not isinstance(listed, list):
        return whole
    names: dict[str, set[str]] = {}
    for each in batch:
        for name in (each.receipt, each.parcel.message_id(each.index)):
            names.setdefault(name, set()).add(each.receipt)
    told: dict[bool, set[str]] = {True: set(), False: set()}
    for each in listed:
        if not isinstance(each, dict):
            return whole
        name, tried = str(each.get("itemIdentifier")), each.get("tried", True)
        if name not in names or not isinstance(tried, bool):
            return whole
        told[tried] |= names[name]
    return InvocationOutcome(frozenset(told[True]), frozenset(told[False] - told[True]))


def _record(source: Source, received: Received) -> dict[str, Any]:
    parcel, index, message = received.parcel, received.index, received.message
    system = {
        "SenderId": sender_of(message, source.account).account,
        "ApproximateReceiveCount": str(parcel.tries(index)),
        "SentTimestamp": str(parcel.sent_ms),
        "ApproximateFirstReceiveTimestamp": str(parcel.first_received_ms[index]),
    }
    if message.group is not None:
        system["MessageGroupId"] = message.group
    if source.ordered:
        number = order_number(parcel.sort_key, parcel.position(index))
        system["SequenceNumber"] = sequence_number(number)
    system |= sdk_attributes.said_beside(message.attributes)
    body = message.body if isinstance(message.body, str) else _base64(message.body)
    sent = sdk_attributes.read(message.attributes)
    digest, shown = message.body_md5, _notification(source, received)
    if shown is not None:
        body, sent = shown, {}
        digest = hashlib.md5(body.encode(), usedforsecurity=False).hexdigest()
    told = {name: _attribute(typed) for name, typed in sent.items()}
    if message.tags:
        told[TAGS] = _attribute(Typed(sdk_attributes.TEXT, ",".join(message.tags)))
    record = {
        "messageId": parcel.message_id(index),
        "receiptHandle": received.receipt,
        "body": body,
        "attributes": system,
        "messageAttributes": told,
        "md5OfBody": digest,
        "cirrusmq": _state(received),
    }
    if isinstance(message.body, bytes) and shown is None:
        system["bodyEncoding"] = "base64"
    return record


def _of_sns(source: Source, received: Received) -> dict[str, Any] | None:
    """The record of a message for a function that a call of SNS subscribed; None of all others."""
    if not source.text_attributes or NOTIFICATION not in received.parcel.others:
        return None
    # Few functions get such messages: the others' cold starts do without.
    from cirrusmq.model.notification import function_record, notifier_in

    parcel, index = received.parcel, received.index
    notifier = notifier_in(parcel)
    assert notifier is not None
    message = received.message.with_text_of(source.text_attributes)
    return function_record(notifier, source.account, message, parcel.message_id(index))


def _notification(source: Source, received: Received) -> str | None:
    """The message's text if it came by SNS's default delivery; None of all others."""
    if NOTIFICATION not in received.parcel.others:
        return None
    # Few functions get such messages: the others' cold starts do without.
    from cirrusmq.model.notification import notification_of

    parcel, index = received.parcel, received.index
    return notification_of(parcel, index, received.message, source.account)


def _state(received: Received) -> dict[str, Any]:
    """Returns fields of a receive's answer. Tags are a list: in `TAGS` a tag may have a comma."""
    parcel, index = received.parcel, received.index
    state: dict[str, Any] = {
        "tags": received.message.tags,
        "sent_at": format_time(parcel.sent_ms),
        "visible_at": format_time(parcel.visible_ms[index]),
        "expires_at": format_time(parcel.expires_ms),
        "first_received_at": format_time(parcel.first_received_ms[index]),
    }
    asked = reply_note(parcel.others)
    if asked is not None:
        state["reply_by"] = format_time(asked.due_ms)
    noted = parcel.dead_letter
    if noted:
        state["dead_letter"] = noted | {"dead_at": format_time(noted["dead_at"])}
    return state


def _attribute(typed: Typed) -> dict[str, Any]:
    empty: dict[str, Any] = {"stringListValues": [], "binaryListValues": []}
    if isinstance(typed.value, str):
        return {"stringValue": typed.value, "dataType": typed.type, **empty}
    return {"binaryValue": _base64(typed.value), "dataType": typed.type, **empty}


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _region() -> str:
    return os.environ.get("AWS_REGION", "")
