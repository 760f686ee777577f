"""Repeating a receive whose answer was lost: finding what the first one took and still holds.

The nonces of a receive with an `attempt` derive from it, so the store needs nothing more than the
leases themselves; only a repeat pays for looking through what is in flight.
"""

from __future__ import annotations

from cirrusmq.claims import Claim, NonceOf
from cirrusmq.core import Core
from cirrusmq.parcel import Parcel
from cirrusmq.scan import scan_partition
from cirrusmq.source import Source


def held_from_attempt(core: Core, source: Source, nonce_of: NonceOf) -> list[Claim]:
    """What an earlier receive with the same attempt holds at this moment.

    In ordered sources nothing behind a message of its group that it holds no more: that one comes
    again, and nobody may have seen a later one before it.
    """
    held = []
    now_ms = core.now_ms()
    for partition in range(source.partitions):
        broken: set[str] = set()
        for parcel in scan_partition(core, source, partition, now_ms):
            if now_ms >= parcel.expires_ms or parcel.sent_ms <= source.purged_ms:
                continue
            live = [place for place in range(parcel.count) if parcel.live(place)]
            places = [place for place in live if _holds(parcel, place, nonce_of, now_ms)]
            if source.ordered:
                group = parcel.sort_key.partition("#")[0]
                ahead = zip(live, places, strict=False) if group not in broken else ()
                places = [place for first, place in ahead if first == place]
                if places != live:
                    broken.add(group)
            if places:
                held.append(Claim(parcel=parcel, places=tuple(places)))
    return held


def _holds(parcel: Parcel, place: int, nonce_of: NonceOf, now_ms: int) -> bool:
    nonce = nonce_of(parcel, place, parcel.receives[place])
    return parcel.held(place, now_ms) and parcel.nonces[place] == nonce
