"""The errors of the contract: one class a code. A class's docstring is the sentence a user reads.

Nothing here knows HTTP; the status of each code is decided where answers are made.
"""

from __future__ import annotations

from collections.abc import Sequence


class CirrusMQError(Exception):
    """Something went wrong."""

    parameter: str | None = None
    retry_after_seconds: int | None = None
    cursor: str | None = None
    """To go on with, behind what the error is about."""

    def __init__(self, detail: str | None = None) -> None:
        self.detail = detail or (type(self).__doc__ or "").strip()
        super().__init__(self.detail)

    @property
    def code(self) -> str:
        """The stable code of the contract: the class's name."""
        return type(self).__name__


class InvalidParameter(CirrusMQError):
    """A value has the wrong type or is out of range."""

    def __init__(self, parameter: str, detail: str) -> None:
        super().__init__(f"{parameter}: {detail}")
        self.parameter = parameter


class InvalidFilter(CirrusMQError):
    """A filter does not parse."""

    parameter = "filter"


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

    def __init__(self, detail: str | None = None, *, knows_key: bool = False) -> None:
        super().__init__(detail)
        self.knows_key = knows_key
        """True if a key of this id exists. For the log: callers do not see it."""


class Forbidden(CirrusMQError):
    """The access key's account may not do this."""


class NotFound(CirrusMQError):
    """There is no such route."""


class MethodNotAllowed(CirrusMQError):
    """The route does not take this method."""

    def __init__(self, allowed: Sequence[str]) -> None:
        super().__init__()
        self.allowed = tuple(allowed)
        """The methods that it takes."""


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

    def __init__(self, detail: str | None = None, retry_after_seconds: int = 1) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(CirrusMQError):
    """The store did not answer in time; the call may have taken effect."""

    retry_after_seconds = 1
