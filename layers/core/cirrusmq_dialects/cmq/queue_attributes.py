"""Attributes of queues: CMQ's as the core's, and the core's as CMQ shows them."""

from __future__ import annotations

from typing import Any

import msgspec

from cirrusmq.base.limits import DEAD_LETTER_AGE_SECONDS, DEAD_LETTER_RECEIVES
from cirrusmq.base.shapes import decode_json
from cirrusmq.model.queue import Queue
from cirrusmq.queues.counts import Counts
from cirrusmq_dialects.cmq.bodies import LARGEST_BYTES
from cirrusmq_dialects.cmq.errors import POLICY, CmqError
from cirrusmq_dialects.cmq.reading import Params, integer

DEFAULTS = {"receive_wait_seconds": 0}
"""Defaults of a queue made by CMQ's call that differ from the core's."""
_NUMBERS = {
    "maxMsgHeapNum": ("max_messages", 1_000_000, 1_000_000_000),
    "pollingWaitSeconds": ("receive_wait_seconds", 0, 30),
    "visibilityTimeout": ("visibility_timeout_seconds", 1, 43_200),
    "maxMsgSize": ("max_message_bytes", 1_024, LARGEST_BYTES),
    "msgRetentionSeconds": ("message_retention_seconds", 60, 1_296_000),
    "rewindSeconds": ("rewind_seconds", 0, 1_296_000),
}
_POLICY = "deadLetterPolicy"
_BY_COUNT, _BY_AGE = 0, 1


def read_attributes(params: Params) -> dict[str, Any]:
    """Returns the given attributes, as a request of the core has them."""
    changes: dict[str, Any] = {}
    for name, (native, low, high) in _NUMBERS.items():
        number = integer(params, name, (low, high))
        if number is not None:
            changes[native] = number
    if _POLICY in params:
        changes["dead_letter"] = _read_policy(params[_POLICY])
    return changes


def _read_policy(text: str) -> dict[str, Any]:
    try:
        policy = decode_json(text, dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise CmqError(4000, 10710, "deadLetterPolicy must be a json string") from error
    queue, kind = policy.get("deadLetterQueue"), policy.get("policy")
    if not isinstance(queue, str) or not queue:
        raise CmqError(
            4000,
            10760,
            "the deadLetterPolicy must has deadLetterQueue member, only be a string",
        )
    if isinstance(kind, bool) or kind not in (_BY_COUNT, _BY_AGE):
        raise CmqError(4000, 10770, "the deadLetterPolicy must has policy member , only set 0 or 1")
    if kind == _BY_COUNT:
        count = _within(policy.get("maxReceiveCount"), DEAD_LETTER_RECEIVES)
        return {"queue": queue, "max_receives": count}
    age = _within(policy.get("maxTimeToLive"), DEAD_LETTER_AGE_SECONDS)
    return {"queue": queue, "max_age_seconds": age}


def _within(value: object, bounds: tuple[int, int]) -> int:
    number = isinstance(value, int) and not isinstance(value, bool)
    if not number or not bounds[0] <= int(str(value)) <= bounds[1]:
        raise CmqError(*POLICY)
    return int(str(value))


def show(queue: Queue) -> dict[str, Any]:
    """The attributes of a queue."""
    held = queue.attributes
    shown: dict[str, Any] = {
        name: int(getattr(held, native)) for name, (native, *_) in _NUMBERS.items()
    }
    dead_letter = held.dead_letter
    if dead_letter is not None:
        policy: dict[str, Any] = {"deadLetterQueue": dead_letter.queue}
        policy["policy"] = _BY_AGE if dead_letter.max_receives is None else _BY_COUNT
        if dead_letter.max_receives is not None:
            policy["maxReceiveCount"] = dead_letter.max_receives
        if dead_letter.max_age_seconds is not None:
            policy["maxTimeToLive"] = dead_letter.max_age_seconds
        shown[_POLICY] = msgspec.json.encode(policy).decode()
    return shown


def show_counts(queue: Queue, counts: Counts) -> dict[str, Any]:
    """The times of a queue, and the numbers of its messages."""
    return {
        "createTime": queue.created_ms // 1000,
        "lastModifyTime": queue.modified_ms // 1000,
        "activeMsgNum": counts.active,
        "inactiveMsgNum": counts.inactive,
        "delayMsgNum": counts.delayed,
        "rewindmsgNum": counts.rewindable,
        "minMsgTime": (counts.oldest_ms or 0) // 1000,
    }
