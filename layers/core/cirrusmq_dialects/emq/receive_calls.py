"""Receiving messages, of a queue or of one of its tags."""

from __future__ import annotations

import base64
from typing import Any

from cirrusmq.base.limits import BATCH_MESSAGES
from cirrusmq.base.shapes import read_values
from cirrusmq.model.priority import priority_of
from cirrusmq.model.queue import Queue
from cirrusmq.model.sender import sender_of
from cirrusmq.model.source import Source
from cirrusmq.receiving.receive import begin, take_what_fits
from cirrusmq.receiving.receive_request import Received, ReceiveRequest
from cirrusmq_dialects.emq.asking import RECEIVE, Asked, integer, shown_name
from cirrusmq_dialects.emq.attributes import RECEIVES, RECEIVES_DEFAULT, receive_number
from cirrusmq_dialects.emq.contents import shown_attributes, shown_body, typed
from cirrusmq_dialects.emq.structs import of
from cirrusmq_dialects.emq.tag_calls import source_of_tag

_WAIT = (0, 20)
_ANSWER_SECONDS = 2
"""Seconds of the call's time that are left for the last scan and the answer."""
_LOOKS = 8
"""Looks of a receive by an attribute, of 8 read units each: it has no cursor to go on with."""


def receive_message(asked: Asked) -> Any:
    """Receives up to 16 messages."""
    given = asked.request
    limit = integer("maxReceiveMessageNumber", given.maxReceiveMessageNumber, RECEIVES)
    wait = integer("maxReceiveMessageWaitSeconds", given.maxReceiveMessageWaitSeconds, _WAIT)
    queue = asked.queue(RECEIVE)
    wanted: dict[str, Any] = {
        "max": min(limit or RECEIVES_DEFAULT, receive_number(queue), BATCH_MESSAGES)
    }

    def find() -> Source:
        held: Source = source_of_tag(asked, asked.queue(RECEIVE), given.tagName)
        return held

    if given.attributeName:
        received = _selected(asked, find, wanted)
    else:
        if wait is not None:
            wanted["wait_seconds"] = wait
        begun = begin(asked.core, find, asked.caller, read_values(wanted, ReceiveRequest))
        left = asked.call.left_seconds() - _ANSWER_SECONDS
        received = take_what_fits(asked.core, begun, asked.caller, left)
    return [_shown(asked, queue, each) for each in received]


def _selected(asked: Asked, find: Any, wanted: dict[str, Any]) -> list[Received]:
    """Returns messages with an attribute, from a bounded number of looks; it does not wait."""
    # Few receives choose by an attribute: the others' cold starts do without.
    from cirrusmq.receiving.selected import receive_where

    given = asked.request
    value = typed("attributeValue", given.attributeValue or of.MessageAttribute()).value
    told = value if isinstance(value, str) else {"base64": base64.b64encode(value).decode()}
    wanted["where"] = {"name": given.attributeName, "value": told}
    for _ in range(_LOOKS):
        request = read_values(wanted, ReceiveRequest)
        selected = receive_where(asked.core, begin(asked.core, find, asked.caller, request))
        if selected.messages or selected.seen_all or selected.after is None:
            return selected.messages
        if asked.call.left_seconds() < 2 * _ANSWER_SECONDS:
            break
        wanted["after"] = selected.after
    return []


def _shown(asked: Asked, queue: Queue, each: Received) -> Any:
    return of.Received(
        messageID=each.parcel.message_id(each.index),
        receiptHandle=each.receipt,
        messageBody=shown_body(each.message),
        attributes=_told(asked, queue, each),
        messageAttributes=shown_attributes(each.message),
    )


def _told(asked: Asked, queue: Queue, each: Received) -> dict[str, str]:
    """Returns what the service says of a message, in texts."""
    parcel, index, message = each.parcel, each.index, each.message
    told: dict[str, Any] = {
        "senderId": sender_of(message, queue.account).account,
        "messageLength": len(message.body_bytes),
        "md5OfBody": message.body_md5,
        "sendTimestamp": parcel.sent_ms,
        "receiveTimestamp": asked.core.now_ms(),
        "firstReceiveTimestamp": parcel.first_received_ms[index],
        "receiveCount": parcel.tries(index),
        "priority": priority_of(message),
    }
    came = parcel.dead_letter or {}
    if "source_queue" in came:
        told |= {
            "sourceQueueName": shown_name(queue, str(came["source_queue"])),
            "sourceTag": came.get("receiver", ""),
            "deadTimestamp": came.get("dead_at", ""),
            "originalMessageID": parcel.message_id(index),
            "originalReceiveCount": came.get("receive_count", ""),
        }
    return {name: str(value) for name, value in told.items()}
