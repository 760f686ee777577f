"""Looking into a partition of any length for a bounded cost: a budget of read units, bisecting."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cirrusmq.model.parcel import Parcel, key_in_group
from cirrusmq.runtime.core import Core
from cirrusmq.storage.parcels import ParcelPage
from cirrusmq.storage.queries import LAST_KEY, read_page

_PARCELS_PER_UNIT = 4
"""Parcels of at most 1 KiB that one unit reads strongly consistent; half a unit with eventual."""
_STEP_PARCELS = 4
_NEAR_MS = 20
_MAX_PER_PAGE = 1_000


class ReadBudget:
    """Read units that may be used; no page is read that could cost more than the units left."""

    def __init__(self, units: float, within: ReadBudget | None = None) -> None:
        self.left = units
        self._within = within

    def portion(self, units: float) -> ReadBudget:
        """Returns a part of the units left, whose use counts for both."""
        return ReadBudget(min(units, self.left), self)

    def pays(self, units: float = 1.0) -> bool:
        """Returns True if the units are left; a page costs at least one, half of one if cheap."""
        return self.left >= units

    def read(
        self,
        core: Core,
        pk: str,
        after: str,
        until: str,
        limit: int | None,
        *,
        consistent: bool,
        backwards: bool = False,
    ) -> ParcelPage:
        """Returns a page of parcels with keys between the two, without the first key itself.

        At most `limit` parcels, and as many as can be paid for at their largest size.
        """
        paid = _PARCELS_PER_UNIT * int(self.left if consistent else 2 * self.left)
        maximum = max(1, min(limit or _MAX_PER_PAGE, paid))
        page = read_page(
            *(core, pk, after, until, maximum),
            from_exclusive=True,
            consistent=consistent,
            backwards=backwards,
        )
        self.spend(page.units)
        return page

    def parcels(
        self,
        core: Core,
        pk: str,
        after: str,
        until: str,
        limit: int | None = None,
        *,
        backwards: bool = False,
    ) -> Iterator[Parcel]:
        """Yields the parcels from `after` to `until`, as far as the units go, in pages of `read`.

        Backwards, `after` is the later key.
        """
        while self.pays():
            low, high = (until, after) if backwards else (after, until)
            page = self.read(core, pk, low, high, limit, consistent=True, backwards=backwards)
            yield from page.parcels
            if page.more_after is None:
                return
            after = page.more_after

    def spend(self, units: float) -> None:
        """Takes units that were used."""
        self.left -= units
        if self._within is not None:
            self._within.spend(units)


def first_time(
    core: Core,
    pk: str,
    between: tuple[str, str],
    begun: Callable[[Parcel], bool],
    budget: ReadBudget,
    prefix: str = "",
) -> str:
    """Returns a key right before the first parcel for which `begun` is true, between two keys.

    prefix: the beginning of these keys in a fair source.

    begun: false at first and true from there on, except for re-keyed parcels, which are left out:
    they are among parcels of other sends.
    """
    low, high = map(key_time, between)
    while high - low > _NEAR_MS and budget.pays(0.5):
        middle = (low + high) // 2
        after, until = f"{prefix}{middle:013d}", f"{prefix}{high:013d}"
        page = budget.read(core, pk, after, until, _STEP_PARCELS, consistent=False)
        if not page.parcels or any(begun(each) for each in page.parcels if not _rekeyed(each)):
            high = middle
        else:
            low = max(middle, key_time(page.parcels[-1].sort_key))
    return f"{prefix}{low:013d}"


def key_time(sort_key: str) -> int:
    """Returns the milliseconds in a key of an unordered source, or in a bound of such keys."""
    return int(key_in_group(sort_key).partition("#")[0].rstrip(LAST_KEY))


def _rekeyed(parcel: Parcel) -> bool:
    return "." in parcel.parcel_id
