"""The times of a schedule: pure. All times are milliseconds since the epoch.

    a cron expression   five fields, in the local time of a zone; minutes are the finest
    every n seconds     the multiples of n since the beginning of 1970 in UTC

If clocks are set forward, a time that does not exist is the moment of the jump. If they are
set back, a time that comes twice is the first of the two. An expression with all hours goes on
through both hours, by the local clock's minutes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from cirrusmq.base.errors import InvalidParameter

if TYPE_CHECKING:
    from cronsim import CronSim

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIELDS = 5
_MAX_SHIFT = timedelta(days=2)
"""More than any clock was ever set back or forward."""
_ALL_HOURS = frozenset(range(24))


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """When a schedule fires: exactly one of `cron` and `every_seconds`."""

    cron: str | None = None
    time_zone: str = "UTC"
    every_seconds: int | None = None


def check_rule(rule: Rule, now_ms: int) -> None:
    """Raises InvalidParameter if the rule cannot be read, or has no time within 50 years."""
    if (rule.cron is None) == (rule.every_seconds is None):
        raise InvalidParameter("cron", "give exactly one of cron and every_seconds")
    if rule.every_seconds is not None:
        if rule.every_seconds % 60:
            raise InvalidParameter("every_seconds", "must be a multiple of 60")
        return
    _zone(rule.time_zone)
    assert rule.cron is not None
    if len(rule.cron.split()) != _FIELDS:
        raise InvalidParameter(
            "cron", "must have five fields: minute, hour, day of month, month, day of week"
        )
    if next_after(rule, now_ms) is None:
        raise InvalidParameter("cron", "has no time within 50 years")


def next_after(rule: Rule, after_ms: int) -> int | None:
    """Returns the first time after a moment, or None if there is none within 50 years."""
    if rule.every_seconds is not None:
        step_ms = rule.every_seconds * 1000
        return (after_ms // step_ms + 1) * step_ms
    return next((time for time in _times(rule, after_ms) if time > after_ms), None)


def latest(rule: Rule, from_ms: int, until_ms: int, count: int) -> list[int]:
    """Returns the last `count` times from one moment to another, both included, in order."""
    if rule.every_seconds is not None:
        step_ms = rule.every_seconds * 1000
        last = until_ms // step_ms * step_ms
        first = max(-(-from_ms // step_ms) * step_ms, last - (count - 1) * step_ms)
        return list(range(first, last + 1, step_ms))
    found: deque[int] = deque(maxlen=count)
    for time in _times(rule, until_ms, backwards=True):
        if time > until_ms or (found and found[0] == time):
            continue
        if time < from_ms or len(found) == count:
            break
        found.appendleft(time)
    return list(found)


def _times(rule: Rule, around_ms: int, *, backwards: bool = False) -> Iterator[int]:
    """Yields times in order, beginning before `around_ms`, or with `backwards` after it.

    A time may be repeated.
    """
    zone = _zone(rule.time_zone)
    assert rule.cron is not None
    around = _EPOCH + timedelta(milliseconds=around_ms)
    start = around.astimezone(zone)
    parts = rule.cron.split()
    if _read(rule.cron, start.replace(tzinfo=None)).hours == _ALL_HOURS:
        # Each hour that there is: real time goes on, and with `*` cronsim changes no time. A minute
        # of local time may lie in the hour that the clocks skip, or in the other of two same ones.
        start = (around + timedelta(minutes=1 if backwards else -1)).astimezone(zone)
        expression = " ".join([parts[0], "*", *parts[2:]])
        for moment in _read(expression, start, backwards=backwards):
            yield _ms(moment)
        return
    naive = start.replace(tzinfo=None) + (_MAX_SHIFT if backwards else -_MAX_SHIFT)
    for moment in _read(rule.cron, naive, backwards=backwards):
        yield _ms(_existing(moment, zone))


def _existing(naive: datetime, zone: tzinfo) -> datetime:
    """Returns the first moment of a local time, or the jump if the clock jumps over it."""
    moment = naive.replace(tzinfo=zone, fold=0)
    utc = moment.astimezone(UTC)
    if utc.astimezone(zone).replace(tzinfo=None) == naive:
        return utc
    # fold=0 has the offset of before the jump: by the difference it is behind the jump.
    before, after = moment.utcoffset(), moment.replace(fold=1).utcoffset()
    assert before is not None and after is not None
    low, high = utc - (after - before), utc
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) // 2
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)


def _read(expression: str, start: datetime, *, backwards: bool = False) -> CronSim:
    from cronsim import CronSim, CronSimError

    try:
        return CronSim(expression, start, reverse=backwards)
    except (CronSimError, AssertionError, ValueError, TypeError, RecursionError) as error:
        reason = str(error) or "it cannot be read"
        raise InvalidParameter("cron", f"is no cron expression: {reason}") from error


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    """Returns a zone of the package `tzdata`, which is the same on every machine."""
    from importlib.resources import files
    from zoneinfo import ZoneInfo

    if name == "UTC":
        return UTC
    root = files("tzdata")
    try:
        known = _zone_names()
        if name not in known:
            raise KeyError(name)
        with root.joinpath("zoneinfo", *name.split("/")).open("rb") as held:
            return ZoneInfo.from_file(held, key=name)
    except (KeyError, OSError, ValueError) as error:
        raise InvalidParameter(
            "time_zone", "must be a time zone of IANA, such as UTC or Europe/Berlin"
        ) from error


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    from importlib.resources import files

    return frozenset(files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


def _ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)
