"""Posting as a subscription's only poster: a sliding window of posts while it holds the lease.

slot 1   m1 ─ m4 ─ m5 ─ m6 ─ m7         each slot takes the next message as soon as it is free:
slot 2   m2 ──────────────────── m8     one that hangs takes its own slot, and no other
slot 3   m3 ──── m9 ─ m10
"""

from __future__ import annotations

import logging
from functools import partial

from msgspec.structs import replace

from cirrusmq.base.errors import CirrusMQError, Unavailable
from cirrusmq.model.breaker import Circuit, after_post, after_probe
from cirrusmq.push import poster_lease
from cirrusmq.push.pending import Push
from cirrusmq.push.post_queue import GONE, Feed
from cirrusmq.push.poster_lease import Acquired
from cirrusmq.push.posting import UNREADABLE, Candidate, CandidateKey, PostResult, post
from cirrusmq.push.rate_limiter import Pace, taken_over
from cirrusmq.subscriptions.delivery import items as delivery_items
from cirrusmq.subscriptions.delivery import rules as delivery_rules
from cirrusmq.subscriptions.delivery.rules import DeliveryState

_logger = logging.getLogger(__name__)
RENEW_MS = 10_000
"""Real milliseconds after which the lease is renewed."""
TELL_MS = 5_000
"""Real milliseconds after which a failure is written to the state before the lease is released."""
LISTEN_MS = 300
"""Time between two reads of requests, while slots are free and other posts hang."""
LEAVING_MS = 1_000
"""Time in which a busy subscription in a shared invocation starts no post, in order to leave it."""
LEAVES_MS = 20_000
"""Time from one such try to the next: while posts hang, it stays in the invocation."""
POSTED_BYTES = 16_000_000
"""Bytes of JSON in running posts at which no other begins: an invocation's memory is bounded."""
SHARED_BYTES = 2_000_000
"""The same for each of several subscriptions that share an invocation."""
_AGAIN_SECONDS = 0.2


