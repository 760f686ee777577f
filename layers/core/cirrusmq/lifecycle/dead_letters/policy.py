"""The pure rule of dead letters: if a message that could be received is dead-lettered instead."""

from __future__ import annotations

from cirrusmq.base import limits
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.pauses import paused_ms
from cirrusmq.model.source import Source


def age_limit_ms(source: Source) -> int | None:
    """Returns the age at which messages are dead-lettered, or None without a limit.

    In a queue its `max_age_seconds`. In a subscription with a dead-letter queue two minutes before
    the end of a message's life: one that would expire while retries remain is not lost in silence.
    """
    if source.dead_letter is None:
        return None
    if source.subscription is not None:
        return limits.TOPIC_LIFE_SECONDS * 1000 - limits.RESCUE_MS
    max_age = source.dead_letter.max_age_seconds
    return None if max_age is None else max_age * 1000


def too_old(source: Source, parcel: Parcel, now_ms: int) -> bool:
    """Returns True if the messages have reached the source's limit of age, pauses aside."""
    limit_ms = age_limit_ms(source)
    if limit_ms is None or now_ms - parcel.sent_ms <= limit_ms:
        return False
    return now_ms - parcel.sent_ms - paused_ms(source.pauses, parcel.sent_ms, now_ms) > limit_ms


def dead_letter_reason(source: Source, parcel: Parcel, index: int, now_ms: int) -> str | None:
    """Returns `max_receives`, `max_age`, `retries` or `expired`, or None if the message stays.

    It moves to the dead-letter queue; a subscription without one may drop it.

    A held or delayed message stays; one that waits for a retry may be too old. Near its expiry, and
    after it, a published message is dead-lettered if it was received before: else it has no retries
    ahead of it, and can be received to the end.
    """
    if not source.gives_up or not parcel.live(index):
        return None
    if now_ms >= parcel.expires_ms and not source.rescues:
        return None
    if parcel.held(index, now_ms) or parcel.delayed(index, now_ms):
        return None
    tries, old = parcel.tries(index), too_old(source, parcel, now_ms)
    if old and source.subscription is None:
        return "max_age"
    if parcel.ready_ms(index) <= now_ms:
        max_receives = source.dead_letter.max_receives if source.dead_letter else None
        if max_receives is not None and tries >= max_receives:
            return "max_receives"
        if source.retry is not None and tries and source.retry.ends:
            retries = source.retry.max_retries
            if retries is not None and tries > retries:
                return "retries"
    return "expired" if old and tries else None
