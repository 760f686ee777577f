"""Peeking: reading messages of one state without claiming them, page by page.

A page begins at the cursor of the page before, or in a random partition, and the pages go through
all partitions. A message that keeps its key is shown once; a message that is given back between two
pages may be shown twice.

    cursor:  first partition of the walk / this one / behind this key / next key / shown of it
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from cirrusmq.base.errors import InvalidParameter, MessageTooLarge
from cirrusmq.base.limits import ANSWER_BYTES, RETENTION_SECONDS
from cirrusmq.lifecycle.dead_letters.letter_filter import DeadLetterFilter
from cirrusmq.model.message import Message, answer_too_large
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving.heads.scan import visible_indexes
from cirrusmq.receiving.lookup.find import State, state_of
from cirrusmq.runtime.core import Core
from cirrusmq.storage import cursors
from cirrusmq.storage.bisection import ReadBudget
from cirrusmq.storage.bodies.contents import read_contents
from cirrusmq.storage.parcels import PARCELS, partition_key
from cirrusmq.storage.queries import from_key, until_key

PEEK_UNITS = 200.0
"""Most read units of a page, without its bodies: it may pass over many parcels."""
_LATEST_MS = 2_000 * RETENTION_SECONDS[1]
"""No key is further ahead than this."""
_PAGE_PARCELS = (32, 512)
"""Parcels of the first read, and of a later one at most, so that long scans take few calls."""


class PeekRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a peek."""

    max: Annotated[int, Meta(ge=1, le=16, description="an integer from 1 to 16")] = 1
    cursor: (
        Annotated[str, Meta(max_length=1_024, description="the cursor of the page before")]
        | UnsetType
    ) = UNSET
    dead_letter: DeadLetterFilter | UnsetType = UNSET
    state: State = "active"


class Peeked(msgspec.Struct, frozen=True, kw_only=True):
    """A message at an index of its parcel, which is not claimed."""

    parcel: Parcel
    index: int
    message: Message


class PeekPage(NamedTuple):
    """A page of messages; `cursor` is where the next page begins, None at the end."""

    messages: list[Peeked]
    cursor: str | None


class _Place(NamedTuple):
    """The position at which a page begins."""

    first: int
    """The partition in which the walk began."""
    partition: int
    behind: str = ""
    """A key up to which everything was shown; empty if nothing of the partition was."""
    key: str = ""
    """The key of a parcel behind it, of which the indexes before `shown` were shown."""
    shown: int = 0


def peek(
    core: Core, source: Source, request: PeekRequest, alone_bytes: int = ANSWER_BYTES
) -> PeekPage:
    """Returns a page of the messages in `state`, without receipts; their state stays as it is.

    A page ends at `max` messages, at the size of an answer, and at `PEEK_UNITS`: it may be empty,
    and still have a cursor. alone_bytes: bytes of JSON that a message may have if it is alone.
    Larger messages are passed over. Raises MessageTooLarge if the rest of the source has no others.

    In a rewound group, all messages of a page are from one of its sources.
    """
    if not source.former:
        return _peek(core, source, request, alone_bytes)
    number = _number_of_source(core, source, request.cursor)
    for following in source.all[number + 1 :]:
        with contextlib.suppress(MessageTooLarge):
            page = _peek(core, source.all[number], request, alone_bytes)
            if page.cursor is not None:
                return page
            if page.messages:
                beginning = "/".join(map(str, _Place(first=0, partition=0)))
                return PeekPage(page.messages, cursors.make(core, beginning, *_listing(following)))
        request, number = replace(request, cursor=UNSET), number + 1
    return _peek(core, source, request, alone_bytes)


def _number_of_source(core: Core, source: Source, cursor: str | UnsetType) -> int:
    """Returns the number of the cursor's source. Raises InvalidParameter if it is of none."""
    last = len(source.all) - 1
    for number, each in enumerate(source.all if not isinstance(cursor, UnsetType) else ()):
        try:
            cursors.read(core, str(cursor), *_listing(each))
        except InvalidParameter:
            if number == last:
                raise
        else:
            return number
    return 0


def _listing(source: Source) -> tuple[str, str]:
    return "peek", source.id


