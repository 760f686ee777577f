"""Errors by SNS's codes and words, and the contract's errors in these codes."""

from __future__ import annotations

from cirrusmq.base.errors import CirrusMQError
from cirrusmq_dialects.own_names import renamed

_OF_CONTRACT = {
    "BatchTooLarge": "BatchRequestTooLong",
    "Conflict": "ConcurrentAccess",
    "Forbidden": "AuthorizationError",
    "QueueNotFound": "InvalidParameter",
    "SubscriptionNotFound": "NotFound",
    "Throttled": "Throttled",
    "TopicNotFound": "NotFound",
    "Unauthenticated": "InvalidClientTokenId",
    "Unavailable": "ServiceUnavailable",
}
_LIMITS = {
    "CreateTopic": "TopicLimitExceeded",
    "Subscribe": "SubscriptionLimitExceeded",
}
"""LimitExceeded, in these calls."""
_NAMES = {
    "cursor": "NextToken",
    "dead_letter_queue": "RedrivePolicy",
    "endpoint": "Endpoint",
    "filter": "FilterPolicy",
    "invoke": "Endpoint",
    "labels": "Tags",
    "rate": "DeliveryPolicy",
    "retry": "DeliveryPolicy",
}
"""Names of parameters by the core's, as far as the core may refuse them."""
_STATUS = {
    "AccessDenied": 403,
    "AuthorizationError": 403,
    "FilterPolicyLimitExceeded": 403,
    "InternalError": 500,
    "InvalidClientTokenId": 403,
    "NotFound": 404,
    "ResourceNotFound": 404,
    "ServiceUnavailable": 503,
    "SignatureDoesNotMatch": 403,
    "SubscriptionLimitExceeded": 403,
    "Throttled": 429,
    "TopicLimitExceeded": 403,
}
"""HTTP statuses by code. Other codes have 400."""


class SnsError(Exception):
    """A refusal, by its code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message

    @property
    def status(self) -> int:
        """The status of the HTTP answer."""
        return _STATUS.get(self.code, 400)

    @property
    def is_senders(self) -> bool:
        """True if the fault is the caller's."""
        return self.status < 500


def of_contract(error: CirrusMQError, action: str) -> SnsError:
    """The error of an operation of the core, in a call of this action."""
    if error.code == "TopicNotFound":
        return SnsError("NotFound", "Topic does not exist")
    if error.code == "SubscriptionNotFound":
        return SnsError("NotFound", "Subscription does not exist")
    if error.code == "LimitExceeded":
        return SnsError(_LIMITS.get(action, "InvalidParameter"), error.detail)
    name, reason = renamed(error, _NAMES)
    if name is not None:
        # A filter policy's members are named by their way from `policy`, the core's name of it.
        reason = reason.removeprefix("policy: ").removeprefix("policy.")
        return invalid(f"{name}: {reason}")
    code = _OF_CONTRACT.get(error.code, "InvalidParameter")
    return invalid(reason) if code == "InvalidParameter" else SnsError(code, reason)


def invalid(reason: str) -> SnsError:
    """A parameter that is not as it must be; `reason` begins with its name."""
    return SnsError("InvalidParameter", f"Invalid parameter: {reason}")


def missing(name: str) -> SnsError:
    """A parameter that the action needs."""
    return SnsError("InvalidParameter", f"Invalid parameter: {name} Reason: no value for it.")
