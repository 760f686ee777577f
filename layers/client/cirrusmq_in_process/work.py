"""The calls of plain queues, on the core's own code: send, receive, delete, visibility.

A queue is plain if a parcel of it is all that a call reads and writes: it is not ordered or fair,
has no priorities, rates, receivers, function or rewind, and its bodies are in their parcels. All
else is left to the service before anything is done.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from cirrusmq.access.keys import Caller
from cirrusmq.base import limits
from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.request_token import check_attempt
from cirrusmq.base.shapes import read_values
from cirrusmq.model.queue import Queue
from cirrusmq.model.receipt import decode
from cirrusmq.model.sender import Onlooker
from cirrusmq.model.source import Source, queue_source
from cirrusmq.queues.queues import get_queue
from cirrusmq.receiving.heads.scan import LeftMessages
from cirrusmq.receiving.receive import receive as take_messages
from cirrusmq.receiving.receive_request import ReceiveRequest
from cirrusmq.runtime.core import Core, LeftToService
from cirrusmq.sending.send import send as store_messages
from cirrusmq.sending.send_request import SendRequest
from cirrusmq.settlement.delete import DeleteRequest, delete_what_can_be
from cirrusmq.settlement.delete import delete as delete_messages
from cirrusmq.settlement.settle import SourceOf
from cirrusmq.settlement.visibility import VisibilityRequest, change_visibility
from cirrusmq_lambda.answers.receipts import ChangedReceipts, DeletedReceipts
from cirrusmq_lambda.answers.received import ReceivedMessage
from cirrusmq_lambda.answers.sent import SentMessage, SentMessages
from cirrusmq_lambda.problems import describe

LONGEST_WAIT_SECONDS = 30.0
Body: TypeAlias = Mapping[str, Any]
Done: TypeAlias = tuple[int, msgspec.Struct]


def send(core: Core, caller: Caller, name: str, body: Body) -> Done:
    """Stores messages, each send in parcels that have their bodies."""
    queue = _plain(core, caller, name)
    request = read_values(body, SendRequest)
    if isinstance(request.attempt, str):
        begun_ms = check_attempt(request.attempt, core.now_ms(), core.clock.scale)
        if core.now_ms() - begun_ms > limits.FRESH_KEY_MS:
            raise LeftToService  # it needs a tombstone under its old key
    for message in request.messages:
        if message.deduplication_id is not msgspec.UNSET:
            raise LeftToService  # its reminder is under another key
        if message.replace is not msgspec.UNSET:
            raise LeftToService  # it cancels a message in the same transaction
        if message.reply is not msgspec.UNSET:
            raise LeftToService  # its parcel has a note that no other one has
    entries = [
        SentMessage(error=describe(each, uuid.uuid4().hex))
        if isinstance(each, CirrusMQError)
        else SentMessage.of(each)
        for each in store_messages(core, queue, request, caller)
    ]
    return 201 if request.atomic else 200, SentMessages(messages=entries)


def delete_first(core: Core, caller: Caller, name: str, receipts: object) -> dict[str, Any]:
    """Deletes what a receive names. Returns the members of its answer; none without receipts."""
    if not receipts:
        return {}
    request = read_values({"receipts": receipts}, DeleteRequest)
    sources = _sources(core, caller, name, request.receipts)
    told: dict[str, Any] = msgspec.to_builtins(
        DeletedReceipts.of(delete_what_can_be(core, request.receipts, sources))
    )
    return told


def receive(core: Core, caller: Caller, name: str, body: Body) -> dict[str, Any]:
    """Claims messages whose bodies are in their parcels."""
    request = read_values(body, ReceiveRequest)
    chosen = (request.receiver, request.group, request.where, request.after)
    if any(each is not msgspec.UNSET for each in chosen):
        raise LeftToService

    def find() -> Source:
        return queue_source(_plain(core, caller, name), core.now_ms())

    limit = (LONGEST_WAIT_SECONDS, limits.LARGEST_ANSWER_BYTES)
    received = take_messages(core, find, caller, request, *limit)
    onlooker = Onlooker(caller.account, caller.account)
    shown = [
        ReceivedMessage.at(each.parcel, each.index, each.message, onlooker, receipt=each.receipt)
        for each in received
    ]
    return {"messages": msgspec.to_builtins(shown)}


def was_left(core: Core) -> bool:
    """Returns True if a receive met messages for the service alone, since this was last asked."""
    return core.memory(LeftMessages).take()


def delete(core: Core, caller: Caller, name: str, body: Body) -> Done:
    """Deletes messages by their receipts."""
    request = read_values(body, DeleteRequest)
    sources = _sources(core, caller, name, request.receipts)
    return 200, DeletedReceipts.of(delete_messages(core, request, sources))


def visibility(core: Core, caller: Caller, name: str, body: Body) -> Done:
    """Changes the ends of leases. A give-back is left to the service."""
    request = read_values(body, VisibilityRequest)
    if any(not entry.visibility_timeout_seconds for entry in request.entries):
        raise LeftToService
    sources = _sources(core, caller, name, [entry.receipt for entry in request.entries])
    return 200, ChangedReceipts.of(change_visibility(core, request, sources))


WORK: dict[str, Callable[[Core, Caller, str, Body], Done]] = {
    "send": send,
    "delete": delete,
    "visibility": visibility,
}


def _plain(core: Core, caller: Caller, name: str) -> Queue:
    """The queue of the caller's account, if a process may call it."""
    queue = get_queue(core, caller.account, name)
    attributes = queue.attributes
    if (
        attributes.ordered
        or attributes.fair
        or attributes.priorities is not None
        or attributes.sender != "account"
        or attributes.send_rate is not None
        or attributes.receive_rate is not None
        or attributes.invoke is not None
        or attributes.rewind_seconds
        or queue.log_since_ms is not None
        or queue.backlog_readers
        or queue.earlier_delays_of(core.now_ms() - limits.ATTEMPT_AGE_MS)
        - {attributes.delay_seconds}
    ):
        raise LeftToService
    return queue


def _sources(core: Core, caller: Caller, name: str, receipts: list[str]) -> SourceOf:
    """The queue as the only source of these receipts."""
    queue = _plain(core, caller, name)
    for text in receipts:
        receipt = decode(text)
        if receipt is None or receipt.source_id != queue.id:
            raise LeftToService
    source = queue_source(queue, core.now_ms())
    return {queue.id: source}.get