def _peek(core: Core, source: Source, request: PeekRequest, alone_bytes: int) -> PeekPage:
    now_ms, listing = core.now_ms(), _listing(source)
    place = _begin(core, source, request.cursor, listing)
    wanted = None if isinstance(request.dead_letter, UnsetType) else request.dead_letter
    walk = _Walk(core, source, place, wanted, now_ms, request.state)
    gathered = _Gathered(request.max, alone_bytes)
    left: _Place | None = None
    for parcel in walk:
        if wanted is not None and not wanted.selects(parcel, now_ms):
            continue
        shown = place.shown if parcel.sort_key == place.key else 0
        indexes = [each for each in _places(source, parcel, request.state, now_ms) if each >= shown]
        rest = gathered.add(parcel, indexes)
        if rest is not None:
            left = walk.at._replace(key=parcel.sort_key, shown=rest)
            break
        if gathered.full:
            left = walk.at._replace(behind=parcel.sort_key)
            break
    else:
        left = walk.left
    if gathered.passed and not gathered.found and left is None:
        raise answer_too_large(gathered.passed, alone_bytes)
    text = None if left is None else "/".join(map(str, left))
    cursor = None if text is None else cursors.make(core, text, *listing)
    return PeekPage(_with_contents(core, source, gathered.found), cursor)


def _places(source: Source, parcel: Parcel, state: State, now_ms: int) -> list[int]:
    """Returns the indexes of a parcel's messages that are in a state."""
    if state == "active":
        return visible_indexes(source, parcel, now_ms)
    if not source.keeps(parcel) or source.withholds(parcel) or now_ms >= parcel.expires_ms:
        return []
    places = filter(parcel.live, range(parcel.count))
    return [index for index in places if state_of(parcel, index, now_ms) == state]


def _begin(core: Core, source: Source, cursor: str | UnsetType, listing: tuple[str, str]) -> _Place:
    read = None if isinstance(cursor, UnsetType) else cursors.read(core, cursor, *listing)
    if read is None:
        partitions = list(range(source.partitions))
        core.random.shuffle(partitions)
        return _Place(first=partitions[0], partition=partitions[0])
    first, partition, behind, key, shown = read.split("/")
    return _Place(int(first), int(partition), behind, key, int(shown))


class _Gathered:
    """The messages of a page."""

    def __init__(self, maximum: int, alone_bytes: int) -> None:
        self.found: list[tuple[Parcel, list[int]]] = []
        self.passed = 0
        """Bytes of the first message that no answer to this call can hold."""
        self._left, self._alone_bytes = maximum, alone_bytes
        self._bytes = 0

    @property
    def full(self) -> bool:
        """True if the page has no room for another message."""
        return not self._left

    def add(self, parcel: Parcel, indexes: Sequence[int]) -> int | None:
        """Adds messages of a parcel. Returns the index of the first one without room, or None."""
        taken: list[int] = []
        rest: int | None = None
        for index in indexes:
            size = parcel.answer_bytes(index)
            if size > self._alone_bytes:
                self.passed = self.passed or size
                continue
            self._bytes += size
            too_large = self._bytes > ANSWER_BYTES and (self.found or taken)
            if too_large or self.full:
                rest = index
                break
            taken.append(index)
            self._left -= 1
        if taken:
            self.found.append((parcel, taken))
        return rest


class _Walk:
    """The parcels from a position on, partition by partition, as far as the units go."""

    def __init__(
        self,
        core: Core,
        source: Source,
        place: _Place,
        wanted: DeadLetterFilter | None,
        now_ms: int,
        state: State,
    ) -> None:
        self._core, self._source = core, source
        self._budget = ReadBudget(PEEK_UNITS)
        # A message that is due later may have a key of that time.
        self._until = until_key(source, now_ms if state == "active" else now_ms + _LATEST_MS)
        self._from = from_key(core, source, now_ms) or "!"
        if wanted is not None and not source.grouped:
            self._from = max(self._from, wanted.from_key(now_ms))
        self.at = place
        """The position of the parcel that was yielded last."""
        self.left: _Place | None = None
        """The position at which the units ended; None if everything was read."""

    def __iter__(self) -> Iterator[Parcel]:
        first, number, behind = self.at.first, self.at.partition, self.at.behind
        while True:
            pk = partition_key(PARCELS, self._source.id, number)
            after: str | None = behind or self._from
            limit, maximum = _PAGE_PARCELS
            while after is not None and after < self._until:
                if not self._budget.pays():
                    self.left = _Place(first, number, behind)
                    return
                page = self._budget.read(self._core, pk, after, self._until, limit, consistent=True)
                for parcel in page.parcels:
                    self.at = _Place(first, number, behind)
                    yield parcel
                    behind = parcel.sort_key
                after, limit = page.more_after, min(4 * limit, maximum)
            number, behind = (number + 1) % self._source.partitions, ""
            if number == first:
                return


def _with_contents(
    core: Core, source: Source, found: list[tuple[Parcel, list[int]]]
) -> list[Peeked]:
    return [
        Peeked(parcel=parcel, index=index, message=messages[index])
        for (parcel, indexes), messages in zip(
            found, read_contents(core, source, found), strict=True
        )
        for index in indexes
        if index in messages
    ]
