"""Errors by EMQ's codes; never 7 and 15 to 18, which the SDK repeats, and then answers None."""

from __future__ import annotations

from cirrusmq.base.errors import CirrusMQError
from cirrusmq_dialects.own_names import renamed

INVALID_ACTION, INVALID_ATTRIBUTE, QUEUE_EXIST, QUEUE_NAME_MISSING = 1, 2, 4, 5
QUEUE_NOT_EXIST, MESSAGE_BODY_MISSING, INDEX_NOT_UNIQUE, PERMISSION_DENIED = 6, 10, 12, 13
_OF_CONTRACT = {
    **{"AlreadyExists": QUEUE_EXIST, "QueueNotFound": QUEUE_NOT_EXIST, "Unavailable": 14},
    **{"Forbidden": PERMISSION_DENIED, "Unauthenticated": PERMISSION_DENIED},
    **{"LimitExceeded": 20, "Throttled": 20},
}
_NAMED = """
account developerId, attributes messageAttributes, body messageBody, dead_letter redrivePolicy,
dead_letter.queue dlqName, delay_seconds delaySeconds, group topic, labels userAttributes,
max_message_bytes messageMaximumBytes, message_retention_seconds messageRetentionSeconds,
partitions partitionNumber, priorities enablePriority, priority priority, queue queueName,
receive_rate readQps, receiver tagName, send_rate writeQps, start startTimestamp,
visibility_timeout_seconds invisibilitySeconds, where attributeName
"""
_NAMES: dict[str, str] = dict(each.split() for each in _NAMED.split(","))
"""Parameters of the core's, as EMQ calls them."""


class EmqError(Exception):
    """A refusal: its code and its words."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


def of_contract(error: CirrusMQError) -> EmqError:
    """The error of an operation of the core."""
    if error.code == "ReceiverNotFound":
        return invalid("tagName", "the queue has no such tag")
    code = _OF_CONTRACT.get(error.code, INVALID_ATTRIBUTE)
    name, reason = renamed(error, _NAMES)
    return EmqError(code, reason if name is None else f"{name}: {reason}")


def shown(error: EmqError, request_id: str) -> dict[str, object]:
    """The error as an answer has it."""
    told = {"errorCode": error.code, "errMsg": error.text}
    return {**told, "details": "", "requestId": request_id}


def invalid(name: str, reason: str) -> EmqError:
    """A value that a field cannot have."""
    return EmqError(INVALID_ATTRIBUTE, f"{name}: {reason}")
