"""Taking from the groups of a partition of an ordered source.

Keys lie group by group, in order of sending. A receiver starts at a random group; where a group's
first live message cannot be had it jumps past the group, so that the cost follows the groups that
it looks at, never their backlog. Reads are strongly consistent: one that missed a claim on an
earlier message could hand out a later one.
"""

from __future__ import annotations

from cirrusmq import dead_letters, rewound, spent
from cirrusmq.claims import Claim, try_claim
from cirrusmq.core import Core
from cirrusmq.errors import Unavailable
from cirrusmq.heads import Taking, Wanted
from cirrusmq.parcel import Parcel
from cirrusmq.scan import LAST_KEY, read_page
from cirrusmq.source import Source
from cirrusmq.storage.parcels import PARCELS, partition_key

_PAGE_PARCELS = 20
_HASH_BITS = 96


def take_from_groups(core: Core, source: Source, partition: int, wanted: Wanted) -> list[Claim]:
    """Claim up to what is wanted, of each group its first messages in order."""
    taking = Taking(wanted)
    pk = partition_key(PARCELS, source.id, partition)
    start = f"{core.random.getrandbits(_HASH_BITS):024x}"
    try:
        for after, until in ((start, LAST_KEY), ("!", start)):
            _take_between(core, source, pk, after, until, taking)
            if taking.full:
                break
    except Unavailable as error:  # of a page, when something may have been claimed already
        taking.refused = error
    return taking.settled()


def _take_between(
    core: Core, source: Source, pk: str, after: str, until: str, taking: Taking
) -> None:
    done_with = ""
    while True:
        page = read_page(core, pk, after, until, _PAGE_PARCELS, from_exclusive=bool(done_with))
        after = page.more_after or ""
        for parcel in page.parcels:
            group = parcel.sort_key.partition("#")[0]
            if group == done_with:
                continue
            if not _take_first(core, source, parcel, taking):
                done_with = group
            if taking.full:
                return
        if not after:
            return
        if after.partition("#")[0] == done_with:
            after = f"{done_with}#{LAST_KEY}"
        done_with = done_with or "-"


def _take_first(core: Core, source: Source, parcel: Parcel, taking: Taking) -> bool:
    """Take what can be had of a group's next parcel; whether the group's next one may follow."""
    now_ms = core.now_ms()
    if now_ms >= parcel.expires_ms or parcel.sent_ms <= source.purged_ms:
        return True
    if parcel.spent():
        spent.clear(core, source, parcel, now_ms)
        return True
    parcel = dead_letters.give_up_first(core, source, parcel, now_ms)
    parcel = rewound.let_in(core, parcel, now_ms)
    live = [place for place in range(parcel.count) if parcel.live(place)]
    free = []
    for place in live:
        if not parcel.receivable(place, now_ms):
            break
        free.append(place)
    places = taking.reserve(parcel, free)
    if not places:
        return not live
    outcome = try_claim(
        core, source, parcel, places, taking.wanted.timeout_seconds, taking.wanted.nonce_of
    )
    if not isinstance(outcome, Claim):
        taking.give_up(parcel, places)
        if isinstance(outcome, Unavailable):
            taking.refused = outcome
        return False
    taking.claims.append(outcome)
    return places == live
