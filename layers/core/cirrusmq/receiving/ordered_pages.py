"""Pages of a partition of an ordered source; the units that a receive has for its scans, and the
messages that it may move besides."""

from __future__ import annotations

import msgspec
from msgspec import field

from cirrusmq.model.parcel import Parcel
from cirrusmq.receiving.turn_memory import TurnMemory
from cirrusmq.runtime.core import Core
from cirrusmq.storage.queries import FIRST_KEY, LAST_KEY, read_page

_FEWEST_PER_PAGE = 4
"""Parcels that half a read unit pays for: a parcel has at most 1 KiB."""
_FIRST_PAGE = 8
_MAX_AT_ONCE = 64
"""Parcels of a partition that is read in one page while scans there get nothing."""
_MAX_PER_PAGE = 80
_PARCELS_PER_UNIT = 8
"""Parcels of 1 KiB that one unit reads with eventual consistency; half as many with strong."""
MAX_MOVES = 16
MAX_MOVES_MS = 5
"""Milliseconds from the first move on; a later move waits for the next receive."""


class GroupLooks(msgspec.Struct):
    """The scans of a receive through the groups of partitions."""

    start: str
    """24 hex digits: the first scan of a partition begins behind them."""
    looked_at: set[str] = field(default_factory=set)
    """Keys of partitions that were scanned: the next scan goes on where the last one was cut."""
    units_left: float = 0.0
    """Read units that the scan of a partition has left."""
    units: float = 0.0
    """Read units of all scans of this receive."""


class Pages:
    """Reads a partition's pages, and pays for them."""

    def __init__(self, core: Core, pk: str, walk: GroupLooks, maximum: int) -> None:
        self._core, self.pk, self._walk, self._wanted = core, pk, walk, maximum
        self.start = walk.start
        self._limit = max(_FIRST_PAGE, maximum)
        self.consistent = False
        self.budget = MoveBudget(core)
        """Limits the dead letters that are moved on the way."""
        self.behind: str | None = None
        """The key to continue behind; None at the end."""
        self.passed = 0
        """Parcels that were read on the way around."""

    @property
    def fits_one_page(self) -> bool:
        """True if all that the scan has read is worth one page to take from."""
        return self.passed <= max(_FIRST_PAGE, self._wanted)

    def read(self, after: str, until: str, at_once: int = 0) -> list[Parcel]:
        """Returns the next parcels, at most as many as the units pay for."""
        paid = int(self._walk.units_left * _PARCELS_PER_UNIT) // (2 if self.consistent else 1)
        limit = max(_FEWEST_PER_PAGE, min(max(self._limit, at_once), paid))
        self._limit = min(2 * self._limit, _MAX_PER_PAGE)
        parcels = self._read(after, until, limit)
        self.passed += len(parcels)
        return parcels

    def remember(self, turns: TurnMemory, *, barren: bool, cut: bool) -> None:
        """Notes where the next scan goes on after an empty one, or that it reads all at once."""
        if barren:
            turns.take_turn(self.pk, (self.behind or FIRST_KEY) if cut else "")
        small = barren and not cut and self.passed <= _MAX_AT_ONCE
        turns.read_at_once(self.pk, self.passed + _FEWEST_PER_PAGE if small else 0)

    def read_to_take(self, after: str, until: str, *, whole: bool = False) -> list[Parcel]:
        """Returns up to the wanted number of parcels, strongly consistent from now on.

        whole: as many as the scan has read, and one more, which shows that these are all.
        """
        self.consistent = True
        fewest = max(_FEWEST_PER_PAGE, self._wanted)
        return self._read(after, until, max(fewest, self.passed + 1) if whole else fewest)

    def go_on(self, passed: str) -> str | None:
        """Returns the key to continue behind, past the group `passed`, or None to stop."""
        if passed and self.behind is not None and self.behind.startswith(f"{passed}#"):
            self.behind = f"{passed}#{LAST_KEY}"
        return self.behind if self.paid else None

    def read_ended(self, after: str, until: str, limit: int) -> list[Parcel]:
        """Returns parcels of a group behind ended ones, strongly consistent."""
        self.consistent = True
        return self._read(after, until, max(_FEWEST_PER_PAGE, min(limit, _MAX_PER_PAGE)))

    @property
    def units_left(self) -> float:
        """Read units that the scan has left; below 0 if its last page cost more."""
        return self._walk.units_left

    @property
    def paid(self) -> bool:
        """True if the scan has units left."""
        return self._walk.units_left > 0

    def _read(self, after: str, until: str, limit: int) -> list[Parcel]:
        page = read_page(
            *(self._core, self.pk, after, until, limit),
            from_exclusive=True,
            consistent=self.consistent,
        )
        self._walk.units += page.units
        self._walk.units_left -= page.units
        self.behind = page.more_after
        return page.parcels


class MoveBudget:
    """Messages that one receive may still move; their time begins with the first one."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._left = MAX_MOVES
        self._until_ms = 0

    def spend(self) -> bool:
        """Takes one message of the budget. Returns False if no message or no time is left."""
        now_ms = self._core.now_ms()
        self._until_ms = self._until_ms or now_ms + MAX_MOVES_MS
        self._left -= 1
        return self._left >= 0 and now_ms <= self._until_ms

    def end(self) -> None:
        """Ends the budget after the store refused a move, so that this receive tries no other."""
        self._left = 0
