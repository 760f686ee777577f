"""Rules of a send with a `replace` key: its refusals, and how long its message may be put off."""

from __future__ import annotations

import msgspec

from cirrusmq.base.errors import InvalidParameter
from cirrusmq.model.queue import Queue


class Replacement(msgspec.Struct, frozen=True, kw_only=True):
    """The wish of a message to replace another one."""

    key: str
    within_seconds: int | None = None
    """How long after the first send under the key it is due at the latest; None: no bound."""
    repeatable: bool = False
    """True if the send has an attempt, so that its client may repeat it."""


def check_replacement(
    queue: Queue, replacement: Replacement, count: int, delay_seconds: int, *, deduplicated: bool
) -> None:
    """Raises InvalidParameter if the queue or the rest of the request allows no replacement.

    count: the messages of the request. delay_seconds: how long the message is delayed.
    """
    name = "messages[0].replace"
    if count > 1:
        raise InvalidParameter("messages", "a send with replace has exactly 1 message")
    if deduplicated:
        raise InvalidParameter(name, "and deduplication_id exclude each other: give one of them")
    if queue.attributes.ordered:
        raise InvalidParameter(name, "is not allowed in an ordered queue")
    if queue.log_since_ms is not None:
        raise InvalidParameter(name, "is not allowed in a queue that has or had receivers")
    within = replacement.within_seconds
    if within is not None and within < delay_seconds:
        raise InvalidParameter(
            "messages[0].replace_within_seconds",
            f"must be at least the delay of the message, {delay_seconds} seconds",
        )


def due_at_latest_ms(replacement: Replacement, first_ms: int, now_ms: int) -> int | None:
    """Returns when the message is due at the latest, never before now; None without a bound.

    first_ms: time of the first send in the row of messages that replaced each other.
    """
    if replacement.within_seconds is None:
        return None
    return max(first_ms + replacement.within_seconds * 1000, now_ms)
