"""Errors in SQS's own shapes and words, and the contract's errors in these shapes."""

from __future__ import annotations

from cirrusmq.base.errors import CirrusMQError
from cirrusmq_dialects.own_names import renamed

_OWN = "AWS.SimpleQueueService."
_QUERY_CODES = {
    "QueueDoesNotExist": f"{_OWN}NonExistentQueue",
    "QueueNameExists": "QueueAlreadyExists",
    "SerializationException": "MalformedInput",
    "UnknownOperation": "UnknownOperationException",
    **{
        shape: f"{_OWN}{shape}"
        for shape in (
            "BatchEntryIdsNotDistinct",
            "BatchRequestTooLong",
            "EmptyBatchRequest",
            "InvalidBatchEntryId",
            "PurgeQueueInProgress",
            "QueueDeletedRecently",
            "TooManyEntriesInBatchRequest",
            "UnsupportedOperation",
        )
    },
}
_COMMON = {
    "AccessDenied": "AccessDeniedException",
    "IncompleteSignature": "IncompleteSignatureException",
    "InternalFailure": "InternalFailure",
    "InvalidAction": "UnknownOperationException",
    "InvalidClientTokenId": "UnrecognizedClientException",
    "InvalidParameterValue": "InvalidParameterValueException",
    "MissingAction": "MissingActionException",
    "MissingParameter": "MissingRequiredParameterException",
    "SerializationException": "SerializationException",
    "ServiceUnavailable": "ServiceUnavailableException",
    "SignatureDoesNotMatch": "InvalidSignatureException",
    "UnknownOperation": "UnknownOperationException",
}
"""Errors of all services, not of SQS alone: their names in the JSON protocol."""
_OF_CONTRACT = {
    "AlreadyExists": "QueueNameExists",
    "BatchTooLarge": "BatchRequestTooLong",
    "Conflict": "UnsupportedOperation",
    "Forbidden": "AccessDenied",
    "InUse": "InvalidAttributeValue",
    "LimitExceeded": "OverLimit",
    "MalformedRequest": "SerializationException",
    "NoDeadLetterQueue": "UnsupportedOperation",
    "NotRewindable": "UnsupportedOperation",
    "OperationNotFound": "ResourceNotFoundException",
    "QueueNotFound": "QueueDoesNotExist",
    "Throttled": "RequestThrottled",
    "Unauthenticated": "InvalidClientTokenId",
    "Unavailable": "ServiceUnavailable",
}
_NAMES = {
    "cursor": "NextToken",
    "dead_letter": "RedrivePolicy",
    "labels": "Tags",
    "max_message_bytes": "MaximumMessageSize",
}
"""Names of parameters by the core's, as far as the core may refuse them."""
_PARAMETERS = frozenset({"NextToken", "Tags"})
"""They are parameters in calls that set attributes, too."""
_STATUS = {
    "AccessDenied": 403,
    "InternalFailure": 500,
    "InvalidAddress": 404,
    "InvalidClientTokenId": 403,
    "OverLimit": 403,
    "ReceiptHandleIsInvalid": 404,
    "ResourceNotFoundException": 404,
    "ServiceUnavailable": 503,
    "SignatureDoesNotMatch": 403,
    "UnknownOperation": 404,
}
"""HTTP statuses by shape. Other shapes have 400."""
UNKNOWN_OPERATION = "UnknownOperation"
"""Shape of the error of a call without an action."""
NO_QUEUE = "The specified queue does not exist."


class SqsError(Exception):
    """A refusal, by the name of its shape."""

    def __init__(self, shape: str, message: str, *, whole: bool = False) -> None:
        """`whole`: of one entry, it refuses the whole batch."""
        super().__init__(message)
        self.shape, self.message, self.whole = shape, message, whole

    @property
    def status(self) -> int:
        """The status of the HTTP answer."""
        return _STATUS.get(self.shape, 400)

    @property
    def is_senders(self) -> bool:
        """True if the fault is the caller's."""
        return self.status < 500

    @property
    def type(self) -> str:
        """Its name in the JSON protocol."""
        if self.shape in _COMMON:
            return f"com.amazon.coral.service#{_COMMON[self.shape]}"
        return f"com.amazonaws.sqs#{self.shape}"

    @property
    def query_code(self) -> str:
        """Its name in the query protocol, by which SDKs compare."""
        return _QUERY_CODES.get(self.shape, self.shape)


def no_action(action: str) -> SqsError:
    """The error of an action that there is not, or not at this path."""
    return SqsError("InvalidAction", f"The action {action[:80]} is not valid for this endpoint.")


def of_contract(error: CirrusMQError, *, attributes: bool = False) -> SqsError:
    """The error of an operation of the core; `attributes`: of a call that sets them."""
    if error.code == "QueueNotFound":
        return SqsError("QueueDoesNotExist", NO_QUEUE)
    name, reason = renamed(error, _NAMES)
    if name is not None:
        is_attribute = attributes and name not in _PARAMETERS
        shape = "InvalidAttributeValue" if is_attribute else "InvalidParameterValue"
        return SqsError(shape, f"Invalid value for the parameter {name}. Reason: {reason}")
    shape = "InvalidAttributeValue" if attributes else "InvalidParameterValue"
    return SqsError(_OF_CONTRACT.get(error.code, shape), reason)


def reason_of(error: CirrusMQError) -> str:
    """The reason of a refusal of the core, without the core's name of the parameter."""
    return renamed(error, _NAMES)[1]


def missing(name: str, *, whole: bool = False) -> SqsError:
    """A parameter that the action needs."""
    text = f"The request must contain the parameter {name}."
    return SqsError("MissingParameter", text, whole=whole)


def invalid(name: str, value: object, reason: str) -> SqsError:
    """A value of a parameter that is not allowed."""
    return SqsError(
        "InvalidParameterValue",
        f"Value {str(value)[:200]} for parameter {name} is invalid. Reason: {reason}",
    )


def invalid_value(name: str, reason: str = "") -> SqsError:
    """A value of a queue's attribute that is not allowed."""
    told = f" Reason: {reason}" if reason else ""
    return SqsError("InvalidAttributeValue", f"Invalid value for the parameter {name}.{told}")
