"""Clean-up at the head of a partition, bounded, as a side job of receives.

    a look        remembers parcels that are spent, wait long, or are to be dead-lettered
    the claims    are first, since a client waits for their answer
    then          a few messages are dealt with side by side; errors do not fail the receive

So receives clean up thousands, a few at a time, in front of receivable messages. Parcels that an
environment forgets when it ends are found again by the next look from the beginning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from cirrusmq.base.errors import CirrusMQError
from cirrusmq.lifecycle import dead_letters, retry_waits, tombstones
from cirrusmq.lifecycle.dead_letter_policy import dead_letter_reason, gives_up_any
from cirrusmq.model.parcel import Parcel
from cirrusmq.model.source import Source
from cirrusmq.receiving.chore_memory import ChoreMemory
from cirrusmq.runtime.core import Core

MOST_MESSAGES = 16
MOST_MS = 5
"""Work that has not begun by then waits for the next receive."""
_logger = logging.getLogger(__name__)


class Budget:
    """The rest of one receive's tidying up: messages, and time from its first use."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._left = MOST_MESSAGES
        self._until_ms: int | None = None

    def spend(self) -> bool:
        """Whether one more message may be dealt with, which then counts."""
        now_ms = self._core.now_ms()
        if self._until_ms is None:
            self._until_ms = now_ms + MOST_MS
        self._left -= 1
        return not self.spent

    @property
    def spent(self) -> bool:
        """Whether no further message may be dealt with."""
        late = self._until_ms is not None and self._core.now_ms() > self._until_ms
        return late or self._left < 0

    @property
    def used_up(self) -> bool:
        """Whether the next message may not be dealt with."""
        return self.spent or self._left == 0

    def end(self) -> None:
        """The store refuses: it is not asked again so soon."""
        self._left = -1


def is_chore(
    core: Core, source: Source, parcel: Parcel, now_ms: int, gives_up: Callable[[], bool]
) -> bool:
    """Whether the parcel should be tidied up. `gives_up`: whether what is given up has a place."""
    if parcel.spent():
        return tombstones.may_vanish(source, parcel.visible_ms, parcel, now_ms, core.clock.scale)
    if retry_waits.any_long(parcel, now_ms):
        return True
    if not gives_up_any(source):
        return False
    places = range(parcel.count)
    given_up = any(dead_letter_reason(source, parcel, place, now_ms) for place in places)
    return given_up and gives_up()


def do_some(core: Core, source: Source, pk: str) -> None:
    """Tidy some of the remembered parcels up, and some that waited until they were too old."""
    budget = Budget(core)
    parcels = core.memory(ChoreMemory).take(pk, MOST_MESSAGES, core.now_ms())
    left = core.in_parallel(lambda parcel: _tidy(core, source, pk, parcel, budget), parcels)
    core.memory(ChoreMemory).remember(pk, [parcel for parcel in left if parcel is not None])
    _give_up_aged(core, source, pk, budget)


def _tidy(core: Core, source: Source, pk: str, parcel: Parcel, budget: Budget) -> Parcel | None:
    """Tidy a parcel up; answers what is left of it where the budget ended before.

        look   remembers a message to be dead-lettered ── purge ── this: it belongs to nobody now

    A parcel that could not be moved is not as it was remembered, and is forgotten too; the next
    look finds what is left of it:

        one environment      remembers (a, b) ─────────────────> moves a: refused, it is gone
        another one                     moves a, then its time is over
    """
    if budget.used_up:
        return parcel
    now_ms = core.now_ms()
    if source.is_over(parcel, now_ms):
        return None
    try:
        if parcel.spent():
            if not budget.spend():
                return parcel
            tombstones.clear(core, source, parcel, now_ms)
            return None
        if retry_waits.any_long(parcel, now_ms):
            if not budget.spend():
                return parcel
            parcel = retry_waits.move_long(core, source, parcel, now_ms)
        left = dead_letters.give_up(core, source, parcel, now_ms, budget.spend)
    except CirrusMQError as error:
        _logger.warning("%s is not tidied up now: %r", parcel.sort_key, error.__cause__ or error)
        core.memory(ChoreMemory).pause(pk, now_ms)
        budget.end()
        return parcel
    return left if budget.spent and left is not parcel else None


def _give_up_aged(core: Core, source: Source, pk: str, budget: Budget) -> None:
    """Dead-letter messages that exceed their age while they wait, unread by looks until due.

    Half a read unit, once a second for an environment and partition of a queue with an age.
    """
    by_age = source.dead_letter is not None and source.dead_letter.max_age_seconds is not None
    if not by_age or not core.memory(ChoreMemory).may_look_at_ages(pk, core.now_ms()):
        return
    # Few queues have an age: the others' cold starts do without.
    from cirrusmq.lifecycle import age_limit

    try:
        age_limit.give_up_noted(core, source, int(pk.rpartition("#")[2]), budget.spend)
    except CirrusMQError as error:
        _logger.warning("ages of %s are not looked at: %r", pk, error.__cause__ or error)
        core.memory(ChoreMemory).pause(pk, core.now_ms())