class Turn:
    """The time for which one invocation holds the lease of a subscription."""

    def __init__(self, push: Push, acquired: Acquired, holder: str, begun_ms: int) -> None:
        core, delivery = push.core, acquired.delivery
        self.push = push
        self.delivery = delivery
        self.pace: Pace | None = None
        """Its rate limiter; None without a rate."""
        if delivery.rate:
            self.pace = taken_over(
                *(delivery.rate, delivery.full_ms, core.now_ms(), core.skew_ms),
                dirty=acquired.dirty,
            )
        self.holder = holder
        self.lost = False
        """True if another invocation may hold the lease now."""
        self.paused = delivery.paused
        """True if no post may begin, as of the last renewal of the lease."""
        self.circuit = None if push.subscription.breaker is None else delivery.circuit
        """The state of its breaker; None without one."""
        self._probe: CandidateKey | None = None
        """The message that the open breaker tries now."""
        self._slow = False
        self._running: dict[CandidateKey, tuple[int, float]] = {}
        """When the running posts began, and how long each may take, in the order they began."""
        self._begun_ms = self._started_ms = begun_ms
        self._told = delivery.state == "retrying"

    @property
    def latest_ms(self) -> int:
        """When the last post may start."""
        return min(
            self.push.deadline_ms,
            delivery_rules.latest_post_ms(self._begun_ms, self.push.core.clock.scale),
        )

    @property
    def may_post(self) -> bool:
        """True if a post may start now."""
        if (circuit := self.open_circuit) is not None and (
            self._probe is not None or self.push.core.now_ms() < circuit.probe_ms
        ):
            return False
        return self.may_go_on

    @property
    def open_circuit(self) -> Circuit | None:
        """The state of its breaker if that is open: at most one message at a time is tried."""
        return self.circuit if self.circuit is not None and self.circuit.is_open else None

    @property
    def may_go_on(self) -> bool:
        """True if a post may start now, or as soon as the open breaker tries one."""
        if self.lost or self.paused or (self.is_slow and not self.push.takes_slow):
            return False
        now_ms = self.push.core.now_ms()
        if now_ms > self.latest_ms or self._is_leaving(now_ms):
            return False
        return self.push.share is None or self.push.share.may_go_on()

    @property
    def is_slow(self) -> bool:
        """True if a post took, or has been running, longer than a fast subscription's may."""
        if not self._slow and self._running:
            # The post that runs longest: the others have at least as much time left.
            begun_ms, patience_ms = next(iter(self._running.values()))
            self._slow = self.push.core.now_ms() - begun_ms > patience_ms
        return self._slow

    def began(self, candidate: Candidate, beside: int) -> None:
        """Notes that a post begins, with `beside` other posts of the subscription."""
        patience_ms = (
            delivery_rules.patience_ms(beside, self.push.sharing) * self.push.core.clock.scale
        )
        self._running[candidate.key] = (self.push.core.now_ms(), patience_ms)
        if self.open_circuit is not None:
            self._probe = candidate.key

    def hurry(self) -> None:
        """Has the open breaker try a message now, as somebody asked for."""
        if (circuit := self.open_circuit) is not None:
            self.circuit = replace(circuit, probe_ms=self.push.core.now_ms())

    def probe_ms(self, feed: Feed) -> int | None:
        """Returns when the open breaker tries a message; None if it is closed, or none is ready."""
        circuit = self.open_circuit
        return None if circuit is None or feed.next_key() is None else circuit.probe_ms

    def ended(self, outcome: PostResult | Candidate) -> PostResult | Candidate:
        """Notes that a post has ended, or could not begin. Returns what its message gets of it.

        A message that the open breaker tried in vain stays as it was: its posts are not counted.
        """
        candidate = outcome if isinstance(outcome, Candidate) else outcome.candidate
        _, patience_ms = self._running.pop(candidate.key)
        if isinstance(outcome, PostResult) and outcome.took_ms > patience_ms:
            self._slow = True
        breaker, circuit = self.push.subscription.breaker, self.circuit
        if breaker is None or circuit is None:
            return outcome
        tried, now_ms = candidate.key == self._probe, self.push.core.now_ms()
        self._probe = None if tried else self._probe
        if not isinstance(outcome, PostResult) or outcome.error == UNREADABLE:
            return outcome
        if not tried:
            self.circuit = after_post(circuit, breaker, now_ms, outcome.error)
            return outcome
        self.circuit = after_probe(circuit, now_ms, outcome.error, outcome.retry_after_ms)
        return outcome if outcome.error is None or outcome.post.status == GONE else candidate

    def _is_leaving(self, now_ms: int) -> bool:
        """Returns True if it waits for its posts to end, so that another invocation takes over.

        shared   m1 ─ m2 ─ m3 ─ m4 ─│ 2 s: no new one ─ m3, m4 end ─ releases
        alone                                                       holds ── m5 ─ m6 ─
        """
        begun_ms, scale = self.push.shared_until_ms, self.push.core.clock.scale
        if begun_ms is None or now_ms < begun_ms:
            return False
        return (now_ms - begun_ms) % (LEAVES_MS * scale) < LEAVING_MS * scale

    def renew(self) -> None:
        """Renews the lease if it is due."""
        core, asked_ms = self.push.core, self.push.core.now_ms()
        if self.lost or asked_ms - self._begun_ms < RENEW_MS * core.clock.scale:
            return
        renewed = poster_lease.renew(core, self.delivery, self.holder)
        if renewed is None:
            return
        self.lost = not renewed.written
        if renewed.written and renewed.found is not None:
            self._begun_ms, self.paused = asked_ms, renewed.found.paused
            self._change_rate(renewed.found.rate)

    def _change_rate(self, rate: int) -> None:
        """Goes on at another rate; 0 means no limit."""
        if self.pace is not None:
            self.pace.rate = rate
        elif rate:
            self.pace = Pace(rate)

    def pause_gone(self) -> None:
        """Pauses a subscription whose URL is gone for good, until somebody resumes it.

        If the store refuses that, the posts go on by the retry policy, and the next 410 pauses.
        """
        if self.paused:
            return
        # Few URLs answer so: the others' cold starts do without.
        from cirrusmq.subscriptions.management import pause_gone

        subscription = self.push.subscription
        try:
            pause_gone(self.push.core, subscription)
        except CirrusMQError as error:
            _logger.warning("subscription %s is not paused: %s", subscription.id, error.code)
            return
        _logger.warning("subscription %s is paused: its URL answered 410", subscription.id)
        self.paused = True

    def tell_failure(self, feed: Feed) -> None:
        """Writes the failure to the subscription's state, if this session goes on for long.

        URL that hangs   15 s: the first posts time out ── told ── others time out ── released
        """
        core, now_ms = self.push.core, self.push.core.now_ms()
        if self._told or self.lost or now_ms - self._started_ms < TELL_MS * core.clock.scale:
            return
        first = feed.first_due()
        if first is None:
            return
        changes: dict[str, delivery_items.Value] = {
            "state": "retrying",
            "next_due": first.due_ms,
            "probe_sent": first.sent_ms,
            "last_error": first.error,
        }
        try:
            update = delivery_items.update(core, self.delivery, set=changes, holder=self.holder)
        except Unavailable:
            return
        self._told, self.lost = True, not update.written

    def check(self) -> None:
        """Raises Unavailable if the outcomes left to be stored would be too late."""
        held_ms = delivery_rules.hold_ms(self.push.core.clock.scale)
        if self.push.core.now_ms() > self._begun_ms + held_ms:
            raise Unavailable

    def listen(self) -> DeliveryState | None:
        """Returns the delivery state with a request to the holder, or None without a request."""
        core = self.push.core
        found = delivery_items.read(core, self.delivery.subscription_id)
        if found is None or found.holder != self.holder:
            self.lost = True
            return None
        self.paused = found.paused
        self._change_rate(found.rate)
        return None if found.again is None else self.take_request()

    def take_request(self) -> DeliveryState | None:
        """Returns the delivery state with the request, or None if the lease is lost."""
        requested = poster_lease.take_request(self.push.core, self.delivery, self.holder)
        self.lost = requested is None
        if requested is None:
            return None
        self.paused = requested.paused
        if requested.hurried:
            self.hurry()
        if requested.hurried and not self.may_post and not self.paused:
            # It came too late for this invocation, which did nothing of it: for another one.
            waiting = delivery_rules.waiting(self.push.subscription, wake="hurried")
            delivery_items.notify(self.push.core, waiting)
            return replace(requested, hurried=False)
        return requested


