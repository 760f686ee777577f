"""Errors by CMQ's codes, modules and words, misspellings among them; the contract's as such."""

from __future__ import annotations

from cirrusmq.base.errors import CirrusMQError
from cirrusmq_dialects.own_names import renamed

REFUSED_KEY = 4100


class CmqError(Exception):
    """A refusal: its code, its module's number, its words."""

    def __init__(self, code: int, module: int, text: str, **more: object) -> None:
        """`more`: other members of the answer."""
        super().__init__(text)
        self.code, self.module, self.text, self.more = code, module, text, more

    @property
    def message(self) -> str:
        """As the answer has it."""
        return f"({self.module}){self.text}"


NO_QUEUE = (4440, 10100, "queue is not existed, or deleted")
NO_TOPIC = (4440, 10600, "topic is not existed, or deleted")
STALE = (4430, 10260, "receipt handle is invalid")
REFUSED = (REFUSED_KEY, 10030, "authentication failed")
NESTED = (4000, 10740, "deadLetter queue is not allowed to nest")
POLICY = (4000, 10720, "deadLetterPolicy params error,please check it")
_OF_CONTRACT = {
    "AlreadyExists": (4460, 10210, "queue is already existed,case insensitive"),
    "BatchTooLarge": (4470, 10300, "total message size exceed 262144 bytes"),
    "Forbidden": REFUSED,
    "InUse": (
        4000,
        10750,
        "it is not allowed to be deleted when the queue is dead letter queue",
    ),
    "LimitExceeded": (4410, 10240, "reach maximum retention number of message"),
    "MessageTooLarge": (4400, 10230, "exceed maximum message size"),
    "NotRewindable": (6050, 10670, "your queue cannot be rewinded"),
    "QueueNotFound": NO_QUEUE,
    "ReceiptExpired": STALE,
    "SubscriptionNotFound": NO_TOPIC,
    "Throttled": (4420, 10250, "qps throttling"),
    "TopicNotFound": NO_TOPIC,
    "Unauthenticated": REFUSED,
    "Unavailable": (6000, 10050, "server internal error"),
}
_LIMITS = {
    "CreateQueue": (4450, 10220, "number of queues has reached the limit"),
    "CreateTopic": (4450, 10610, "number of topics has reached the limit"),
    "Subscribe": (4500, 10480, "number of subscription has reached the limit"),
}
"""LimitExceeded, in these calls."""
_OF_PARAMETER = {
    "dead_letter": NESTED,
    "dead_letter.queue": NESTED,
    "dead_letter.max_age_seconds": POLICY,
    "endpoint": (4000, 10630, "illegal endpoint"),
    "rewind_seconds": (4000, 10700, "rewindSeconds cannot be greater than msgRetentionSeconds"),
    "to": (4000, 10680, "invalid rewind time"),
}
_NAMES = {
    "body": "msgBody",
    "delay_seconds": "delaySeconds",
    "filter": "filterTag",
    "group": "queueName",
    "max_message_bytes": "maxMsgSize",
    "routing_key": "routingKey",
    "tags": "msgTag",
}
"""Parameters of the core's that a call can have refused, as CMQ calls them."""


def of_contract(error: CirrusMQError, action: str) -> CmqError:
    """The error of an operation of the core, in a call of this action."""
    code, module, text = _OF_CONTRACT.get(error.code, (4000, 10000, "invalid request parameters"))
    reason = error.detail
    if error.code == "LimitExceeded":
        code, module, text = _LIMITS.get(action, (code, module, text))
    elif error.code in ("InvalidParameter", "InvalidFilter") and error.parameter is not None:
        named = error.parameter.partition("].")[2] or error.parameter
        shown, _ = renamed(error, _NAMES)
        reason = reason.removeprefix(f"{error.parameter}: ")
        if named not in _OF_PARAMETER:
            return out_of_range(shown or named, reason)
        code, module, text = _OF_PARAMETER[named]
    return CmqError(code, module, f"{text}: {reason}")


def missing(name: str) -> CmqError:
    """A parameter that the action needs."""
    return CmqError(4000, 10390, f"lacked of required parameter {name}")


def out_of_range(name: str, detail: str = "") -> CmqError:
    """A value that a parameter cannot have."""
    text = f"parameter {name} value or length is out of range"
    return CmqError(4000, 10350, f"{text}: {detail}" if detail else text)
