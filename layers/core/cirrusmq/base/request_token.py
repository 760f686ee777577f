"""An `attempt`: a ULID that a client makes once and shows again when it repeats a call.

Text behind a point, from a client of a later release, is ignored here, and is a part of the
attempt: it is repeated with it.
"""

from __future__ import annotations

from cirrusmq.base import limits, ulid
from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.formats import known_part
from cirrusmq.base.timestamps import format_time

_FURTHER, _CHARACTERS = ".", 128


def check_attempt(attempt: str, now_ms: int, scale: float) -> int:
    """Returns the milliseconds since the epoch in an attempt. Raises InvalidParameter if not fresh.

    A client repeats a call in its own time: the age is in real seconds, each of which is `scale`
    seconds of the service.
    """
    rule = f"must be a ULID at most 120 s old and 2 s ahead; it is {format_time(now_ms)} here"
    try:
        if len(attempt) > _CHARACTERS:
            raise ValueError("no client writes more")
        begun_ms = ulid.time_of(known_part(attempt, _FURTHER, "attempt"))
    except ValueError as error:
        raise InvalidParameter("attempt", rule) from error
    oldest_ms = now_ms - int(limits.ATTEMPT_AGE_MS * scale)
    if not oldest_ms <= begun_ms <= now_ms + limits.ATTEMPT_AHEAD_MS:
        raise InvalidParameter("attempt", rule)
    return begun_ms
