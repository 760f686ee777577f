"""Calls that send messages."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, TypeAlias

from cirrusmq.base import limits
from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.names import FIFO
from cirrusmq.base.shapes import read_values
from cirrusmq.model.message import OF_SDKS
from cirrusmq.model.parcel import sequence_number
from cirrusmq.model.queue import Queue
from cirrusmq.sending.send import send
from cirrusmq.sending.send_request import SendRequest
from cirrusmq_dialects.asking import SEND
from cirrusmq_dialects.sqs import attributes as shapes
from cirrusmq_dialects.sqs.asking import Asked
from cirrusmq_dialects.sqs.batches import batch, failure, read_each
from cirrusmq_dialects.sqs.contents import (
    content_id,
    read_content,
)
from cirrusmq_dialects.sqs.errors import SqsError, invalid, missing, of_contract
from cirrusmq_dialects.sqs.names import shown_name
from cirrusmq_dialects.sqs.reading import Members, entries, integer, key_text
from cirrusmq_dialects.trace_headers import read_trace

Result: TypeAlias = dict[str, Any]
BATCH_BYTES = 1_048_576
_DELAY = (0, 900)


class _Draft:
    """A message of a request, checked as far as it can be alone."""

    def __init__(self, queue: Queue, members: Members, trace: str | None) -> None:
        """`trace`: the call's trace, for a message without one."""
        self.content = content = read_content(members)
        group, once = (
            key_text(members, "MessageGroupId"),
            key_text(members, "MessageDeduplicationId"),
        )
        delay = integer(members, "DelaySeconds", _DELAY)
        limit = queue.attributes.max_message_bytes
        if content.size_bytes > limit:
            raise SqsError(
                "InvalidParameterValue",
                "One or more parameters are invalid. Reason: Message must be shorter than"
                f" {limit} bytes.",
            )
        self.native = content.native(once, trace)
        _check_attributes(self.native.get("attributes", {}))
        if queue.attributes.ordered:
            self._join(queue, group, once, delay)
        elif once is not None:
            raise _not_of_type("MessageDeduplicationId", once)
        elif delay is not None:
            self.native["delay_seconds"] = delay
        if group is not None:
            self.native["group"] = group

    def _join(self, queue: Queue, group: str | None, once: str | None, delay: int | None) -> None:
        """Applies the rules of FIFO queues to group, id and delay. Raises SqsError."""
        if group is None:
            raise missing("MessageGroupId", whole=True)
        if delay:
            raise _not_of_type("DelaySeconds", delay)
        if once is None and shapes.fifo_attribute(queue, "ContentBasedDeduplication") == "true":
            once = content_id(self.content.body)
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
    """Sends a message."""
    queue = asked.find(SEND)
    draft = _Draft(queue, asked.members, read_trace(asked.call.headers))
    request = read_values({"messages": [draft.native]}, SendRequest)
    (sent,) = send(asked.core, queue, request, asked.caller, OF_SDKS)
    return _sent(draft, sent)


def send_message_batch(asked: Asked) -> Result:
    """Sends up to 10 messages, each separately."""
    queue = asked.find(SEND)
    listed = entries(asked.members, "SendMessageBatchRequestEntry")
    trace = read_trace(asked.call.headers)
    drafts, failed = read_each(listed, lambda entry: _Draft(queue, entry, trace))
    size = sum(draft.content.size_bytes for draft in drafts.values())
    limit = min(BATCH_BYTES, asked.core.settings.batch_bytes)
    if size > limit:
        raise SqsError(
            "BatchRequestTooLong",
            f"Batch requests cannot be longer than {limit} bytes. You have sent {size} bytes.",
        )
    done: list[Result] = []
    if drafts:
        natives = [draft.native for draft in drafts.values()]
        request = read_values({"messages": natives, "atomic": False}, SendRequest)
        for (name, draft), sent in zip(
            drafts.items(),
            send(asked.core, queue, request, asked.caller, OF_SDKS),
            strict=True,
        ):
            if isinstance(sent, CirrusMQError):
                failed.append(failure(name, of_contract(sent)))
            else:
                done.append({"Id": name, **_sent(draft, sent)})
    return batch(done, failed)


def _sent(draft: _Draft, sent: Any) -> Result:
    if isinstance(sent, CirrusMQError):
        raise sent
    # A duplicate is answered the first one's, whose body may be another.
    known = None if "deduplication_id" in draft.native else sent.body_md5
    shown: Result = {"MessageId": sent.id, **draft.content.digests(known)}
    return shown if sent.order is None else {**shown, "SequenceNumber": sequence_number(sent.order)}


def _check_attributes(kept: Mapping[str, Any]) -> None:
    """Checks the core's limits that are below SQS's. Raises SqsError."""
    if any(len(name) > 64 for name in kept):
        raise SqsError(
            "InvalidParameterValue",
            "Names of message attributes have at most 64 characters here; those other than letters,"
            " digits and underscores count as three.",
        )
    size = sum(len(name) + _value_bytes(value) for name, value in kept.items())
    if size > limits.ATTRIBUTES_BYTES:
        raise SqsError(
            "InvalidParameterValue",
            f"The message attributes have {size:,} bytes; {limits.ATTRIBUTES_BYTES:,} are the most"
            " here.",
        )


def _value_bytes(value: str | dict[str, str]) -> int:
    """Bytes of a value in a request of the core's, padding of base64 included."""
    return len(value.encode()) if isinstance(value, str) else 3 * len(value["base64"]) // 4


def _not_of_type(name: str, value: object) -> SqsError:
    reason = "The request include parameter that is not valid for this queue type."
    return invalid(name, value, reason)
