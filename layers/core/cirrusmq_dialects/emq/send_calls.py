"""Calls that send messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cirrusmq.base.limits import BATCH_MESSAGES
from cirrusmq.base.shapes import read_values
from cirrusmq.model.message import OF_SDKS
from cirrusmq.model.queue import Queue
from cirrusmq.sending.send import send
from cirrusmq.sending.send_request import SendRequest
from cirrusmq_dialects.emq.asking import SEND, Asked, integer
from cirrusmq_dialects.emq.attributes import LEVELS
from cirrusmq_dialects.emq.contents import native
from cirrusmq_dialects.emq.structs import of

_DELAY, _LEASE = (0, 900), (2, 43_200)


def send_message(asked: Asked) -> Any:
    """Sends a message."""
    ((message_id, length, md5, sent_ms),) = _send(asked, [asked.request])
    return of.Sent(messageID=message_id, bodyLength=length, bodyMd5=md5, sendTimestamp=sent_ms)


def send_message_batch(asked: Asked) -> Any:
    """Sends up to 16 messages, all of them or none."""
    entries = asked.entries("entryId", BATCH_MESSAGES)
    sent = [
        of.SentEntry(
            entryId=entry.entryId,
            messageID=message_id,
            bodyLength=length,
            bodyMd5=md5,
            sendTimestamp=at,
        )
        for entry, (message_id, length, md5, at) in zip(entries, _send(asked, entries), strict=True)
    ]
    return of.SentBatch(successful=sent, failed=[])


def _send(asked: Asked, entries: Sequence[Any]) -> list[tuple[str, int, str, int]]:
    """Sends messages. Returns of each its id, its body's length and MD5, and its time in ms."""
    queue = asked.queue(SEND)
    messages = [_message(queue, each, asked.request.topic) for each in entries]
    request = read_values({"messages": messages}, SendRequest)
    results: Any = send(asked.core, queue, request, asked.caller, OF_SDKS)
    return [
        (each.id, len(entry.messageBody.encode()), each.body_md5, each.sent_ms)
        for entry, each in zip(entries, results, strict=True)
    ]


def _message(queue: Queue, entry: Any, topic: str | None) -> dict[str, Any]:
    made = native(entry.messageBody, entry.messageAttributes)
    delay = integer("delaySeconds", entry.delaySeconds, _DELAY)
    # 0 is what an ordered queue has anyway, and it takes no delay at all.
    if delay or (delay is not None and queue.attributes.delay_seconds):
        made["delay_seconds"] = delay
    lease = integer("invisibilitySeconds", entry.invisibilitySeconds, _LEASE)
    if lease is not None:
        made["visibility_timeout_seconds"] = lease
    level = integer("priority", entry.priority, (1, LEVELS))
    if level is not None:
        made["priority"] = level
    if topic:
        made["group"] = topic
    return made
