"""Attributes of queues and numbers of all calls: EMQ's as the core's, and the core's as EMQ's."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from cirrusmq.base.shapes import read_values
from cirrusmq.model.queue import Queue, QueueInput
from cirrusmq.queues.counts import Counts
from cirrusmq.queues.receivers import DEFAULT
from cirrusmq_dialects.emq.asking import Result, integer, shown_name
from cirrusmq_dialects.emq.errors import invalid

LEVELS = 16
DEFAULTS = {"receive_wait_seconds": 0, "max_message_bytes": 262_144}
"""Defaults of a queue made by EMQ's call that differ from the core's."""
RECEIVES, _MAX_RECEIVES_DEFAULT = (1, 100), 2
RECEIVE_NUMBER, DEAD_LETTERS, DEFAULT_TAG = "EmqReceiveNumber", "EmqDeadLetters", "EmqDefaultTag"
"""Texts that are kept with a queue, since the core has no place for them."""
_OF_QUEUES = {
    "delaySeconds": ("delay_seconds", (0, 900)),
    "invisibilitySeconds": ("visibility_timeout_seconds", (2, 43_200)),
    "receiveMessageWaitSeconds": ("receive_wait_seconds", (0, 20)),
    "receiveMessageMaximumNumber": (RECEIVE_NUMBER, RECEIVES),
    "messageRetentionSeconds": ("message_retention_seconds", (60, 1_209_600)),
    "messageMaximumBytes": ("max_message_bytes", (1_024, 262_144)),
    "partitionNumber": ("partitions", (1, 255)),
}
_NUMBERS = {
    **_OF_QUEUES,
    "maxReceiveTime": ("max_receives", (1, 100)),
    "priority": ("priority", (1, LEVELS)),
    "maxReceiveMessageNumber": ("max", RECEIVES),
    "maxReceiveMessageWaitSeconds": ("wait_seconds", (0, 20)),
}
"""The core's names and the ranges of numbers; two of them are a queue's and a message's."""
_RATES = {"readQps": "receive_rate", "writeQps": "send_rate"}


def numbers(given: Any, *, zero_is_none: bool = False) -> Result:
    """Returns the numbers that a struct has, by the core's names. Raises EmqError out of a range.

    zero_is_none: 0 counts as not given if it is out of the range.
    """
    found: Result = {}
    for name, (native, bounds) in _NUMBERS.items():
        value = getattr(given, name, None)
        if value == 0 < bounds[0] and zero_is_none:
            continue
        if integer(name, value, bounds) is not None:
            found[native] = value
    return found


def read(request: Any, account: str) -> Result:
    """Returns the changes of a queue of the account in the parts that are given. Raises EmqError.

    Rates count messages.
    """
    changes: Result = {}
    parts = vars(request)
    if attributes := parts.get("queueAttribute"):
        changes |= numbers(attributes, zero_is_none=True)
        if attributes.userAttributes is not None:
            changes["labels"] = attributes.userAttributes
    if quota := parts.get("queueQuota"):
        rates = {native: getattr(quota.throughput, name, None) for name, native in _RATES.items()}
        changes |= {native: rate for native, rate in rates.items() if rate is not None}
    if policy := parts.get("redrivePolicy"):
        owner, _, target = (policy.dlqName or "").partition("/")
        if owner != account or not target:
            raise invalid("dlqName", f"must be {account}/queue: a queue of the same account")
        receives = {"max_receives": _MAX_RECEIVES_DEFAULT, **numbers(policy)}
        changes["dead_letter"] = {"queue": target, **receives}
    return changes


def native(changes: Result) -> tuple[QueueInput, dict[str, str]]:
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


def show(queue: Queue) -> Result:
    """The name of a queue and its parts: attributes, rates, dead-letter policy."""
    held = {**asdict(queue.attributes), RECEIVE_NUMBER: receive_number(queue)}
    attributes = {name: int(held[native]) for name, (native, _) in _OF_QUEUES.items()}
    policy, redrive = queue.attributes.dead_letter, None
    if policy is not None:
        target = shown_name(queue, policy.queue)
        redrive = {"dlqName": target, "maxReceiveTime": policy.max_receives}
    return {
        "queueName": shown_name(queue),
        "queueAttribute": {**attributes, "userAttributes": held["labels"]},
        "queueQuota": {"throughput": {name: held[native] for name, native in _RATES.items()}},
        "redrivePolicy": redrive,
    }


def show_state(held: Any, counts: Counts) -> Result:
    """The times and the counts of a queue or a tag."""
    return {
        "createTimestamp": held.created_ms,
        "lastModifiedTimestamp": held.modified_ms or held.created_ms,
        "approximateMessageNumber": counts.kept,
        "approximateAvailableMessageNumber": counts.active,
        "approximateInvisibilityMessageNumber": counts.inactive + counts.delayed,
    }
