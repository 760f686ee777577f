"""Calls with receipts of messages, for queues and pull subscriptions."""

from __future__ import annotations

from cirrusmq.base.limits import REPLY_REQUEST_BYTES
from cirrusmq.base.timestamps import format_time
from cirrusmq.settlement.dead_letter import DeadLetterRequest, dead_letter
from cirrusmq.settlement.delete import DeleteRequest, delete
from cirrusmq.settlement.visibility import (
    GiveBackRequest,
    VisibilityRequest,
    change_visibility,
    give_back,
)
from cirrusmq_lambda.answers.receipts import (
    ChangedReceipts,
    DeletedReceipts,
    GivenBackReceipts,
    Replied,
)
from cirrusmq_lambda.http import Request, Route
from cirrusmq_lambda.receipt_sources import source_of
from cirrusmq_lambda.replies import Ok


def delete_messages(request: Request) -> Ok[DeletedReceipts]:
    """Deletes messages that are done. Raises BatchTooLarge."""
    sources = source_of(request)
    results = delete(request.core, request.body(DeleteRequest), sources)
    return Ok(DeletedReceipts.of(results))


def change_visibilities(request: Request) -> Ok[ChangedReceipts]:
    """Changes the visibility timeout of messages: they are held for longer or shorter. Raises
    BatchTooLarge.
    """
    sources = source_of(request)
    results = change_visibility(request.core, request.body(VisibilityRequest), sources)
    return Ok(ChangedReceipts.of(results))


def give_messages_back(request: Request) -> Ok[GivenBackReceipts]:
    """Gives messages back, so that they can be received again. Raises BatchTooLarge."""
    sources = source_of(request)
    results = give_back(request.core, request.body(GiveBackRequest), sources)
    return Ok(GivenBackReceipts.of(results))


def dead_letter_messages(request: Request) -> Ok[DeletedReceipts]:
    """Moves messages to the dead-letter queue, for good. Raises BatchTooLarge."""
    sources = source_of(request)
    results = dead_letter(request.core, request.body(DeadLetterRequest), sources)
    return Ok(DeletedReceipts.of(results))


def reply_to_message(request: Request) -> Ok[Replied]:
    """Replies to a message that asks for it, and deletes the message. Raises ReceiptExpired,
    ReplyTooLate, Conflict, MessageTooLarge.
    """
    # Few messages ask for a reply: the other calls' cold starts do without.
    from cirrusmq.receiving.replies.answer import ReplyRequest, answer

    sources, message_id = source_of(request), request.path("id")
    body = request.body(ReplyRequest, REPLY_REQUEST_BYTES)
    replied_ms = answer(request.core, message_id, body, sources)
    return Ok(Replied(id=message_id, replied_at=format_time(replied_ms)))


ROUTES: dict[str, Route] = {
    f"POST {holder}/messages/{call}": route
    for holder in ("/queues/{queue}", "/topics/{topic}/subscriptions/{subscription}")
    for call, route in (
        ("delete", delete_messages),
        ("visibility", change_visibilities),
        ("give-back", give_messages_back),
        ("dead-letter", dead_letter_messages),
    )
} | {"POST /queues/{queue}/messages/{id}/reply": reply_to_message}
