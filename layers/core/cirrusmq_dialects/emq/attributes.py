"""Attributes of queues: EMQ's as the core's, and the core's as EMQ shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from cirrusmq.base.shapes import read_values
from cirrusmq.model.queue import Queue, QueueInput
from cirrusmq.queues.counts import Counts
from cirrusmq.queues.receivers import DEFAULT
from cirrusmq_dialects.emq.asking import integer, shown_name
from cirrusmq_dialects.emq.errors import invalid
from cirrusmq_dialects.emq.structs import of

LEVELS = 16
DEFAULTS = {"receive_wait_seconds": 0, "max_message_bytes": 262_144}
"""Defaults of a queue made by EMQ's call that differ from the core's."""
RECEIVES, _MAX_RECEIVES, _MAX_RECEIVES_DEFAULT = (1, 100), (1, 100), 2
RECEIVE_NUMBER, DEAD_LETTERS, DEFAULT_TAG = "EmqReceiveNumber", "EmqDeadLetters", "EmqDefaultTag"
"""Texts that are kept with a queue, since the core has no place for them."""
_NUMBERS = {
    "delaySeconds": ("delay_seconds", 0, 900),
    "invisibilitySeconds": ("visibility_timeout_seconds", 2, 43_200),
    "receiveMessageWaitSeconds": ("receive_wait_seconds", 0, 20),
    "receiveMessageMaximumNumber": (RECEIVE_NUMBER, *RECEIVES),
    "messageRetentionSeconds": ("message_retention_seconds", 60, 1_209_600),
    "messageMaximumBytes": ("max_message_bytes", 1_024, 262_144),
    "partitionNumber": ("partitions", 1, 255),
}
_RATES = {"readQps": "receive_rate", "writeQps": "send_rate"}


def read(given: Any, account: str) -> dict[str, Any]:
    """Returns the attributes that are given; 0 counts as not given if it is out of range."""
    changes: dict[str, Any] = {}
    for name, (native, low, high) in _NUMBERS.items():
        number = getattr(given, name)
        if number is not None and (number or not low):
            changes[native] = integer(name, number, (low, high))
    if given.userAttributes is not None:
        changes["labels"] = given.userAttributes
    return changes


def read_quota(given: Any, account: str) -> dict[str, Any]:
    """Returns the rates that are given; they count messages."""
    found = {native: getattr(given.throughput, name, None) for name, native in _RATES.items()}
    return {native: rate for native, rate in found.items() if rate is not None}


def read_redrive(given: Any, account: str) -> dict[str, Any]:
    """Returns the dead-letter policy of a queue of the account. Raises EmqError."""
    owner, _, name = (given.dlqName or "").partition("/")
    if owner != account or not name:
        raise invalid("dlqName", f"must be {account}/queue: a queue of the same account")
    receives = integer("maxReceiveTime", given.maxReceiveTime, _MAX_RECEIVES)
    receives = _MAX_RECEIVES_DEFAULT if receives is None else receives
    return {"dead_letter": {"queue": name, "max_receives": receives}}


def native(changes: Mapping[str, Any]) -> tuple[QueueInput, dict[str, str]]:
    """Returns the changes as the core reads them, and the texts that it keeps for EMQ."""
    kept = {RECEIVE_NUMBER, DEAD_LETTERS, DEFAULT_TAG} & changes.keys()
    others = {name: value for name, value in changes.items() if name not in kept}
    return read_values(others, QueueInput), {name: str(changes[name]) for name in kept}


def default_tags(queue: Queue) -> tuple[str, str]:
    """Returns the names of the default tag; the second one is empty if nobody named it."""
    return DEFAULT, queue.sdk_texts.get(DEFAULT_TAG, "")


def native_tag(queue: Queue, tag: str | None) -> str | None:
    """Returns the receiver that a tag is, or None for the default one."""
    return None if not tag or tag in default_tags(queue) else tag


def receive_number(queue: Queue) -> int:
    """Returns the most messages of a receive, as the queue has it."""
    return int(queue.sdk_texts.get(RECEIVE_NUMBER, RECEIVES[1]))


def show(queue: Queue) -> Any:
    """The attributes of a queue."""
    held = {**asdict(queue.attributes), RECEIVE_NUMBER: receive_number(queue)}
    numbers = {name: int(held[native]) for name, (native, *_) in _NUMBERS.items()}
    return of.QueueAttribute(**numbers, userAttributes=dict(queue.attributes.labels))


def show_quota(queue: Queue) -> Any:
    """The rates of a queue; without one a field is not there."""
    rates = {name: getattr(queue.attributes, native) for name, native in _RATES.items()}
    return of.QueueQuota(throughput=of.Throughput(**rates))


def show_redrive(queue: Queue) -> Any:
    """The dead-letter policy of a queue, or None."""
    policy = queue.attributes.dead_letter
    if policy is None:
        return None
    return of.RedrivePolicy(
        dlqName=shown_name(queue, policy.queue), maxReceiveTime=policy.max_receives
    )


def show_state(held: Any, counts: Counts) -> Any:
    """The times and the counts of a queue or a tag."""
    return of.QueueState(
        createTimestamp=held.created_ms,
        lastModifiedTimestamp=held.modified_ms or held.created_ms,
        approximateMessageNumber=counts.kept,
        approximateAvailableMessageNumber=counts.active,
        approximateInvisibilityMessageNumber=counts.inactive + counts.delayed,
    )
