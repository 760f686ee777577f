"""Calls that publish messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.shapes import read_values
from cirrusmq.model.message import OF_SDKS
from cirrusmq.model.notification import sequence_number, uuid_of
from cirrusmq.model.topic import Topic
from cirrusmq.publishing.publish import PublishRequest
from cirrusmq.publishing.publish import publish as publish_messages
from cirrusmq.publishing.records import Published
from cirrusmq_dialects.asking import SEND
from cirrusmq_dialects.sns.asking import Asked, Result
from cirrusmq_dialects.sns.contents import LARGEST_BYTES, Content, read_content
from cirrusmq_dialects.sns.errors import SnsError, invalid, of_contract
from cirrusmq_dialects.sns.reading import Members, structures, text
from cirrusmq_dialects.sns.topic_attributes import is_fifo
from cirrusmq_dialects.trace_headers import read_trace

_ENTRIES = 10
_PLACE = "publishBatchRequestEntries"
_ENDPOINT = ":endpoint/"
"""In the ARN of a mobile device."""
_ENTRY_ID = re.compile(r"[A-Za-z0-9_-]{1,80}", re.ASCII)


def publish(asked: Asked) -> Result:
    """Publishes a message."""
    members = asked.members
    if text(members, "PhoneNumber"):
        raise invalid("PhoneNumber Reason: there is no SMS here.")
    parameter = "TargetArn" if text(members, "TargetArn") else "TopicArn"
    if _ENDPOINT in (text(members, parameter) or ""):
        raise invalid(f"{parameter} Reason: No endpoint found for the target arn specified")
    topic = asked.topic(SEND, "publish", parameter=parameter)
    content = read_content(members, topic, read_trace(asked.call.headers))
    if not _fit([content]):
        raise invalid("Message too long")
    (published,) = _publish(asked, topic, [content])
    if isinstance(published, CirrusMQError):
        raise published
    return _told(topic, published)


def publish_batch(asked: Asked) -> Result:
    """Publishes up to 10 messages, each separately.

    A message that is refused for its content refuses the batch, as in SNS.
    """
    topic = asked.topic(SEND, "publish")
    listed = _entries(asked.members)
    trace = read_trace(asked.call.headers)
    contents = {
        entry["Id"]: read_content(entry, topic, trace, f"{_PLACE}.{number}.member.")
        for number, entry in enumerate(listed, 1)
    }
    if not _fit(contents.values()):
        told = "The length of all the messages put together is more than the limit."
        raise SnsError("BatchRequestTooLong", told)
    done: list[dict[str, object]] = []
    failed: list[dict[str, object]] = []
    results = _publish(asked, topic, list(contents.values()))
    for name, published in zip(contents, results, strict=True):
        if isinstance(published, CirrusMQError):
            failed.append(_failure(name, of_contract(published, "PublishBatch")))
        else:
            done.append({"Id": name, **_told(topic, published)})
    return {"Successful": done, "Failed": failed}


def _fit(contents: Iterable[Content]) -> bool:
    """Returns True if a call may have these messages, by their bytes."""
    listed = list(contents)
    size = sum(content.size_bytes for content in listed)
    return size <= LARGEST_BYTES and all(content.fits_beside for content in listed)


def _publish(
    asked: Asked, topic: Topic, contents: Sequence[Content]
) -> list[Published | CirrusMQError]:
    natives: list[dict[str, Any]] = [content.native() for content in contents]
    request = read_values({"messages": natives, "atomic": False}, PublishRequest)
    return publish_messages(asked.core, topic, asked.caller, request, OF_SDKS)


def _told(topic: Topic, published: Published) -> dict[str, str]:
    """Returns the result for a published message: its id and, of a FIFO topic, its number."""
    told = {"MessageId": uuid_of(published.id)}
    if is_fifo(topic):
        told["SequenceNumber"] = sequence_number(published.id)
    return told


def _entries(members: Members) -> list[Members]:
    """The entries of a batch, with distinct ids."""
    listed = structures(members, "PublishBatchRequestEntries")
    if not listed:
        raise SnsError("EmptyBatchRequest", "The batch request doesn't contain any entries.")
    if len(listed) > _ENTRIES:
        told = "The batch request contains more entries than permissible."
        raise SnsError("TooManyEntriesInBatchRequest", told)
    ids = [text(each, "Id") or "" for each in listed]
    if not all(map(_ENTRY_ID.fullmatch, ids)):
        told = "The Id of a batch entry has 1 to 80 letters, digits, hyphens and underscores."
        raise SnsError("InvalidBatchEntryId", told)
    if len(set(ids)) < len(ids):
        told = "Two or more batch entries in the request have the same Id."
        raise SnsError("BatchEntryIdsNotDistinct", told)
    return listed


def _failure(name: str, error: SnsError) -> dict[str, object]:
    return {
        "Id": name,
        "Code": error.code,
        "Message": error.message,
        "SenderFault": error.is_senders,
    }
