"""Calls on messages: sending, receiving, and ending them, hiding them, making dead letters of them.

A handle that ran out, or is another queue's, is no error: the message is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.limits import BATCH_MESSAGES, RECEIPT_CHARACTERS
from cirrusmq.base.shapes import read_values
from cirrusmq.model.message import OF_SDKS
from cirrusmq.model.priority import priority_of
from cirrusmq.model.queue import Queue
from cirrusmq.model.sender import sender_of
from cirrusmq.model.source import Source
from cirrusmq.queues.receivers import source_named
from cirrusmq.receiving.receive_request import Received, ReceiveRequest
from cirrusmq.runtime.core import Core
from cirrusmq.sending.send import send
from cirrusmq.sending.send_request import SendRequest
from cirrusmq_dialects import messages
from cirrusmq_dialects.asking import RECEIVE, SEND
from cirrusmq_dialects.bodies import in_request, shown_body
from cirrusmq_dialects.emq.asking import Asked, Result, integer, shown_name, text
from cirrusmq_dialects.emq.attributes import RECEIVES, native_tag, numbers, receive_number
from cirrusmq_dialects.emq.contents import native, shown_attributes, typed
from cirrusmq_dialects.emq.errors import invalid, of_contract, shown

_HIDE = (0, 43_200)
_LOOKS = 8
"""Looks of a receive by an attribute, of 8 read units each: it has no cursor to go on with."""
Act: TypeAlias = Callable[[Core, Queue, Mapping[str, Any]], messages.Results]
"""Settles messages; the seconds of a visibility change, by receipt, are for that alone."""


def send_message(asked: Asked) -> Result:
    """Sends a message."""
    return _send(asked, [asked.request])[0]


def send_message_batch(asked: Asked) -> Result:
    """Sends up to 16 messages, all of them or none."""
    entries = asked.entries("entryId", BATCH_MESSAGES)
    sent = zip(entries, _send(asked, entries), strict=True)
    done = [{"entryId": entry.entryId, **each} for entry, each in sent]
    return {"successful": done, "failed": []}


def receive_message(asked: Asked) -> list[Result]:
    """Receives up to 16 messages, of a queue or of one of its tags."""
    given = asked.request
    wanted = {"max": RECEIVES[1], **numbers(given)}
    queue = asked.queue(RECEIVE)
    wanted["max"] = min(wanted["max"], receive_number(queue), BATCH_MESSAGES)

    def find() -> Source:
        found = asked.queue(RECEIVE)
        return source_named(asked.core, found, native_tag(found, given.tagName))

    receive = _receive_selected if given.attributeName else messages.receive
    return [_shown(asked, queue, each) for each in receive(asked, find, wanted)]


def delete(asked: Asked) -> Result | None:
    """Ends messages."""
    return _settle(asked, messages.delete)


def hide(asked: Asked) -> Result | None:
    """Hides messages for a time from now on; 0 ends that."""
    return _settle(asked, messages.hide)


def dead(asked: Asked) -> Result | None:
    """Makes dead letters of messages."""
    return _settle(asked, messages.dead_letter)


def _send(asked: Asked, entries: Sequence[Any]) -> list[Result]:
    """Sends messages. Returns the fields of the answers about them."""
    queue = asked.queue(SEND)
    made = [_message(queue, each, asked.request.topic) for each in entries]
    request = read_values({"messages": made}, SendRequest)
    results: Any = send(asked.core, queue, request, asked.caller, OF_SDKS)
    return [
        {
            "messageID": each.id,
            "bodyLength": len(entry.messageBody.encode()),
            "bodyMd5": each.body_md5,
            "sendTimestamp": each.sent_ms,
        }
        for entry, each in zip(entries, results, strict=True)
    ]


def _message(queue: Queue, entry: Any, topic: str | None) -> Result:
    made = native(entry.messageBody, entry.messageAttributes)
    for name, number in numbers(entry).items():
        # A delay of 0 is what an ordered queue has anyway, and it takes no delay at all.
        if number or queue.attributes.delay_seconds:
            made[name] = number
    if topic:
        made["group"] = topic
    return made


def _receive_selected(
    asked: Asked, find: Callable[[], Source], wanted: Mapping[str, Any]
) -> list[Received]:
    """Returns messages with an attribute, from a bounded number of looks; it does not wait."""
    # Few receives choose by an attribute: the others' cold starts do without.
    from cirrusmq.receiving.receive import begin
    from cirrusmq.receiving.selected import receive_where

    core, given = asked.core, asked.request
    value = in_request(typed("attributeValue", given.attributeValue).value)
    asks = {"max": wanted["max"], "where": {"name": given.attributeName, "value": value}}
    for _ in range(_LOOKS):
        request = read_values(asks, ReceiveRequest)
        selected = receive_where(core, begin(core, find, asked.caller, request))
        is_late = asked.call.left_seconds() < 2 * messages.ANSWER_SECONDS
        if selected.messages or selected.after is None or is_late:
            break
        asks["after"] = selected.after
    return selected.messages


def _shown(asked: Asked, queue: Queue, each: Received) -> Result:
    """Returns a received message, and what the service says of it."""
    parcel, index, message = each.parcel, each.index, each.message
    told = {
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
    return {
        "messageID": parcel.message_id(index),
        "receiptHandle": each.receipt,
        "messageBody": shown_body(message),
        "attributes": {name: str(value) for name, value in told.items()},
        "messageAttributes": shown_attributes(message),
    }


def _settle(asked: Asked, act: Act) -> Result | None:
    """Settles the message or the batch of a call, 16 at a time. Returns the results of a batch.

    Everything that can be refused in one is refused before. Raises the refusal of a single one.
    """
    is_batch = hasattr(asked.request, "entries")
    entries = asked.entries("receiptHandle", RECEIVES[1]) if is_batch else [asked.request]
    queue, seconds = asked.queue(RECEIVE), dict[str, Any]()
    for each in entries:
        handle = text("receiptHandle", each.receiptHandle, RECEIPT_CHARACTERS)
        seconds[handle] = each.invisibilitySeconds
        if act is messages.hide and integer("invisibilitySeconds", seconds[handle], _HIDE) is None:
            raise invalid("invisibilitySeconds", "is needed")
    handles, refused = list(seconds), dict[str, CirrusMQError]()
    for first in range(0, len(handles), BATCH_MESSAGES):
        some = {handle: seconds[handle] for handle in handles[first : first + BATCH_MESSAGES]}
        for handle, result in act(asked.core, queue, some).items():
            if isinstance(result, CirrusMQError) and result.code != "ReceiptExpired":
                refused[handle] = result
    if not is_batch:
        for error in refused.values():
            raise error
        return None
    return {
        "successful": [handle for handle in handles if handle not in refused],
        "failed": [
            {"id": handle, "reason": shown(of_contract(error), asked.call.id)}
            for handle, error in refused.items()
        ],
    }
