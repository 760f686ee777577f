"""One invocation of a function, within Lambda's limits: size, time, links of a chain.

Source: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from cirrusmq_local.cloud.ids import make_id
from cirrusmq_local.cloud.template import Function

Handler: TypeAlias = Callable[[Any, Any], Any]

PAYLOAD_BYTES = 6_291_556
"""Maximum size of an event, and of an answer as Lambda's runtime encodes it."""
LINKS = 16
"""Maximum runs of a function in one chain of invocations, unless it is allowed to loop."""
_ESCAPED_BYTES = 12
"""Maximum size of one character in an answer's JSON: a pair of `\\uXXXX`."""


class FunctionError(Exception):
    """Lambda ended the invocation or dropped its answer; the caller learns nothing else."""


class EventTooLargeError(FunctionError):
    """The event is larger than Lambda takes; the function has not run."""


class AnswerTooLargeError(FunctionError):
    """The function ran to its end, and its answer is larger than Lambda passes on."""


class TimedOutError(FunctionError):
    """The function was ended at its timeout."""


class TooManyRequestsError(FunctionError):
    """The function's reserved concurrency is used up; this call has not run."""


class _Ended(BaseException):
    """The function's time is over. Nothing in the product catches this."""


class MeasuredEvent(dict[str, Any]):
    """An event whose size its maker has checked: Lambda takes it."""


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """A running function. `now` and `ends` are seconds of one clock."""

    function: Function
    now: Callable[[], float]
    ends: float
    chain: tuple[str, ...]
    """Names of the functions that led to this invocation; the last is its own."""

    def check_time(self) -> None:
        """Ends the calling thread after the timeout, so that its later calls take no effect."""
        if self.now() > self.ends:
            raise _Ended


running: ContextVar[Invocation | None] = ContextVar("running", default=None)
"""The invocation that runs in this context, or None outside of an invocation."""


class Context:
    """A handler's context of its invocation."""

    def __init__(self, invocation: Invocation) -> None:
        function = invocation.function
        self.function_name = function.name
        self.function_version = "$LATEST"
        self.memory_limit_in_mb = function.memory_mb
        self.invoked_function_arn = function.arn
        self.log_group_name = "/aws/lambda/cirrusmq"
        self.log_stream_name = function.name
        self._invocation = invocation
        self._request_id: str | None = None

    @property
    def aws_request_id(self) -> str:
        """The invocation's id, made on first use, as only logs use it."""
        if self._request_id is None:
            self._request_id = make_id()
        return self._request_id

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function is ended."""
        return max(0, int((self._invocation.ends - self._invocation.now()) * 1_000))


def invoke(
    function: Function,
    handler: Handler,
    event: Any,
    now: Callable[[], float],
    chain: tuple[str, ...] = (),
) -> Any:
    """Runs a handler. Returns its answer, or raises its own error or a FunctionError.

    `chain`: names of the functions that led to this invocation.
    """
    check_event(function, event)
    invocation = Invocation(
        function=function,
        now=now,
        ends=now() + function.timeout_seconds,
        chain=(*chain, function.name),
    )
    before = running.set(invocation)
    try:
        answer = handler(event, Context(invocation))
        invocation.check_time()
    except _Ended:
        text = f"{function.name} was ended after {function.timeout_seconds} s"
        raise TimedOutError(text) from None
    finally:
        running.reset(before)
    size = answer_bytes(answer)
    if size > PAYLOAD_BYTES:
        text = f"{function.name}: the answer has {size} bytes, more than {PAYLOAD_BYTES}"
        raise AnswerTooLargeError(text)
    return answer


def check_event(function: Function, event: Any) -> None:
    """Raises EventTooLargeError for an event that Lambda does not take."""
    known = isinstance(event, MeasuredEvent) or _is_small(event)
    if not known and _encoded_bytes(event) > PAYLOAD_BYTES:
        raise EventTooLargeError(f"{function.name}: the event has more than {PAYLOAD_BYTES} bytes")


def answer_bytes(answer: Any) -> int:
    """Returns the size of an answer for Lambda, whose runtime escapes characters beyond ASCII.

    Returns 0, without encoding, for an answer that is small however much is escaped.
    """
    return 0 if _is_small(answer) else len(json.dumps(answer, default=str))


def _is_small(held: Any) -> bool:
    """Returns True for an HTTP request or answer that is small however much is escaped.

    Beside the body there are only headers, which are far below the limit.
    """
    if not isinstance(held, dict) or not ("requestContext" in held or "statusCode" in held):
        return False
    return _ESCAPED_BYTES * len(held.get("body") or "") < PAYLOAD_BYTES // 2


def _encoded_bytes(event: Any) -> int:
    try:
        return len(msgspec.json.encode(event))
    except UnicodeEncodeError:  # a header that is no text, which the function refuses itself
        return len(json.dumps(event))


def goes_on(function: Function, chain: tuple[str, ...]) -> bool:
    """Returns True if Lambda lets a chain of invocations lead to the function once more."""
    return function.may_loop or chain.count(function.name) < LINKS
