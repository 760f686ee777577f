"""Errors by the service's own codes and words, and the contract's errors in these codes."""

from __future__ import annotations

from cirrusmq.base.errors import CirrusMQError

_STATUS = {
    "AccessDenied": 403,
    "InternalError": 500,
    "InvalidAccessKeyId": 403,
    "MessageNotExist": 404,
    "SignatureDoesNotMatch": 403,
    "TimeExpired": 408,
    "TopicNotExist": 404,
}
_TEXTS = {
    "AccessDenied": "The OwnerId that your Access Key Id associated to is forbidden for this"
    " operation.",
    "InternalError": "Internal error.",
    "InvalidAccessKeyId": "The AccessKey Id you provided is not exist.",
    "InvalidAuthorizationHeader": "The Authorization header must be MQ <key id>:<signature>.",
    "InvalidDateHeader": "The Date header must be a time such as Fri, 20 Nov 2026 11:55:27 GMT.",
    "InvalidDigest": "The Content-MD5 you specified is not that of the body.",
    "InvalidQueryString": "The query is not one of this request, or not UTF-8.",
    "MalformedXML": "The XML you provided is not well-formed, or not that of this request.",
    "MessageNotExist": "Message not exist.",
    "MissingAuthorizationHeader": "The Authorization header is required.",
    "MissingDateHeader": "The Date header is required.",
    "MissingReceiptHandle": "ReceiptHandle is required.",
    "QpsLimitExceeded": "The QPS limit is exceeded.",
    "ReceiptHandleError": "The receipt handle you provide is not valid.",
    "SignatureDoesNotMatch": "The request signature we calculated does not match the signature you"
    " provided. Check your key and signing method.",
    "TimeExpired": "The http request you sent is expired.",
    "TopicNotExist": "The topic name you provided is not exist.",
}
_OF_CONTRACT = {
    "Conflict": "MessageNotExist",
    "Forbidden": "AccessDenied",
    "LimitExceeded": "QpsLimitExceeded",
    "MessageNotFound": "MessageNotExist",
    "ReceiptExpired": "MessageNotExist",
    "Throttled": "QpsLimitExceeded",
    "TopicNotFound": "TopicNotExist",
    "Unauthenticated": "InvalidAccessKeyId",
    "Unavailable": "InternalError",
}


class MqError(Exception):
    """A refusal, by its code."""

    def __init__(self, code: str, detail: str = "") -> None:
        text = _TEXTS.get(code, "")
        self.code = code
        self.message = f"{text} {detail}".strip() or code
        super().__init__(self.message)

    @property
    def status(self) -> int:
        """The status of the HTTP answer."""
        return _STATUS.get(self.code, 400)


class HandleErrors(Exception):
    """Some of a request's handles ended nothing: each with the code of its refusal."""

    def __init__(self, codes: dict[str, str]) -> None:
        super().__init__()
        self.codes = codes


def text_of(code: str) -> str:
    """The words of a code that is known."""
    return _TEXTS[code]


def code_of(error: CirrusMQError) -> str:
    """The code of an error of the core."""
    return _OF_CONTRACT.get(error.code, "InvalidArgument")


def of_contract(error: CirrusMQError) -> MqError:
    """The error of an operation of the core."""
    return MqError(code_of(error), error.detail)


def invalid(detail: str) -> MqError:
    """A value that is not allowed."""
    return MqError("InvalidArgument", detail)
