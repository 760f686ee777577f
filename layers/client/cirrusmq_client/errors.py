"""The errors of the contract, a class for each code, and errors of calls without an answer.

A class's docstring is the sentence that the user reads if the service sent none.
"""

from __future__ import annotations

from typing import Any


class CirrusMQError(Exception):
    """Something went wrong."""

    def __init__(
        self,
        detail: str | None = None,
        *,
        status: int | None = None,
        parameter: str | None = None,
        request_id: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        self.detail = detail or (type(self).__doc__ or "").strip()
        self.status = status
        self.parameter = parameter
        self.request_id = request_id
        self.retry_after_seconds = retry_after_seconds
        self.uncertain = False
        """True if this call, or an earlier try of it, may have taken effect nevertheless."""
        super().__init__(self.detail)

    @property
    def code(self) -> str:
        """The stable code of the contract: the class's name."""
        return type(self).__name__


class NotConfigured(CirrusMQError):
    """No URL of the service, or no access key for it, is given."""


class NoAnswer(CirrusMQError):
    """The service did not answer."""


class NotReachable(NoAnswer):
    """Nothing answers at the service's address; the call was not made."""


class CertificateRefused(NotReachable):
    """The certificate of the service is not trusted; the call was not made."""


class ReplyTimedOut(CirrusMQError):
    """No reply came before the request's deadline, and none is taken any more."""


# Made by `make openapi` from the service's errors:


class InvalidParameter(CirrusMQError):
    """A value has the wrong type or is out of range."""


class InvalidFilter(CirrusMQError):
    """A filter does not parse."""


class MalformedRequest(CirrusMQError):
    """The body is not a JSON object in UTF-8."""


class RequestTooLarge(CirrusMQError):
    """The body of the request is over its limit."""


class UnsupportedMediaType(CirrusMQError):
    """The body must be application/json, as it is or gzipped."""


class MessageTooLarge(CirrusMQError):
    """A message's body is over the limit."""


class BatchTooLarge(CirrusMQError):
    """The batch is over 16 entries, or has too many bytes."""


class Unauthenticated(CirrusMQError):
    """The access key is missing or wrong: send Authorization: Bearer <access key id>:<secret>."""


class Forbidden(CirrusMQError):
    """The access key's account may not do this."""


class NotFound(CirrusMQError):
    """There is no such route."""


class MethodNotAllowed(CirrusMQError):
    """The route does not take this method."""


class QueueNotFound(CirrusMQError):
    """There is no queue of this name."""


class TopicNotFound(CirrusMQError):
    """There is no topic of this name."""


class SubscriptionNotFound(CirrusMQError):
    """There is no subscription of this name on the topic."""


class MessageNotFound(CirrusMQError):
    """There is no such message, or it has expired."""


class OperationNotFound(CirrusMQError):
    """There is no such operation, or it ended over 7 days ago."""


class ReceiverNotFound(CirrusMQError):
    """The queue has no receiver of this name."""


class ScheduleNotFound(CirrusMQError):
    """The account has no schedule of this name."""


class ReplyNotFound(CirrusMQError):
    """Replies are kept until 5 minutes after their request's deadline, which are over."""


class GrantNotFound(CirrusMQError):
    """The queue or topic has no grant for this account."""


class KeyNotFound(CirrusMQError):
    """There is no such access key."""


class ReportNotFound(CirrusMQError):
    """There is no finished report yet."""


class AlreadyExists(CirrusMQError):
    """The name, ignoring case, belongs to another resource with other attributes."""


class ReceiptExpired(CirrusMQError):
    """The receipt is not the message's newest, or the message is gone."""


class ReplyTooLate(CirrusMQError):
    """Nobody waits for this reply: the deadline of its request is over."""


class InUse(CirrusMQError):
    """Something else still uses this."""


class NotRewindable(CirrusMQError):
    """Rewinding is off, or the time is before the window."""


class Conflict(CirrusMQError):
    """The present state does not allow this change."""


class LimitExceeded(CirrusMQError):
    """A limit is reached."""


class NoDeadLetterQueue(CirrusMQError):
    """No dead-letter queue is set."""


class Throttled(CirrusMQError):
    """Too many calls; wait, then try again."""


class Unavailable(CirrusMQError):
    """The store did not answer in time; the call may have taken effect."""


# End

BY_CODE: dict[str, type[CirrusMQError]] = {
    error.__name__: error
    for error in CirrusMQError.__subclasses__()
    if error not in (NotConfigured, NoAnswer, ReplyTimedOut)
}


def error_of(
    problem: Any, status: int | None = None, retry_after_seconds: float | None = None
) -> CirrusMQError:
    """The exception for a problem document, or for any other answer with an error's status."""
    known = problem if isinstance(problem, dict) else {}
    fallback: type[CirrusMQError] = CirrusMQError
    if status == 429:
        fallback = Throttled  # by AWS, before any function was called
    elif status is not None and status >= 500:
        fallback = Unavailable
    detail = known.get("detail")
    if detail is None and status is not None:
        detail = f"the service answered {status} without a reason"
    return BY_CODE.get(str(known.get("code")), fallback)(
        detail,
        status=status or known.get("status"),
        parameter=known.get("parameter"),
        request_id=known.get("request_id"),
        retry_after_seconds=retry_after_seconds,
    )
