"""Repeating a receive whose answer was lost: finding what the first one took and still holds.

The nonces of a receive with an `attempt` derive from it, so the store needs nothing more than the
leases themselves; only a repeat pays for looking through what is in flight.
"""

from __future__ import annotations

from cirrusmq.claims import Claim, NonceOf
from cirrusmq.core import Core
from cirrusmq.scan import scan_partition
from cirrusmq.source import Source


def held_from_attempt(core: Core, source: Source, nonce_of: NonceOf) -> list[Claim]:
    """What an earlier receive with the same attempt holds at this moment."""
    held = []
    now_ms = core.now_ms()
    for partition in range(source.partitions):
        for parcel in scan_partition(core, source, partition, now_ms):
            places = tuple(
                place
                for place in range(parcel.count)
                if parcel.held(place, now_ms)
                and now_ms < parcel.expires_ms
                and parcel.sent_ms > source.purged_ms
                and parcel.nonces[place] == nonce_of(parcel, place, parcel.receives[place])
            )
            if places:
                held.append(Claim(parcel=parcel, places=places))
    return held
