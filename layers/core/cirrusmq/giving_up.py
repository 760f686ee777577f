"""Whether a message that could be received is given up instead: the pure rule of dead letters."""

from __future__ import annotations

from cirrusmq.parcel import Parcel
from cirrusmq.source import Source


def reason_to_give_up(source: Source, parcel: Parcel, place: int, now_ms: int) -> str | None:
    """`max_receives`, `max_age` or `retries` where the message is to leave its source.

    It moves to the dead-letter queue; a subscription that has none may drop it.

    Never one that is held, or still delayed; one that waits for a retry may be too old.
    """
    dead_letter = source.dead_letter
    if dead_letter is None and not source.drops:
        return None
    if not parcel.live(place) or now_ms >= parcel.expires_ms:
        return None
    if parcel.held(place, now_ms) or parcel.delayed(place, now_ms):
        return None
    max_age = dead_letter.max_age_seconds if dead_letter else None
    if max_age is not None and now_ms - parcel.sent_ms > max_age * 1000:
        return "max_age"
    if parcel.ready_ms(place) > now_ms:
        return None
    receives = parcel.receives[place]
    max_receives = dead_letter.max_receives if dead_letter else None
    if max_receives is not None and receives >= max_receives:
        return "max_receives"
    if source.retry is not None and receives and source.retry.ends:
        retries = source.retry.max_retries
        if retries is not None and receives > retries:
            return "retries"
    return None
