"""An `attempt`: a ULID that a client makes once and shows again when it repeats a call."""

from __future__ import annotations

from cirrusmq.base import limits, ulid
from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.timestamps import format_time


def check_attempt(attempt: str, now_ms: int, scale: float) -> int:
    """Milliseconds since the epoch in the attempt; InvalidParameter where it is not fresh.

    A client repeats a call in its own time: the age is of real seconds, of which each is `scale`
    of the service's.
    """
    rule = f"must be a ULID at most 120 s old and 2 s ahead; it is {format_time(now_ms)} here"
    try:
        begun_ms = ulid.time_of(attempt)
    except ValueError as error:
        raise InvalidParameter("attempt", rule) from error
    oldest_ms = now_ms - int(limits.ATTEMPT_AGE_MS * scale)
    if not oldest_ms <= begun_ms <= now_ms + limits.ATTEMPT_AHEAD_MS:
        raise InvalidParameter("attempt", rule)
    return begun_ms
