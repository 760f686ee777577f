"""Notices to subscriptions that parcels wait for a post: one each, however many parcels wait.

The notices of a batch go to one invocation of `push`, up to the limits of its share of a CPU and
its threads; a subscription with many posts has a separate invocation.
"""

from __future__ import annotations

from collections.abc import Iterable

from cirrusmq.fanout.reader_parcels import Notice, ReaderDelivery
from cirrusmq.runtime.core import Core
from cirrusmq.subscriptions.delivery import items as delivery_items
from cirrusmq.subscriptions.delivery import rules as delivery_rules

POSTS_TOGETHER = 64
"""Posts of one invocation that several subscriptions share: a second or two of its share of a CPU.
It also bounds the event, which has some 400 bytes of a subscription, and Lambda takes 256 KB."""
BYTES_TOGETHER = 8_000_000
"""Bytes of JSON that they post together, besides older messages: all are in memory at once."""
THREADS_TOGETHER = 800
"""Threads of such an invocation, of 1,024 that Lambda has, and as many open connections."""
OWN_THREADS = 17
"""Threads of a subscription that do not post: one for itself, and parallel calls of the store."""
_TRIES = 3


class Notices:
    """Collects what waits for URLs, and notifies their subscriptions."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._waiting: dict[str, Notice] = {}

    def add(self, handouts: Iterable[ReaderDelivery]) -> list[ReaderDelivery]:
        """Notes subscriptions of finished handouts. Returns the handouts that must be done again.

        A late handout is done when the subscription's delivery state says that a parcel was late;
        that is written after the parcel, once for all that are late together.
        """
        pushed = [(each, each.notice) for each in handouts if each.notice is not None]
        late: dict[str, list[ReaderDelivery]] = {}
        for handout, notice in pushed:
            if self._core.now_ms() - int(handout.entry.item["t"]["N"]) > delivery_rules.LATE_MS:
                late.setdefault(notice.subscription.id, []).append(handout)
        noted = self._core.in_parallel(self._note_late, late)
        lost = [each for id, done in zip(late, noted, strict=True) if not done for each in late[id]]
        for handout, notice in pushed:
            if handout not in lost:
                self.note(notice)
        return lost

    def note(self, new: Notice) -> None:
        """Notes a subscription to notify; its notices are merged into one."""
        before = self._waiting.get(new.subscription.id)
        self._waiting[new.subscription.id] = before.merged(new) if before else new

    def send(self) -> list[Exception]:
        """Sends the notices; failed ones are left to the sweep. Returns the errors."""
        groups = together(self._waiting.values())
        self._waiting.clear()
        return [
            error for error in self._core.in_parallel(self._notify, groups) if error is not None
        ]

    def _note_late(self, subscription_id: str) -> bool:
        for _ in range(_TRIES):
            try:
                delivery_items.note_late(self._core, subscription_id)
            except Exception:
                continue
            return True
        return False

    def _notify(self, group: list[Notice]) -> Exception | None:
        told = [
            delivery_rules.waiting(
                each.subscription, each.start, each.partitions, delayed=each.delayed
            )
            for each in group
        ]
        failure: Exception | None = None
        for _ in range(_TRIES):
            try:
                delivery_items.notify(self._core, *told)
            except Exception as error:
                failure = error
            else:
                return None
        return failure


def together(notices: Iterable[Notice]) -> list[list[Notice]]:
    """Returns the notices of each invocation: subscriptions with the fewest posts share one."""
    groups: list[list[Notice]] = []
    posts = threads = size = 0
    for notice in sorted(notices, key=lambda each: each.posts):
        posts, threads = posts + notice.posts, threads + _threads(notice)
        size += notice.bytes
        full = posts > POSTS_TOGETHER or threads > THREADS_TOGETHER or size > BYTES_TOGETHER
        if not groups or full:
            groups.append([])
            posts, threads, size = notice.posts, _threads(notice), notice.bytes
        groups[-1].append(notice)
    return groups


def _threads(notice: Notice) -> int:
    """Returns how many threads the subscription's delivery may take."""
    in_order = notice.subscription.pushed_in_order
    return OWN_THREADS + (1 if in_order else notice.subscription.max_in_flight)
