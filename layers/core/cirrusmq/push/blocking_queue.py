"""The message source of a policy in which a failing message holds the others back."""

from __future__ import annotations

from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.model.parcel import key_ms
from cirrusmq.push.pending import Push
from cirrusmq.push.post_queue import Feed, waiting_mark
from cirrusmq.push.posting import Candidate, PostResult
from cirrusmq.subscriptions.delivery.due_marks import DueMark
from cirrusmq.subscriptions.delivery.rules import DeliveryState


class BlockingFeed(Feed):
    """Candidates of a policy in which a failing message holds the others back until it is through.

    In order, each message is posted alone. Else, while the subscription retries, only the probe is
    posted, the oldest message; once it is accepted the rest follow in parallel. If several then
    fail together, the oldest is the next probe, and the others are free as soon as it is through.
    """

    def __init__(self, push: Push, delivery: DeliveryState, start: str, *, dirty: bool) -> None:
        zeros = (0,) * len(push.all_partitions)
        if not delivery.blocks and (dirty or any(delivery.dues_ms)):
            # Each message had its own wait under the old policy, and marks before `clean_ms`.
            delivery, start = replace(delivery, clean_ms=()), ""
        look_at_all = push.in_order or dirty
        super().__init__(push, delivery, "" if look_at_all else start, zeros)
        self._alone = push.in_order or delivery.state == "retrying"
        self._probe: Candidate | None = None
        self._hurried = False

    def next(self) -> Candidate | None:
        if self._probe is not None or self._failed() or (self._alone and self.running):
            return None
        if not self._ready:
            self._refill()
        if not self._ready:
            return None
        first = self._ready[0]
        if self._failed_first() and first.parcel.visible_ms[first.index] > self.push.core.now_ms():
            self._probe = None if self.running else first
            return None
        return self._ready.popleft()

    def began(self, candidate: Candidate) -> None:
        self._hurried = False
        super().began(candidate)

    def first_due(self) -> DueMark | None:
        # A holder whose time is up takes no next message, and reports the message that failed.
        failed = not self.running and self._failed_first()
        probe = self._probe or (self._ready[0] if failed else None)
        return None if probe is None else waiting_mark(probe.parcel, probe.index)

    def settle(self) -> None:
        failed = sorted(self._failed(), key=lambda each: each.candidate.key)
        if failed and self.running:
            return
        if self._ended and not failed:
            self._alone = self.push.in_order
        elif failed:
            self._alone = True
        keys = [key for key in self._ended if failed or self._may_settle(key)]
        groups = [self._ended.pop(key) for key in sorted(keys)]
        free = frozenset(each.candidate.key for each in failed[1:])
        again = [
            each.candidate for each in self._settle_all(groups, free) if each.due_ms is not None
        ]
        self._ready.extendleft(sorted(again, key=lambda each: each.key, reverse=True))

    def resume(self) -> None:
        self._probe = None

    def hurry(self) -> None:
        self._probe, self._hurried = None, True

    def look_again(self, start: str) -> None:
        # The event of a message in between may be lost, and no later one may overtake it.
        super().look_again(min(start, self._reached()) if self.push.in_order else start)

    def _reached(self) -> str:
        """Returns a key up to which scans have found everything, also if clocks differ.

        publishes   m1, by a clock ahead: key 8.5 ── m2: key 6.6 ── m3: key 9.0
        scans       found m1: up to 8.5 ── m2's event is lost ── m3's: scans from before m2 on
        """
        reached = max(look.reached for look in self._looks)
        if not reached:
            return reached
        core = self.push.core
        slack_ms = int(limits.ORDER_SLACK_MS * core.clock.scale) + core.skew_ms
        return f"{key_ms(reached) - slack_ms:013d}"

    def _failed_first(self) -> bool:
        """Returns True if the first ready message has failed, so that the others wait for it."""
        if not self._ready or self._hurried:
            return False
        return bool(self._ready[0].parcel.receives[self._ready[0].index])

    def _failed(self) -> list[PostResult]:
        return [each for ended in self._ended.values() for each in ended if each.error is not None]