def post_all(turn: Turn, feed: Feed) -> bool:
    """Posts candidates until none is left (True), or no post may start (False)."""
    push, core = turn.push, turn.push.core
    limit = 1 if push.in_order else push.subscription.max_in_flight
    max_bytes = POSTED_BYTES if push.shared_until_ms is None else SHARED_BYTES
    listened_ms = core.now_ms()
    with core.window(limit) as window:
        while True:
            turn.renew()
            wait_ms = 0
            while (
                (may_post := turn.may_post)
                and feed.running < limit
                and feed.running_bytes < max_bytes
            ):
                candidate = feed.next() if turn.open_circuit is None else feed.next_probe()
                if candidate is None:
                    break
                if turn.pace is not None:
                    wait_ms = turn.pace.wait_ms(core.now_ms())
                    if wait_ms:
                        feed.put_back(candidate)
                        break
                    turn.pace.let_through()
                turn.began(candidate, feed.running)
                feed.began(candidate)
                window.start(partial(post, push, candidate, turn.latest_ms, turn.pace))
            pause_ms = min(wait_ms or LISTEN_MS, LISTEN_MS)
            if feed.running:
                for outcome in window.wait(pause_ms / 1000):
                    feed.ended(turn.ended(outcome))
            elif not feed.unsettled:
                if not wait_ms:
                    return may_post
                core.clock.sleep(pause_ms / 1000)
            else:
                turn.check()
                core.clock.sleep(_AGAIN_SECONDS)
            feed.settle()
            turn.tell_failure(feed)
            if feed.gone:
                turn.pause_gone()
            if feed.running and feed.running < limit and not turn.lost:
                if core.now_ms() - listened_ms < LISTEN_MS:
                    continue
                requested = turn.listen()
                listened_ms = core.now_ms()
                if requested is not None:
                    feed.answer(requested)
