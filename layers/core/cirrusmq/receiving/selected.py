"""Receiving by an attribute: a bounded look at what can be claimed, and a key to go on behind.

A call reads parcels from the beginning of a partition, or from behind the key that the call before
answered, and claims what has the attribute; everything else stays as it is. It ends when it has
enough, or when `SELECT_UNITS` are used; contents outside of parcels are read for it, and count.

    partitions   2 ─────────────── 3 ──────── 0 ─── 1 ────────── 2: all is seen
    calls        ├─ 8 units ─┤├─ 8 units ─┤├─ 8 units ─┤├── 5 ──┤

    after:  first partition of the walk / this one / behind this key
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Sequence

import msgspec

from cirrusmq.access import source_rates
from cirrusmq.base.errors import InvalidParameter, MessageTooLarge, Unavailable
from cirrusmq.lifecycle import chores
from cirrusmq.model.message import Message, from_base64
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving.claim_batch import Batch, ReceiveLimits
from cirrusmq.receiving.heads.scan import Claimable, claimable_indexes
from cirrusmq.receiving.receive import PreparedReceive, claimed_of, received_of
from cirrusmq.receiving.receive_request import Received, Where
from cirrusmq.receiving.unordered import claim_all, left_to_claim, plan
from cirrusmq.runtime.core import Core
from cirrusmq.storage import cursors
from cirrusmq.storage.bisection import ReadBudget
from cirrusmq.storage.bodies.contents import read_what_can_be
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.queries import from_key, until_key

SELECT_UNITS = 8.0
"""Read units of a call, the attributes of its queue and the page that ends it aside."""
_PAGE_UNITS = 0.5
_UNIT_BYTES = 8_192
"""Bytes of an item for a read unit with eventual consistency."""
_OBJECT_UNITS = 2.0
"""A GET of the bucket costs about as much as this number of read units."""


class Selected(msgspec.Struct, frozen=True, kw_only=True):
    """The messages that a call claimed. `after`: for the next one; None: begin again."""

    messages: list[Received]
    seen_all: bool
    """Everything that could be received was looked at since the first of these calls."""
    after: str | None


class _At(msgspec.Struct, frozen=True):
    """The place at which a call goes on; partitions are numbered through all sources of a group."""

    first: int
    number: int
    behind: str = ""


class _Look(msgspec.Struct):
    """The results of the look at one page."""

    behind: str | None = ""
    """The key behind which it goes on; None: all was looked at."""
    plans: list[Claimable] = []
    contents: dict[str, dict[int, Message]] = {}
    """Messages that match, by the key of their parcel, and by their places there."""


def receive_where(core: Core, begun: PreparedReceive) -> Selected:
    """Claims up to `max` messages that have the attribute, unless no answer holds them.

    Raises InvalidParameter if `after` is of another call.
    """
    source, limit = begun.source, begun.wanted.limit
    if source.paused:
        return Selected(messages=[], seen_all=False, after=None)
    if source.receive_rate is None:
        return _select(core, begun, limit)
    second = source_rates.second_of(core)
    allowed = source_rates.allow_receives(core, source.id, source.receive_rate, limit)
    if not allowed:
        begun.wait.limited = True
        return Selected(messages=[], seen_all=False, after=None)
    claimed = 0
    try:
        selected = _select(core, begun, allowed)
        claimed = len(selected.messages)
    finally:
        source_rates.give_back(core, source.id, allowed - claimed, second)
    return selected


def _select(core: Core, begun: PreparedReceive, limit: int) -> Selected:
    """Claims up to `limit` messages that have the attribute."""
    source, request = begun.source, begun.request
    assert isinstance(request.where, Where)
    wanted = msgspec.structs.replace(begun.wanted, limit=limit)
    value = _value_of(request.where)
    listing = _listing(source, request.where.name, value)
    heads = [(each, number) for each in source.all for number in range(each.partitions)]
    at = _begin(core, len(heads), request.after, listing)
    select = _Select(core, request.where.name, value, wanted)
    while True:
        behind = select.look(*heads[at.number], at.behind)
        if behind is not None:
            at = _At(at.first, at.number, behind)
            break
        at = _At(at.first, (at.number + 1) % len(heads))
        if at.number == at.first:
            return Selected(messages=select.received, seen_all=True, after=None)
        if select.ends:
            break
    text = f"{at.first}/{at.number}/{at.behind}"
    after = cursors.make(core, text, *listing)
    return Selected(messages=select.received, seen_all=False, after=after)


def _value_of(where: Where) -> str | bytes:
    if isinstance(where.value, str):
        return where.value
    return from_base64("where.value", where.value.base64)


def _listing(source: Source, name: str, value: str | bytes) -> tuple[str, ...]:
    """Returns the name of the listing of an `after`: it is good for one question alone."""
    kind, content = ("text", value.encode()) if isinstance(value, str) else ("bytes", value)
    return "where", source.owner_id, name, kind, hashlib.sha256(content).hexdigest()


def _begin(core: Core, count: int, after: str | msgspec.UnsetType, listing: tuple[str, ...]) -> _At:
    if isinstance(after, msgspec.UnsetType):
        first = core.random.randrange(count)
        return _At(first, first)
    try:
        text = cursors.read(core, after, *listing)
    except InvalidParameter as error:
        reason = "must be the after that the receive before answered, with the same where"
        raise InvalidParameter("after", reason) from error
    assert text is not None
    first_text, number, behind = text.split("/")
    # A group that was rewound has more sources than before, or fewer.
    return _At(int(first_text) % count, int(number) % count, behind)


class _Select:
    """The looks of one call."""

    def __init__(self, core: Core, name: str, value: str | bytes, wanted: ReceiveLimits) -> None:
        self._core, self._name, self._value = core, name, value
        self._rest = wanted
        self._budget = ReadBudget(SELECT_UNITS)
        self.received: list[Received] = []

    @property
    def ends(self) -> bool:
        """True if the answer is full, or the units are used."""
        return self._rest.full or not self._budget.pays(_PAGE_UNITS)

    def look(self, source: Source, partition: int, behind: str) -> str | None:
        """Scans a partition behind a key. Returns the key to go on behind, or None at the end.

        Raises Unavailable if the store refuses, and nothing was received.
        """
        core, pk = self._core, partition_key(PARCELS, source.id, partition)
        now_ms = core.now_ms()
        after: str | None = max(behind, from_key(core, source, now_ms))
        until = until_key(source, now_ms)
        while after is not None and after < until:
            if self.ends:
                return after
            try:
                after = self._look_at_page(source, pk, after, until)
            except Unavailable:
                if not self.received:
                    raise
                self._rest = self._rest.behind(self._rest.limit, 0)
        return None

    def _look_at_page(self, source: Source, pk: str, after: str, until: str) -> str | None:
        """Claims what matches on the next page. Returns the key to go on behind, or None."""
        core, batch = self._core, Batch(self._rest, pk)
        page = self._budget.read(core, pk, after, until, None, consistent=False)
        chores.note(core, source, pk, page.parcels, core.now_ms())
        look = _Look(behind=after)
        if self._read(source, page.parcels, batch, look):
            look.behind = page.more_after
        lost = claim_all(core, source, look.plans, batch)
        # Once more, for parcels of which a faster receiver may have left some messages.
        again = deque(left_to_claim(core, source, lost, chosen=True))
        claim_all(core, source, plan(core, again, batch), batch)
        if batch.refused is not None:
            look.behind = after  # messages claimed by then are held, and not seen again
        try:
            claims = claimed_of(core, source, batch)
        except MessageTooLarge:
            claims = []  # the log has a line of them, and they are passed over
        read = ((claim, look.contents[claim.parcel.sort_key]) for claim in claims)
        found = [each for claim, messages in read for each in received_of(claim, messages)]
        self.received += found
        used_bytes = sum(each.parcel.answer_bytes(each.index) for each in found)
        self._rest = self._rest.behind(len(found), used_bytes)
        return look.behind

    def _read(self, source: Source, parcels: Sequence[Parcel], batch: Batch, look: _Look) -> bool:
        """Plans claims of what matches among the parcels. Returns False if some were left.

        look: its `behind` is the last one that was.
        """
        now_ms, core = self._core.now_ms(), self._core
        able = [(each, claimable_indexes(core, source, each, now_ms)) for each in parcels]
        paid = self._paid([each for each, indexes in able if indexes])
        refused: Unavailable | None = None
        contents: dict[str, dict[int, Message]] = {}
        if paid:
            wanted = [(each, indexes) for each, indexes in able if each.sort_key in paid]
            read, refused = read_what_can_be(core, source, wanted)
            contents = {each.sort_key: found for (each, _), found in zip(wanted, read, strict=True)}
        if refused is not None:
            raise refused
        for parcel, indexes in able:
            if indexes and parcel.sort_key not in contents:
                return False
            if indexes and not self._reserve(parcel, contents[parcel.sort_key], batch, look):
                return False
            look.behind = parcel.sort_key
        return True

    def _reserve(
        self, parcel: Parcel, messages: dict[int, Message], batch: Batch, look: _Look
    ) -> bool:
        """Reserve the messages of a parcel that match; whether there was room for all of them."""
        matching = {index: each for index, each in messages.items() if self._matches(each)}
        if not matching:
            return True
        passed = len(batch.passed)
        indexes = batch.reserve(parcel, list(matching))
        if indexes:
            look.plans.append(Claimable(parcel, indexes))
        look.contents[parcel.sort_key] = matching
        return len(indexes) + len(batch.passed) - passed == len(matching)

    def _paid(self, parcels: Sequence[Parcel]) -> set[str]:
        """Keys of the parcels whose contents are read: as many as can be paid for, but the first.

        So each call gets further, whatever the first one costs.
        """
        paid: set[str] = set()
        records: set[str] = set()
        for parcel in parcels:
            units = _units_of(parcel)
            if units and parcel.record_id not in records:
                if paid and not self._budget.pays(units):
                    break
                self._budget.spend(units)
                records.add(parcel.record_id)
            paid.add(parcel.sort_key)
        return paid

    def _matches(self, message: Message) -> bool:
        return message.attributes_as_sent.get(self._name) == self._value


def _units_of(parcel: Parcel) -> float:
    """Returns the units of reading a parcel's contents, by the sizes of its messages."""
    if parcel.content is not None:
        return 0.0
    if parcel.object_days:
        return _OBJECT_UNITS
    return max(_PAGE_UNITS, sum(parcel.sizes) / _UNIT_BYTES)
