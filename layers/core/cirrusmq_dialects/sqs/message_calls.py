"""Calls on messages."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.shapes import read_values
from cirrusmq.model import receipt as receipts
from cirrusmq.model.parcel import order_number
from cirrusmq.model.queue import Queue
from cirrusmq.queues.receivers import source_named, source_with_id
from cirrusmq.receiving.receive import Received, ReceiveRequest, begin, take
from cirrusmq.sending.send import SendRequest, send
from cirrusmq.settlement.delete import delete_what_can_be
from cirrusmq.settlement.settle import SourceOf
from cirrusmq.settlement.visibility import VisibilityRequest, change_visibility
from cirrusmq_dialects.sqs import attributes as shapes
from cirrusmq_dialects.sqs.asking import RECEIVE, SEND, Asked
from cirrusmq_dialects.sqs.contents import (
    ONCE,
    TRACE,
    TRACE_HEADER,
    Content,
    attributes_md5,
    md5,
    read_content,
    shown_attributes,
    shown_body,
    to_members,
)
from cirrusmq_dialects.sqs.errors import SqsError, invalid, missing, of_contract
from cirrusmq_dialects.sqs.names import FIFO, arn, shown_name
from cirrusmq_dialects.sqs.reading import Members, entries, integer, needed_text, text, texts

Result: TypeAlias = dict[str, Any]
T = TypeVar("T")
BATCH_BYTES = 1_048_576
_DELAY, _VISIBILITY, _WAIT = (0, 900), (0, 43_200), (0, 20)
_ANSWER_SECONDS = 2
"""Kept back from the call's time, for the last look and the way back."""
_KEY = re.compile(r"[!-~]{1,128}", re.ASCII)
_SYSTEM = frozenset(
    {
        *("All", "SenderId", "SentTimestamp", "ApproximateReceiveCount", TRACE_HEADER),
        *("ApproximateFirstReceiveTimestamp", "SequenceNumber", "MessageDeduplicationId"),
        *("MessageGroupId", "DeadLetterQueueSourceArn"),
    }
)


class _Draft:
    """A message of a request, checked as far as it can be alone."""

    def __init__(self, queue: Queue, members: Members) -> None:
        self.content = content = read_content(members)
        group, once = _key(members, "MessageGroupId"), _key(members, "MessageDeduplicationId")
        delay = integer(members, "DelaySeconds", _DELAY)
        most = queue.attributes.max_message_bytes
        if content.size_bytes > most:
            raise SqsError(
                "InvalidParameterValue",
                "One or more parameters are invalid. Reason: Message must be shorter than"
                f" {most} bytes.",
            )
        self.native = content.native(once)
        _check_attributes(content, self.native.get("attributes", {}))
        if queue.attributes.ordered:
            self._join(queue, group, once, delay)
        elif once is not None:
            raise _not_of_type("MessageDeduplicationId", once)
        elif delay is not None:
            self.native["delay_seconds"] = delay
        if group is not None:
            self.native["group"] = group

    def _join(self, queue: Queue, group: str | None, once: str | None, delay: int | None) -> None:
        """The rules of FIFO queues."""
        if group is None:
            raise missing("MessageGroupId", whole=True)
        if delay:
            raise _not_of_type("DelaySeconds", delay)
        if once is None and shapes.fifo_attribute(queue, "ContentBasedDeduplication") == "true":
            once = _content_id(self.content.body)
        if once is None and shown_name(queue).endswith(FIFO):
            raise SqsError(
                "InvalidParameterValue",
                "The queue should either have ContentBasedDeduplication enabled or"
                " MessageDeduplicationId provided explicitly",
                whole=True,
            )
        if once is not None:
            if shapes.fifo_attribute(queue, "DeduplicationScope") == "messageGroup":
                once = hashlib.sha256(f"{group}\n{once}".encode()).hexdigest()
            self.native["deduplication_id"] = once


