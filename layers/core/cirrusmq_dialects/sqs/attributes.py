"""Attributes of queues: SQS's as the core's, and the core's as SQS shows them.

Some that the core has no place for are labels of the queue: `sqs.DeduplicationScope`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.limits import LABELS, LABELS_BYTES
from cirrusmq.model.described import check_labels
from cirrusmq.model.queue import Queue, SdkAttributes
from cirrusmq.queues.counts import Counts
from cirrusmq_dialects.fifo_names import shown_fifo
from cirrusmq_dialects.sqs.errors import SqsError, invalid_value
from cirrusmq_dialects.sqs.kept_attributes import (
    POLICIES,
    REUSE_DEFAULT,
    SHORTEST_LEASE_SECONDS,
    SSE,
    TEXTS,
    VISIBILITY,
    hides_nothing,
    read_kept,
)
from cirrusmq_dialects.sqs.names import arn, shown_name

LARGEST_BYTES = 1_048_576
DEFAULTS = {
    "delay_seconds": 0,
    "message_retention_seconds": 345_600,
    "receive_wait_seconds": 0,
    "visibility_timeout_seconds": 30,
}
"""Defaults of a queue made by SQS's call: some differ from the core's. Bytes: `default_bytes`."""
_NUMBERS = {
    "DelaySeconds": ("delay_seconds", 0, 900),
    "MaximumMessageSize": ("max_message_bytes", 1_024, LARGEST_BYTES),
    "MessageRetentionPeriod": ("message_retention_seconds", 60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": ("receive_wait_seconds", 0, 20),
    "VisibilityTimeout": ("visibility_timeout_seconds", 0, 43_200),
}
_FIFO_LABELS: dict[str, tuple[str, ...]] = {
    "ContentBasedDeduplication": ("false", "true"),
    "DeduplicationScope": ("queue", "messageGroup"),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
}
"""With their values, the default first."""
_COUNTS = {
    "ApproximateNumberOfMessages": "active",
    "ApproximateNumberOfMessagesNotVisible": "inactive",
    "ApproximateNumberOfMessagesDelayed": "delayed",
}
_TOLD = frozenset({"QueueArn", "CreatedTimestamp", "LastModifiedTimestamp", *_COUNTS})
_KNOWN = frozenset({*_NUMBERS, *_FIFO_LABELS, "FifoQueue", "RedrivePolicy"}) | TEXTS | _TOLD
_LABEL = "sqs."
_INTEGER = re.compile(r"[0-9]{1,9}", re.ASCII)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The queue whose attributes are read."""

    account: str
    name: str
    """The core's name of the queue."""
    fifo: bool
    before: Queue | None = None
    """The queue as it is; None: it is to be made."""
    resolve: Callable[[str], str]
    """The core's name of another queue that an attribute names."""


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a queue by a caller."""

    native: dict[str, Any]
    """Attributes as a request of the core has them."""
    sdk: SdkAttributes | None
    """SQS's own attributes of the queue after the change."""


def default_bytes(deployment_bytes: int) -> int:
    """The MaximumMessageSize of a new queue: SQS's, or the deployment's if that is less."""
    return min(LARGEST_BYTES, deployment_bytes)


