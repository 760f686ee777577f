"""Notices to subscriptions that parcels wait for a post: one each, however many parcels wait."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from cirrusmq.fanout.handouts import Handout
from cirrusmq.model.topic import Subscription
from cirrusmq.runtime.core import Core
from cirrusmq.subscriptions import delivery_state, delivery_writes

_TRIES = 3
_Notice: TypeAlias = tuple[Subscription, str, frozenset[int]]
"""The subscription to notify, the first sort key that waits, and the partitions with parcels."""


class Notices:
    """Collects the handouts to URLs, and notifies their subscriptions."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._waiting: dict[str, _Notice] = {}

    def add(self, handouts: Iterable[Handout]) -> list[Handout]:
        """Note the subscriptions of handouts that are done; answers those that must be done again.

        A late handout is done when the subscription's delivery state says that a parcel was late;
        that is written after the parcel, once for all that are late together.
        """
        pushed = [(each, each.pushed) for each in handouts if each.pushed is not None]
        late: dict[str, list[Handout]] = {}
        for handout, subscription in pushed:
            if self._core.now_ms() - int(handout.entry.item["t"]["N"]) > delivery_state.LATE_MS:
                late.setdefault(subscription.id, []).append(handout)
        noted = self._core.in_parallel(self._note_late, late)
        lost = [each for id, done in zip(late, noted, strict=True) if not done for each in late[id]]
        for handout, subscription in pushed:
            if handout not in lost:
                partition = subscription.partition_of(handout.start.rpartition("#")[2])
                new = (subscription, handout.start, frozenset({partition}))
                _, start, partitions = self._waiting.get(subscription.id, new)
                both = partitions | {partition}
                self._waiting[subscription.id] = subscription, min(start, handout.start), both
        return lost

    def send(self) -> list[Exception]:
        """Notify; a notice that cannot be sent is left to the sweep. Answers the errors."""
        waiting = list(self._waiting.values())
        self._waiting.clear()
        return [
            error for error in self._core.in_parallel(self._notify, waiting) if error is not None
        ]

    def _note_late(self, subscription_id: str) -> bool:
        for _ in range(_TRIES):
            try:
                delivery_writes.note_late(self._core, subscription_id)
            except Exception:
                continue
            return True
        return False

    def _notify(self, waiting: _Notice) -> Exception | None:
        failure: Exception | None = None
        for _ in range(_TRIES):
            try:
                delivery_state.notify(self._core, *waiting)
            except Exception as error:
                failure = error
            else:
                return None
        return failure
