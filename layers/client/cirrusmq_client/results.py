"""A handler's results for a message. A return of None is `Ack`."""

from __future__ import annotations

import math
import random
from collections.abc import Coroutine, Generator, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from numbers import Real
from typing import TypeAlias

LONGEST_SECONDS = 43_200
REASON_CHARACTERS = 256


@dataclass(frozen=True, slots=True)
class Ack:
    """The message is done, and is deleted."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The message is delivered again, `after` seconds or a timedelta.

    `after`: 0 to 43,200 seconds (12 hours); less counts as 0, and more as 43,200. None takes the
    source's retry policy.
    """

    after: float | timedelta | None = None

    def __post_init__(self) -> None:
        after = self.after
        if after is None or isinstance(after, timedelta):
            return
        if isinstance(after, bool) or not isinstance(after, Real) or after != after:
            raise TypeError(f"after must be a number of seconds or a timedelta, not {after!r}")

    @property
    def delay_seconds(self) -> int | None:
        """Whole seconds for the service, 0 to 43,200, or None."""
        if self.after is None:
            return None
        after = self.after
        seconds = after.total_seconds() if isinstance(after, timedelta) else after
        return math.ceil(min(LONGEST_SECONDS, max(0, seconds)))


@dataclass(frozen=True, slots=True)
class Wait(Retry):
    """The library's own wait: random between half of `after` and `after`, for each call."""

    @property
    def delay_seconds(self) -> int | None:
        """Whole seconds, drawn once for the messages of a call, so that they move together."""
        longest = Retry(self.after).delay_seconds
        return None if longest is None else random.randint((longest + 1) // 2, longest)


@dataclass(frozen=True, slots=True)
class Untried(Retry):
    """The library's own: no handler started, so the message comes again.

    This receive does not count.
    """


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The message is moved to the dead-letter queue, with a reason.

    An exception or another value as the reason is converted to text. The service takes 256
    characters; a longer reason, such as a traceback, is cut.
    """

    reason: str | BaseException | None = None

    def __post_init__(self) -> None:
        if self.reason is not None:
            object.__setattr__(self, "reason", _text(self.reason))


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """The message, which asks for a reply, gets this one, and is deleted.

    Body and attributes have at most 256 KB. Only for messages of queues with a `reply_by`.
    """

    body: str | bytes
    attributes: Mapping[str, str | bytes] = field(default_factory=dict)


Result: TypeAlias = Ack | Retry | DeadLetter | Reply
HandlerResult: TypeAlias = Ack | Retry | DeadLetter | Reply | None
"""Result of a handler of single messages. None is `Ack`, or `Retry` with `none_means_retry`."""
BatchResult: TypeAlias = HandlerResult | Sequence[HandlerResult]
"""Result of a handler of lists: one result for all messages, or a list with one for each."""


class UnknownResult(TypeError):
    """A handler returned an invalid result."""

    def __init__(self, value: object) -> None:
        told = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        super().__init__(
            f"its handler returned {told}, not None, Ack(), Retry(), DeadLetter() or Reply()"
        )


def check_result(value: object) -> HandlerResult:
    """Returns the value if it is a valid result of a handler. Raises UnknownResult otherwise.

    Closes a coroutine in its place, so that Python does not warn about it, too.
    """
    if value is None or isinstance(value, Ack | Retry | DeadLetter | Reply):
        return value
    _close(value)
    raise UnknownResult(value)


def check_results(values: Sequence[object]) -> list[HandlerResult]:
    """Returns the values if all are valid results. Raises UnknownResult otherwise."""
    try:
        return [check_result(value) for value in values]
    except UnknownResult:
        _close(values)
        raise


def read_result(value: object, none: Result) -> Result:
    """Returns a handler's return value as a result, `none` for None. Raises UnknownResult."""
    return check_result(value) or none


def for_each(value: object, count: int) -> list[object]:
    """Returns a value for each message, from one for all or a list. Raises ValueError."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return [value] * count
    if len(value) != count:
        _close(value)
        raise ValueError(f"its handler returned {len(value)} results for {count} messages")
    return list(value)


def _close(value: object) -> None:
    """Closes coroutines and generators that nobody will continue, also in a collection."""
    found: Iterable[object] = [value]
    if isinstance(value, Mapping):
        found = value.values()
    elif isinstance(value, list | tuple | Set):
        found = value
    for each in found:
        if isinstance(each, Coroutine | Generator):
            with suppress(Exception):
                each.close()


def _text(reason: object) -> str:
    """Returns a handler's reason (an exception, bytes, …) as text that the service accepts."""
    try:
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    except Exception:
        text = type(reason).__name__
    if isinstance(reason, BaseException):
        text = f"{type(reason).__name__}: {text}"
    # Half an emoji, or a file name that is not UTF-8, cannot be sent.
    return text[:REASON_CHARACTERS].encode(errors="replace").decode()