def read_attributes(given: Mapping[str, str], place: Place) -> Changes:
    """Returns the changes. Raises SqsError: InvalidAttributeName, InvalidAttributeValue,
    InvalidParameterValue for policies of dead letters, or UnsupportedOperation for a Policy that
    does not hold here.
    """
    before = place.before
    native: dict[str, Any] = {}
    held_labels = before.attributes.labels if before else {}
    labels = dict(held_labels)
    for name, value in given.items():
        if name in _NUMBERS:
            number = _number(name, value)
            native[_NUMBERS[name][0]] = number or _least(name)
        elif name in _FIFO_LABELS:
            chosen = _choice(name, value, fifo=place.fifo)
            labels.pop(_LABEL + name, None)
            if chosen != _FIFO_LABELS[name][0]:
                labels[_LABEL + name] = chosen
        elif name == "FifoQueue":
            _check_type(value, fifo=place.fifo)
        elif name == "RedrivePolicy":
            native["dead_letter"] = _read_redrive(value, place)
        elif name not in TEXTS:
            raise SqsError("InvalidAttributeName", f"Unknown Attribute {name[:80]}.")
    if labels != held_labels:
        _check_limit(labels)
        native["labels"] = labels
    before = place.before
    kept = read_kept(given, before.sdk if before else None, place.account, place.name)
    if kept is not None and kept.dead_letters_from and "RedriveAllowPolicy" in given:
        named = sorted(map(place.resolve, kept.dead_letters_from))
        kept = replace(kept, dead_letters_from=named)
    return Changes(native=native, sdk=kept)


def _least(name: str) -> int:
    """Returns the core's value for 0."""
    return SHORTEST_LEASE_SECONDS if name == VISIBILITY else 0


def difference(queue: Queue, given: Mapping[str, str], changes: Changes) -> str | None:
    """The first attribute that is given and has another value in the queue, by SQS's name."""
    held, shown = queue.attributes, show(queue, "", None)
    for name, value in given.items():
        if name in _NUMBERS:
            is_same = str(int(value)) == shown[name]
        elif name == "RedrivePolicy":
            wanted, has = changes.native["dead_letter"] or {}, held.dead_letter
            pair = (has.queue, has.max_receives) if has and has.max_receives else (None, None)
            is_same = (wanted.get("queue"), wanted.get("max_receives")) == pair
        elif name in POLICIES:
            is_same = _json(value) == _json(shown.get(name, ""))
        else:
            is_same = value.lower() == shown.get(name, "").lower()
        if not is_same:
            return name
    return None


def _json(text: str) -> Any:
    """The value of a text that was checked before; an empty text is None."""
    return msgspec.json.decode(text) if text else None


def _check_type(value: str, *, fifo: bool) -> None:
    """Raises SqsError if FifoQueue does not match the type, which the queue's name decides."""
    if not fifo:
        raise SqsError("InvalidAttributeName", "Unknown Attribute FifoQueue.")
    if value.lower() == "false":
        raise invalid_value("FifoQueue", "Modifying queue type is not supported.")
    if value.lower() != "true":
        raise invalid_value("FifoQueue")


def _number(name: str, value: str) -> int:
    _, low, high = _NUMBERS[name]
    number = int(value) if _INTEGER.fullmatch(value) else -1
    if not low <= number <= high:
        raise invalid_value(name)
    return number


def partitions(of_standard: int, labels: Mapping[str, str], *, fifo: bool) -> dict[str, int]:
    """Returns the `partitions` of a new queue, empty for the default of all queues.

    One, if a FIFO queue has its limit as a whole: then its groups come in the order in which they
    wait. With `perMessageGroupId` it has as many as any other queue, and their throughput.
    of_standard: the setting for standard queues; 0 for the default.
    """
    if fifo:
        by_group = labels.get(f"{_LABEL}FifoThroughputLimit") == "perMessageGroupId"
        return {} if by_group else {"partitions": 1}
    return {"partitions": of_standard} if of_standard else {}


def _check_limit(labels: Mapping[str, str]) -> None:
    """Raises SqsError for a limit of groups without deduplication by groups."""
    by_group = labels.get(f"{_LABEL}DeduplicationScope") == "messageGroup"
    if labels.get(f"{_LABEL}FifoThroughputLimit") == "perMessageGroupId" and not by_group:
        reason = "perMessageGroupId is allowed only if DeduplicationScope is messageGroup."
        raise invalid_value("FifoThroughputLimit", reason)


def _choice(name: str, value: str, *, fifo: bool) -> str:
    """The value of an attribute that FIFO queues alone have, in its own case."""
    if not fifo:
        raise SqsError("InvalidAttributeName", f"Unknown Attribute {name}.")
    for each in _FIFO_LABELS[name]:
        if each.lower() == value.lower():
            return each
    raise invalid_value(name)