def send_message(asked: Asked) -> Result:
    """Send a message."""
    queue = asked.find(SEND)
    draft = _Draft(queue, asked.members)
    request = read_values({"messages": [draft.native]}, SendRequest)
    (sent,) = send(asked.core, queue, request)
    return _sent(draft, sent)


def send_message_batch(asked: Asked) -> Result:
    """Send up to 10 messages, each for itself."""
    queue = asked.find(SEND)
    listed = entries(asked.members, "SendMessageBatchRequestEntry")
    drafts, failed = _read_each(listed, lambda entry: _Draft(queue, entry))
    size = sum(draft.content.size_bytes for draft in drafts.values())
    most = min(BATCH_BYTES, asked.core.settings.batch_bytes)
    if size > most:
        raise SqsError(
            "BatchRequestTooLong",
            f"Batch requests cannot be longer than {most} bytes. You have sent {size} bytes.",
        )
    done: list[Result] = []
    if drafts:
        natives = [draft.native for draft in drafts.values()]
        request = read_values({"messages": natives, "atomic": False}, SendRequest)
        for (name, draft), sent in zip(
            drafts.items(), send(asked.core, queue, request), strict=True
        ):
            if isinstance(sent, CirrusMQError):
                failed.append(_failure(name, of_contract(sent)))
            else:
                done.append({"Id": name, **_sent(draft, sent)})
    return _batch(done, failed)


