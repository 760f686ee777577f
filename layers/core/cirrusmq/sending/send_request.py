"""The request of a send, and the checks of its messages by their queue's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType, structs

from cirrusmq.base import limits
from cirrusmq.base.errors import CirrusMQError, InvalidParameter
from cirrusmq.base.request_token import check_attempt
from cirrusmq.base.shapes import integer
from cirrusmq.model.message import Message, check_answer_size, check_event_size, check_size
from cirrusmq.model.priority import with_priority
from cirrusmq.model.queue import Queue, QueueAttributes
from cirrusmq.sending.asking import AskedReply, check_asking
from cirrusmq.sending.request_messages import BatchMessage, Key, deduplication_key

if TYPE_CHECKING:
    from cirrusmq.sending.replacing.rules import Replacement


class SendMessage(BatchMessage, forbid_unknown_fields=True, frozen=True):
    """One message of a send."""

    delay_seconds: Annotated[int, integer(limits.DELAY_SECONDS, " seconds")] | UnsetType = UNSET
    priority: Annotated[int, integer((1, limits.PRIORITIES[1]))] | UnsetType = UNSET
    replace: Key | UnsetType = UNSET
    replace_within_seconds: Annotated[int, integer((1, limits.DELAY_SECONDS[1]))] | UnsetType = (
        UNSET
    )
    reply: AskedReply | UnsetType = UNSET
    visibility_timeout_seconds: (
        Annotated[int, integer(limits.VISIBILITY_SECONDS, " seconds")] | UnsetType
    ) = UNSET


class SendRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a send."""

    messages: Annotated[
        list[SendMessage], Meta(min_length=1, description="an array of 1 to 16 messages")
    ]
    atomic: bool = True
    attempt: str | UnsetType = UNSET


class SendDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A checked message of a request."""

    deduplication_id: str | None
    message: Message
    delay_seconds: int
    own_delay: bool
    visibility_seconds: int
    replacement: Replacement | None = None
    asked: AskedReply | None = None


def check_send_attempt(queue: Queue, request: SendRequest, now_ms: int, scale: float) -> int:
    """Returns the time at which a send began: now, or the time in its attempt."""
    if request.attempt is UNSET:
        return now_ms
    assert isinstance(request.attempt, str)
    if queue.attributes.ordered:
        raise InvalidParameter(
            "attempt", "is not allowed with an ordered queue: give each message a deduplication_id"
        )
    return check_attempt(request.attempt, now_ms, scale)


def with_priorities(request: SendRequest, contents: Sequence[Message]) -> Sequence[Message]:
    """Returns the contents of a request, each with its priority if it has one."""
    return [
        message if isinstance(given.priority, UnsetType) else with_priority(message, given.priority)
        for given, message in zip(request.messages, contents, strict=True)
    ]


def check_messages(
    queue: Queue, request: SendRequest, contents: Sequence[Message]
) -> tuple[dict[int, SendDraft], dict[int, CirrusMQError]]:
    """Returns the messages by their indexes; without `atomic`, the errors of the others, too."""
    drafts: dict[int, SendDraft] = {}
    refused: dict[int, CirrusMQError] = {}
    for index, (given, message) in enumerate(zip(request.messages, contents, strict=True)):
        try:
            where = f"messages[{index}]"
            draft = check_message(queue, given, message, where)
            if draft.asked is not None:
                replaces = not isinstance(given.replace, UnsetType)
                count = len(request.messages)
                check_asking(queue, draft.asked, count, draft.delay_seconds, replaces=replaces)
            drafts[index] = _with_replacement(queue, request, given, draft)
        except CirrusMQError as error:
            if request.atomic:
                raise
            refused[index] = error
    return drafts, refused


def check_message(queue: Queue, given: SendMessage, message: Message, where: str) -> SendDraft:
    """Returns a message of a request, checked by its queue's rules. `where`: its place there."""
    attributes = queue.attributes
    check_size(message, attributes.max_message_bytes, where)
    check_answer_size(message, where)
    if attributes.invoke is not None:
        check_event_size(message, where)
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
    _check_priority(attributes, given, where)
    if attributes.ordered and message.group is None:
        raise InvalidParameter(f"{where}.group", "is needed in an ordered queue")
    own = given.visibility_timeout_seconds
    asked = None if isinstance(given.reply, UnsetType) else given.reply
    return SendDraft(
        deduplication_id=deduplication_key(given),
        message=message,
        delay_seconds=delay_seconds,
        own_delay=not isinstance(given.delay_seconds, UnsetType),
        visibility_seconds=0 if isinstance(own, UnsetType) else own,
        asked=asked,
    )


def _with_replacement(
    queue: Queue, request: SendRequest, given: SendMessage, draft: SendDraft
) -> SendDraft:
    within = given.replace_within_seconds
    if isinstance(given.replace, UnsetType):
        if isinstance(within, UnsetType):
            return draft
        raise InvalidParameter("messages[0].replace_within_seconds", "needs replace beside it")
    # Few messages replace others: the cold starts of other sends do without.
    from cirrusmq.sending.replacing.rules import Replacement, check_replacement

    asked = Replacement(
        key=given.replace,
        within_seconds=None if isinstance(within, UnsetType) else within,
        repeatable=not isinstance(request.attempt, UnsetType),
    )
    deduplicated = draft.deduplication_id is not None
    count = len(request.messages)
    check_replacement(queue, asked, count, draft.delay_seconds, deduplicated=deduplicated)
    return structs.replace(draft, replacement=asked)


def _check_priority(attributes: QueueAttributes, given: SendMessage, where: str) -> None:
    if isinstance(given.priority, UnsetType):
        return
    if attributes.priorities is None:
        reason = "is allowed only in a queue that was created with priorities"
        raise InvalidParameter(f"{where}.priority", reason)
    if given.priority > attributes.priorities:
        raise InvalidParameter(
            f"{where}.priority", f"must be an integer from 1 to {attributes.priorities}"
        )