def _read_redrive(value: str, place: Place) -> dict[str, Any] | None:
    """A dead_letter; what the queue has besides is kept."""
    if not value:
        return None
    # Few calls have policies: the others' cold starts do without.
    from cirrusmq_dialects.sqs.policies import read_redrive

    queue, count = read_redrive(value, place.account)
    fields: dict[str, Any] = {"queue": place.resolve(queue), "max_receives": count}
    held = place.before.attributes.dead_letter if place.before else None
    if held is not None and held.max_age_seconds is not None:
        fields["max_age_seconds"] = held.max_age_seconds
    return fields


def check_names(asked: Iterable[str]) -> list[str]:
    """Returns the names of attributes that a caller asks for. Raises SqsError for unknown ones."""
    names = list(asked)
    for name in names:
        if name != "All" and name not in _KNOWN:
            raise SqsError("InvalidAttributeName", f"Unknown Attribute {name[:80]}.")
    return sorted(_KNOWN) if "All" in names else names


def asks_for_counts(names: Iterable[str]) -> bool:
    """Returns True if messages have to be counted."""
    return not _COUNTS.keys().isdisjoint(names)


def show(queue: Queue, region: str, counts: Counts | None) -> dict[str, str]:
    """All attributes of a queue, as texts."""
    held = queue.attributes
    found = {name: str(int(getattr(held, _NUMBERS[name][0]))) for name in _NUMBERS}
    found |= {
        "QueueArn": arn(region, queue.account, shown_name(queue)),
        "CreatedTimestamp": str(queue.created_ms // 1000),
        "LastModifiedTimestamp": str(queue.modified_ms // 1000),
        SSE: "true",
    }
    if counts is not None:
        found |= {name: str(getattr(counts, kind)) for name, kind in _COUNTS.items()}
    dead_letter = held.dead_letter
    if dead_letter is not None and dead_letter.max_receives is not None:
        name = dead_letter.queue
        name = shown_fifo(name) if held.ordered else name
        policy = {
            "deadLetterTargetArn": arn(region, queue.account, name),
            "maxReceiveCount": dead_letter.max_receives,
        }
        found["RedrivePolicy"] = msgspec.json.encode(policy).decode()
    found |= {name: text for name, text in queue.sdk_texts.items() if name in TEXTS}
    if "KmsMasterKeyId" in found:
        found.setdefault("KmsDataKeyReusePeriodSeconds", REUSE_DEFAULT)
    if hides_nothing(queue):
        found[VISIBILITY] = "0"
    if held.ordered:
        found["FifoQueue"] = "true"
        found |= {name: fifo_attribute(queue, name) for name in _FIFO_LABELS}
    return found


def fifo_attribute(queue: Queue, name: str) -> str:
    """The value of an attribute that FIFO queues alone have."""
    return queue.attributes.labels.get(_LABEL + name, _FIFO_LABELS[name][0])


def tags(queue: Queue) -> dict[str, str]:
    """Returns the tags of a queue: its labels, without the labels that are attributes."""
    held = queue.attributes.labels
    return {name: value for name, value in held.items() if not name.startswith(_LABEL)}


def check_tags(given: Mapping[str, str]) -> None:
    """Raises SqsError for a tag that no queue can have."""
    for name in given:
        if name.startswith(_LABEL) or not name:
            raise SqsError("InvalidParameterValue", f"Tag keys must not begin with {_LABEL}")


def check_tag_count(labels: Mapping[str, str]) -> None:
    """Raises SqsError if a queue would have more labels than it can."""
    if len(labels) > LABELS:
        raise SqsError("InvalidParameterValue", f"A queue has at most {LABELS} tags.")
    try:
        check_labels(labels)
    except InvalidParameter:
        text = f"The tags of a queue have at most {LABELS_BYTES:,} bytes together here."
        raise SqsError("InvalidParameterValue", text) from None