def receive_message(asked: Asked) -> Result:
    """Receive up to 10 messages."""
    members, core = asked.members, asked.core
    system = _system_names(members)
    named = texts(members, "MessageAttributeNames")
    timeout = integer(members, "VisibilityTimeout", _VISIBILITY)
    wait = integer(members, "WaitTimeSeconds", _WAIT)
    most = integer(members, "MaxNumberOfMessages", (1, 10))
    find = asked.finder(RECEIVE)
    queue = find()
    given: Result = {"max": 1 if most is None else most}
    if wait is not None:
        given["wait_seconds"] = wait
    if timeout is not None:
        given["visibility_timeout_seconds"] = max(1, timeout)
    begun = begin(
        core,
        lambda: source_named(core, find(), None),
        asked.caller,
        read_values(given, ReceiveRequest),
    )
    wanted = begun.wanted
    begun = replace(
        begun, wanted=replace(wanted, answer_bytes=wanted.answer_bytes // asked.answer_share)
    )
    received = take(core, begun, asked.caller, asked.call.left_seconds() - _ANSWER_SECONDS)
    shown = [_shown(asked, queue, each, system, named) for each in received]
    if timeout == 0 and received:
        held = [{"receipt": each.receipt, "visibility_timeout_seconds": 0} for each in received]
        request = read_values({"entries": held}, VisibilityRequest)
        change_visibility(core, request, _source_of(asked, queue))
    return {"Messages": shown} if shown else {}


def delete_message(asked: Asked) -> Result:
    """End a message. It succeeds with a stale handle, too, which ends nothing."""
    queue = asked.find(RECEIVE)
    handle = _handle(asked.members)
    (result,) = delete_what_can_be(asked.core, [handle], _source_of(asked, queue)).values()
    if isinstance(result, CirrusMQError) and result.code != "ReceiptExpired":
        raise result
    return {}


def delete_message_batch(asked: Asked) -> Result:
    """End messages, each for itself."""
    queue = asked.find(RECEIVE)
    listed = entries(asked.members, "DeleteMessageBatchRequestEntry")
    handles, failed = _read_each(listed, _handle)
    results = {}
    if handles:
        found = list(dict.fromkeys(handles.values()))
        results = delete_what_can_be(asked.core, found, _source_of(asked, queue))
    done: list[Result] = []
    for name, handle in handles.items():
        result = results[handle]
        if isinstance(result, CirrusMQError) and result.code != "ReceiptExpired":
            failed.append(_failure(name, of_contract(result)))
        else:
            done.append({"Id": name})
    return _batch(done, failed)


def change_message_visibility(asked: Asked) -> Result:
    """Hide a message for longer or shorter, from now on."""
    queue = asked.find(RECEIVE)
    handle, seconds = _handle(asked.members), _seconds(asked.members)
    (result,) = _hold(asked, queue, {handle: seconds}).values()
    if isinstance(result, CirrusMQError):
        raise _not_held(handle) if result.code == "ReceiptExpired" else result
    return {}


def change_message_visibility_batch(asked: Asked) -> Result:
    """Hide messages for longer or shorter, each for itself."""
    queue = asked.find(RECEIVE)
    listed = entries(asked.members, "ChangeMessageVisibilityBatchRequestEntry")
    seconds, failed = _read_each(listed, _seconds)
    handles, unread = _read_each([entry for entry in listed if entry["Id"] in seconds], _handle)
    results = _hold(asked, queue, {held: seconds[name] for name, held in handles.items()})
    done: list[Result] = []
    for name, handle in handles.items():
        result = results[handle]
        if not isinstance(result, CirrusMQError):
            done.append({"Id": name})
        elif result.code == "ReceiptExpired":
            failed.append(_failure(name, _not_held(handle)))
        else:
            failed.append(_failure(name, of_contract(result)))
    return _batch(done, failed + unread)


def _sent(draft: _Draft, sent: Any) -> Result:
    if isinstance(sent, CirrusMQError):
        raise sent
    # A duplicate is answered the first one's, whose body may be another.
    known = None if "deduplication_id" in draft.native else sent.body_md5
    shown: Result = {"MessageId": sent.id, **draft.content.digests(known)}
    return shown if sent.order is None else {**shown, "SequenceNumber": _digits(sent.order)}


def _shown(
    asked: Asked, queue: Queue, each: Received, system: frozenset[str], named: list[str]
) -> Result:
    body = shown_body(each.message)
    shown: Result = {
        "MessageId": each.parcel.message_id(each.place),
        "ReceiptHandle": each.receipt,
        "MD5OfBody": md5(body.encode()),
        "Body": body,
    }
    told = _told(asked, queue, each) if system else {}
    found = {name: value for name, value in told.items() if name in system or "All" in system}
    if found:
        shown["Attributes"] = found
    attributes = shown_attributes(each.message, named)
    if attributes:
        shown["MD5OfMessageAttributes"] = attributes_md5(attributes)
        shown["MessageAttributes"] = to_members(attributes)
    return shown


def _told(asked: Asked, queue: Queue, each: Received) -> dict[str, str]:
    """What is said of a message beside its own attributes."""
    parcel, place, message = each.parcel, each.place, each.message
    told = {
        "SenderId": queue.account,
        "SentTimestamp": str(parcel.sent_ms),
        "ApproximateReceiveCount": str(parcel.receives[place]),
        "ApproximateFirstReceiveTimestamp": str(parcel.first_received_ms[place]),
    }
    if message.group is not None:
        told["MessageGroupId"] = message.group
    for own, name in ((TRACE, TRACE_HEADER), (ONCE, "MessageDeduplicationId")):
        value = message.attributes.get(own)
        if isinstance(value, str):
            told[name] = value
    if queue.attributes.ordered:
        position = parcel.position(place)
        told["SequenceNumber"] = _digits(order_number(parcel.sort_key, position))
        content_based = shapes.fifo_attribute(queue, "ContentBasedDeduplication") == "true"
        if content_based and "MessageDeduplicationId" not in told:
            told["MessageDeduplicationId"] = _content_id(shown_body(message))
    came = parcel.dead_letter or {}
    if "source_queue" in came:
        name = str(came["source_queue"])
        if queue.attributes.ordered and name.endswith("_fifo"):
            name = name.removesuffix("_fifo") + FIFO
        told["DeadLetterQueueSourceArn"] = arn(asked.region, queue.account, name)
    return told


def _hold(
    asked: Asked, queue: Queue, seconds: Mapping[str, int]
) -> Mapping[str, CirrusMQError | int]:
    if not seconds:
        return {}
    held = [
        {"receipt": handle, "visibility_timeout_seconds": each} for handle, each in seconds.items()
    ]
    request = read_values({"entries": held}, VisibilityRequest)
    return change_visibility(asked.core, request, _source_of(asked, queue))


def _source_of(asked: Asked, queue: Queue) -> SourceOf:
    return lambda source_id: source_with_id(asked.core, queue, source_id)


def _handle(members: Members) -> str:
    """The receipt of a request, or of an entry; ReceiptHandleIsInvalid where it is none of ours."""
    handle = needed_text(members, "ReceiptHandle")
    if len(handle) > limits.RECEIPT_CHARACTERS or receipts.decode(handle) is None:
        raise SqsError(
            "ReceiptHandleIsInvalid", f'The input receipt handle "{handle[:200]}" is not valid.'
        )
    return handle


def _read_each(
    listed: list[Members], read: Callable[[Members], T]
) -> tuple[dict[str, T], list[Result]]:
    """What is read of entries, by their ids, and the failures of those that are refused."""
    found: dict[str, T] = {}
    failed: list[Result] = []
    for entry in listed:
        try:
            found[entry["Id"]] = read(entry)
        except SqsError as error:
            if error.whole:
                raise
            failed.append(_failure(entry["Id"], error))
    return found, failed


def _seconds(members: Members) -> int:
    seconds = integer(members, "VisibilityTimeout", _VISIBILITY)
    if seconds is None:
        raise missing("VisibilityTimeout")
    return seconds


def _system_names(members: Members) -> frozenset[str]:
    names = texts(members, "MessageSystemAttributeNames") + texts(members, "AttributeNames")
    for name in names:
        if name not in _SYSTEM:
            raise SqsError("InvalidAttributeName", f"Unknown Attribute {name[:80]}.")
    return frozenset(names)


def _key(members: Members, name: str) -> str | None:
    value = text(members, name)
    if value is not None and not _KEY.fullmatch(value):
        raise SqsError(
            "InvalidParameterValue",
            f"{name} can only include alphanumeric and punctuation characters. 1 to 128 in length",
        )
    return value


def _check_attributes(content: Content, kept: Mapping[str, Any]) -> None:
    """Of the core's limits those that are below SQS's."""
    if len(kept) > limits.ATTRIBUTES:
        raise SqsError(
            "InvalidParameterValue",
            f"A message has at most {limits.ATTRIBUTES} attributes here; types other than String"
            " and Binary take one, as do a trace header and a deduplication id.",
        )
    if any(len(name) > 64 for name in kept):
        raise SqsError(
            "InvalidParameterValue",
            "Names of message attributes have at most 64 characters here; those other than letters,"
            " digits and underscores count as three.",
        )
    for name, (_, value) in content.attributes.items():
        if len(value.encode() if isinstance(value, str) else value) > limits.ATTRIBUTE_BYTES:
            raise SqsError(
                "InvalidParameterValue",
                f"The value of message attribute {name[:80]} has more than"
                f" {limits.ATTRIBUTE_BYTES:,} bytes, the most here.",
            )
    if any(isinstance(v, str) and len(v.encode()) > limits.ATTRIBUTE_BYTES for v in kept.values()):
        raise SqsError(
            "InvalidParameterValue",
            "The types of the message attributes, or its trace header, are too long for here.",
        )


def _digits(order: int) -> str:
    return f"{order:020d}"


def _content_id(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _not_of_type(name: str, value: object) -> SqsError:
    reason = "The request includes a parameter that is not valid for this queue type."
    return invalid(name, value, reason)


def _not_held(handle: str) -> SqsError:
    reason = "Message does not exist or is not available for visibility timeout change."
    return SqsError(
        "MessageNotInflight",
        f"Value {handle[:200]} for parameter ReceiptHandle is invalid. Reason: {reason}",
    )


def _failure(name: str, error: SqsError) -> Result:
    return {
        "Id": name,
        "SenderFault": error.is_senders,
        "Code": error.query_code,
        "Message": error.message,
    }


def _batch(done: list[Result], failed: list[Result]) -> Result:
    found: Result = {"Successful": done} if done else {}
    return {**found, "Failed": failed} if failed else found
