"""RFC 3339 in UTC with milliseconds, beside the milliseconds since the epoch used inside."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from cirrusmq.base.errors import InvalidParameter

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_SECOND = 253_402_300_799
"""The last second of the year 9999."""
# A text: few calls are given times, and `re` remembers it compiled.
_RFC3339 = r"(?a)\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)"


def format_time(time_ms: int) -> str:
    """Returns a text such as `2026-11-20T08:00:00.123Z`."""
    seconds, milliseconds = divmod(time_ms, 1_000)
    return f"{_format_second(seconds)}.{milliseconds:03}Z"


@lru_cache(maxsize=64)
def _format_second(seconds: int) -> str:
    """Returns the text of a second; cached, since most times of a moment are in the same one."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat().removesuffix("+00:00")


def parse_time(parameter: str, text: str) -> int:
    """Returns milliseconds since the epoch, rounded down. Raises InvalidParameter for no time."""
    try:
        if not re.fullmatch(_RFC3339, text):
            raise ValueError(text)
        moment = datetime.fromisoformat(text.upper())
        return (moment - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError) as error:
        raise InvalidParameter(
            parameter, "must be an RFC 3339 time, such as 2026-11-20T08:00:00.123Z"
        ) from error


def parse_moment(parameter: str, value: str | int | float) -> int:
    """Does what `parse_time` does; a number is in seconds since the epoch, with fractions."""
    if isinstance(value, str):
        return parse_time(parameter, value)
    # NaN is within no bounds.
    if not 0 <= value <= _LAST_SECOND:
        raise InvalidParameter(parameter, f"must be 0 to {_LAST_SECOND:,} seconds since 1970")
    return int(value * 1000)
