"""Attributes of queues: EMQ's as the core's, and the core's as EMQ shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cirrusmq.model.queue import Queue, SdkAttributes
from cirrusmq.queues.counts import Counts
from cirrusmq_dialects.emq.asking import integer, shown_name
from cirrusmq_dialects.emq.errors import invalid
from cirrusmq_dialects.emq.structs import of

LEVELS = 16
DEFAULTS = {"receive_wait_seconds": 0, "max_message_bytes": 262_144}
"""Defaults of a queue made by EMQ's call that differ from the core's."""
_NUMBERS = {
    "delaySeconds": ("delay_seconds", 0, 900),
    "invisibilitySeconds": ("visibility_timeout_seconds", 2, 43_200),
    "receiveMessageWaitSeconds": ("receive_wait_seconds", 0, 20),
    "messageRetentionSeconds": ("message_retention_seconds", 60, 1_209_600),
    "messageMaximumBytes": ("max_message_bytes", 1_024, 262_144),
    "partitionNumber": ("partitions", 1, 255),
}
RECEIVES, RECEIVES_DEFAULT = (1, 100), 100
RECEIVE_NUMBER, DEAD_LETTERS, DEFAULT_TAG = "EmqReceiveNumber", "EmqDeadLetters", "EmqDefaultTag"
"""Texts that are kept with a queue, since the core has no place for them."""


def read(given: Any) -> dict[str, Any]:
    """Returns the attributes that are given; 0 counts as not given if it is out of range."""
    if given is None:
        return {}
    changes: dict[str, Any] = {}
    for name, (native, low, high) in _NUMBERS.items():
        number = getattr(given, name)
        if number is not None and (number or not low):
            changes[native] = integer(name, number, (low, high))
    if given.userAttributes is not None:
        changes["labels"] = given.userAttributes
    return changes


def read_receive_number(given: Any) -> dict[str, str]:
    """Returns `receiveMessageMaximumNumber` as the text that is kept, if it is given."""
    number = given.receiveMessageMaximumNumber if given is not None else None
    return (
        {RECEIVE_NUMBER: str(integer("receiveMessageMaximumNumber", number, RECEIVES))}
        if number
        else {}
    )


def read_quota(given: Any) -> dict[str, Any]:
    """Returns the rates that are given; they count messages."""
    limits = given.throughput if given is not None else None
    if limits is None:
        return {}
    named = {"receive_rate": limits.readQps, "send_rate": limits.writeQps}
    return {name: value for name, value in named.items() if value is not None}


def read_redrive(given: Any, account: str) -> dict[str, Any]:
    """Returns the dead-letter policy of a queue of the account. Raises EmqError."""
    if given is None:
        raise invalid("redrivePolicy", "is needed")
    owner, _, name = (given.dlqName or "").partition("/")
    if owner != account or not name:
        raise invalid("dlqName", f"must be {account}/queue: a queue of the same account")
    receives = integer("maxReceiveTime", given.maxReceiveTime, (1, 100))
    return {"queue": name, "max_receives": 2 if receives is None else receives}


def with_texts(held: SdkAttributes | None, texts: Mapping[str, str]) -> SdkAttributes | None:
    """Returns what a queue keeps for SDKs, with these texts."""
    before = held or SdkAttributes()
    kept = SdkAttributes(
        texts={**before.texts, **texts}, dead_letters_from=before.dead_letters_from
    )
    return kept if kept != SdkAttributes() else None


def text_of(queue: Queue, name: str) -> str:
    """Returns a text that is kept with a queue, or an empty one."""
    return queue.sdk.texts.get(name, "") if queue.sdk else ""


def receive_number(queue: Queue) -> int:
    """Returns the most messages of a receive, as the queue has it."""
    return int(text_of(queue, RECEIVE_NUMBER) or RECEIVES_DEFAULT)


def show(queue: Queue) -> Any:
    """The attributes of a queue."""
    held = queue.attributes
    numbers = {name: int(getattr(held, native)) for name, (native, *_) in _NUMBERS.items()}
    return of.QueueAttribute(
        **numbers,
        receiveMessageMaximumNumber=receive_number(queue),
        userAttributes=dict(held.labels),
    )


def show_quota(queue: Queue) -> Any:
    """The rates of a queue; without one a field is not there."""
    held = queue.attributes
    return of.QueueQuota(
        throughput=of.Throughput(readQps=held.receive_rate, writeQps=held.send_rate)
    )


def show_redrive(queue: Queue) -> Any:
    """The dead-letter policy of a queue, or None."""
    policy = queue.attributes.dead_letter
    if policy is None:
        return None
    return of.RedrivePolicy(
        dlqName=shown_name(queue, policy.queue), maxReceiveTime=policy.max_receives
    )


def show_state(created_ms: int, modified_ms: int, counts: Counts) -> Any:
    """The times and the counts of a queue or a tag."""
    return of.QueueState(
        createTimestamp=created_ms,
        lastModifiedTimestamp=modified_ms or created_ms,
        approximateMessageNumber=counts.kept,
        approximateAvailableMessageNumber=counts.active,
        approximateInvisibilityMessageNumber=counts.inactive + counts.delayed,
    )
