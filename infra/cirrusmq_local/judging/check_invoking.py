"""Functions that queues and groups name: each message is handed over until it succeeds, in time.

sent ──> handed over, fails ── waits ──> handed over, succeeds      and then no more
max_concurrency 2     ── run ──────        ── run ──
                        ── run ────             a third one begins only after one has ended
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from math import inf
from typing import Any

from cirrusmq_local.judging.check_leases import returns
from cirrusmq_local.judging.check_lives import excused
from cirrusmq_local.judging.check_replacing import may_be_replaced
from cirrusmq_local.judging.deployment import Remaining
from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, Violation
from cirrusmq_local.judging.places import Delivery
from cirrusmq_local.judging.rewinders import REWIND
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import HANDED, Book, Sent, Track

_WAITS_OF_GROUPS, _WAITS_OF_ORDERED = (10, 30, *range(60, 601, 60)), (1,)
"""The first waits of a pull group without a retry policy, in seconds."""
PROMPT_MS = 10_000
"""The longest idle time of a source that has a ready message, in a run without faults.

A wake-up takes less than a second, a scan because somebody asked another one, an execution whole
seconds; and clocks differ. The sweep, which finds forgotten messages, comes once a minute.
"""
SMALL_PAGES_MS = 70_000
"""The same if a page ends at a message that will be dead-lettered. A worker that claims nothing
there waits longer each time, up to a minute, and has not seen the messages that are due later."""


def check_invoking(scenario: Scenario, book: Book, drain: Remaining) -> Iterator[Violation]:
    """All that is promised of every source that names a function."""
    for place, attributes in scenario.invoked.items():
        source = _Source(scenario, book, place, attributes)
        yield from source.check()
        yield from source.lost(drain)


def check_handing(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """The same, but that all messages were done."""
    for place, attributes in scenario.invoked.items():
        yield from _Source(scenario, book, place, attributes).check()


class _Source:
    def __init__(
        self, scenario: Scenario, book: Book, place: str, attributes: dict[str, Any]
    ) -> None:
        self._scenario, self._book, self._place = scenario, book, place
        self._attributes = attributes
        self._breaks = bool(attributes["invoke"].get("breaker"))
        """True if a message that failed may have been a try, whose receive does not count."""
        self._most_receives = attributes.get("dead_letter", {}).get("max_receives", 1 << 30)
        self._calls = [call for call in book.by_kind[HANDED] if call.place == place]
        self._runs = [call for call in self._calls if call.outcome != "refused"]
        self._tracks: defaultdict[str, Track] = defaultdict(lambda: Track(place, ""))
        for call in self._calls:
            for delivery in call.given["messages"]:
                self._tracks[delivery.id].id = delivery.id
                self._tracks[delivery.id].deliveries.append(delivery)
        self._settled = self._settled_calls()

    def check(self) -> Iterator[Violation]:
        yield from self._bounds()
        for track in self._tracks.values():
            for before, after in pairwise(track.deliveries):
                yield from self._again(track, before, after)
            for delivery in track.deliveries:
                if delivery.count > self._most_receives and not self._book.by_kind["redrive"]:
                    yield Violation("handed over more often than max_receives", (delivery.call,))
        if self._attributes.get("ordered"):
            yield from self._order()
        if self._scenario.quiet:
            yield from self._late()

    def _sent(self) -> Iterator[Sent]:
        wanted = self._attributes.get("filter", {}).get("tags")
        for sent in self._book.sent.values():
            tags = sent.calls[0].given["tags"][sent.place]
            if wanted is None or set(wanted) & set(tags):
                yield sent

    def _settled_calls(self) -> set[int]:
        """Calls whose answer reached the worker, which then did all its work undisturbed."""
        settled = set()
        jumps_ms = [at_ms for at_ms, what in self._book.faults if what.endswith(": jump")]
        of_worker: defaultdict[int, list[Call]] = defaultdict(list)
        for call in self._calls:
            of_worker[id(call.given["invocation"])].append(call)
        for calls in of_worker.values():
            invocation: Call = calls[0].given["invocation"]
            ends = [call.given["noted"] for call in calls[1:]] + [len(invocation.faults)]
            for number, (call, noted) in enumerate(zip(calls, ends, strict=True)):
                went_on = invocation.known or number + 1 < len(calls)
                on_time = call.ended_ms <= call.given["until_ms"] + 1_000
                if not on_time or any(0 <= at_ms - call.begun_ms < 90_000 for at_ms in jumps_ms):
                    continue
                if call.known and went_on and noted == call.given["noted"]:
                    settled.add(id(call))
        return settled

    def _bounds(self) -> Iterator[Violation]:
        limit = self._attributes["invoke"]["max_concurrency"]
        for number, call in enumerate(self._runs):
            beside = [
                each for each in self._runs[:number] if each.given["until_ms"] > call.begun_ms
            ]
            if len(beside) >= limit:
                yield Violation(f"more than {limit} calls at once", (*beside, call))
            if len(call.given["messages"]) > self._attributes["invoke"]["batch"]:
                yield Violation("a batch is too large", (call,))
        for call in self._calls:
            messages = call.given["messages"]
            if len(messages) > 1 and any(each.count > 1 for each in messages):
                yield Violation("what was received before is not handed over alone", (call,))

    def _again(self, track: Track, before: Delivery, after: Delivery) -> Iterator[Violation]:
        """From one call with a message to the next."""
        calls = (before.call, after.call)
        if self._came_back(track, before, after):
            return
        if after.call.begun_ms < before.call.given["until_ms"]:
            yield Violation("handed over while another call works on it", calls)
        untried = _is_untried(before)
        if after.count < before.count + (not untried and not self._breaks):
            yield Violation("handed over with an old receive count", calls)
        if id(before.call) not in self._settled:
            return
        if untried and after.count > before.count and not self._disturbed_between(before, after):
            yield Violation("a receive counts though no function began the message", calls)
        if before.id not in before.call.given["failed"] and not untried:
            yield Violation("handed over again though it was done", calls)
        if self._breaks and after.count == before.count:
            return  # it came again for another try
        due_ms = before.call.ended_ms + self._waits_ms(before)[0]
        if after.call.begun_ms + 2 * MAX_SKEW_MS < due_ms:
            yield Violation("handed over before its wait was over", calls)

    def _disturbed_between(self, before: Delivery, after: Delivery) -> bool:
        """Returns True if a worker may have had the message, and not have given it back."""
        return any(
            (call.disturbed or not call.known)
            and call.ended >= before.call.begun
            and call.begun <= after.call.begun
            for call in self._book.by_kind["work"]
        )

    def _came_back(self, track: Track, before: Delivery, after: Delivery) -> bool:
        """Returns True if it may have come back since: redriven, sent or fanned out again."""
        if after.sent_ms != before.sent_ms and self._book.by_kind["redrive"]:
            return True
        if self._of_the_time_before(after):
            return True
        return returns(self._book, track, after, self._claimed_after(before.call))

    def _of_the_time_before(self, delivery: Delivery) -> bool:
        """Returns True if its worker read where its group's messages are, waited for a slow store,
        and the group was rewound during that wait."""
        worker: Call = delivery.call.given["invocation"]
        return any(fault.endswith(": slow") for fault in worker.faults) and any(
            worker.begun < call.ended and call.begun < delivery.call.begun
            for call in self._book.effective(REWIND, self._place)
        )

    def _claimed_after(self, call: Call) -> int:
        """A moment before the messages of a call were claimed.

        worker    call ──────── claims ──── call        a rewind here ends the claim, not the call
        """
        if "claimed_after" in call.given:
            return int(call.given["claimed_after"])
        invocation: Call = call.given["invocation"]
        earlier = (
            each.begun
            for each in self._calls
            if each.given["invocation"] is invocation and each.begun < call.begun
        )
        return max([invocation.begun, *earlier])

    def _waits_ms(self, delivery: Delivery) -> tuple[int, int]:
        """The shortest and the longest wait after a failure.

        A message that the function did not begin has none, behind a failure of its group; in a call
        that Lambda refused it has the visibility timeout.
        """
        timeouts_ms = self._timeouts_ms()
        if _is_untried(delivery):
            return timeouts_ms if delivery.call.outcome == "refused" else (0, 0)
        retry = self._attributes.get("retry")
        if retry is None and "protocol" in self._attributes:
            waits = _WAITS_OF_ORDERED if self._attributes.get("ordered") else _WAITS_OF_GROUPS
            retry = {"waits": waits, "jitter": 0}
        if retry is None:
            return timeouts_ms
        waits = retry["waits"]
        wait_ms = round(1_000 * waits[min(delivery.count, len(waits)) - 1])
        return round(wait_ms * (1 - retry["jitter"])), wait_ms

    def _timeouts_ms(self) -> tuple[int, int]:
        """The shortest and the longest visibility timeout that the source had."""
        timeouts = [self._attributes.get("visibility_timeout_seconds", 30)]
        timeouts += [
            call.given["visibility_timeout_seconds"]
            for call in self._book.effective("change", self._place)
            if "visibility_timeout_seconds" in call.given
        ]
        return 1_000 * min(timeouts), 1_000 * max(timeouts)

    def lost(self, drain: Remaining) -> Iterator[Violation]:
        """Messages that the function never succeeded at, and nobody else was to have."""
        for sent in self._sent():
            yield from self._lost(sent, drain)

    def _lost(self, sent: Sent, drain: Remaining) -> Iterator[Violation]:
        queue = self._place.partition("/")[0]
        for message_id, (call, sent_ms) in sent.stored.items():
            if excused(self._scenario, self._book, drain, queue, sent_ms, call, sent):
                continue
            if may_be_replaced(self._book, message_id):
                continue
            track = self._tracks.get(message_id)
            deliveries = track.deliveries if track else []
            met = self._book.track(self._place, message_id)
            dead = [each for each in met.deliveries if each.dead is not None]
            deleted = any(True for _ in met.acts_before("delete", 1 << 60))
            if not deleted and not any(_done(each) for each in deliveries):
                calls = (call, *(each.call for each in deliveries))
                yield Violation(f"lost: {sent.label} was never done by {self._place}", calls)
            for each in dead[:1]:
                yield from self._never_handed(each, deliveries)

    def _never_handed(self, dead: Delivery, deliveries: list[Delivery]) -> Iterator[Violation]:
        """Each receive that a dead letter counts was a call that began the message, or a worker's
        that was disturbed."""
        assert dead.dead is not None
        works = self._book.by_kind["work"]
        unknown = sum(1 for call in works if call.disturbed or not call.known)
        if self._book.by_kind["redrive"] or dead.dead["reason"] != "max_receives":
            return
        tried = [
            each
            for each in deliveries
            if not _is_untried(each) or id(each.call) not in self._settled
        ]
        if len(tried) + unknown < dead.dead["receive_count"]:
            yield Violation("a dead letter that no function ever got", (dead.call,))

    def _order(self) -> Iterator[Violation]:
        groups: defaultdict[str | None, list[Sent]] = defaultdict(list)
        for sent in self._sent():
            if sent.ids and sent.key is None:
                groups[sent.group].append(sent)
        by_label = {sent.label: sent for members in groups.values() for sent in members}
        for call in self._calls:
            in_front: set[str] = set()
            for delivery in call.given["messages"]:
                late = by_label.get(delivery.label)
                for sent in groups[delivery.group] if late else ():
                    if late is None or sent.label in in_front or not _precedes(sent, late):
                        continue
                    if not self._is_out_of_the_way(sent, call):
                        told = f"{late.label} was handed over before {sent.label} of its group"
                        yield Violation(told, (sent.calls[0], call))
                in_front.add(delivery.label)

    def _is_out_of_the_way(self, sent: Sent, call: Call) -> bool:
        purges = self._book.effective("purge", self._place.partition("/")[0])
        if any(sent.begun < each.ended and each.begun < call.begun for each in purges):
            return True
        kept_ms = self._shortest_kept_ms()
        for message_id, (_, sent_ms) in sent.ids.items():
            if sent_ms + kept_ms <= call.begun_ms + MAX_SKEW_MS:
                return True
            deliveries = self._tracks[message_id].deliveries
            redriven = self._book.by_kind["redrive"]
            if redriven and any(
                each.sent_ms > sent_ms or self._may_have_left(each, call) for each in deliveries
            ):
                return True  # it left, nobody knows when, and is behind the others since
            if any(_done(each) and each.call.begun < call.begun for each in deliveries):
                return True
            for met in self._book.track(self._place, message_id).deliveries:
                if met.dead is not None and met.dead["dead_at"] <= call.begun_ms + MAX_SKEW_MS:
                    return True
        return False

    def _may_have_left(self, delivery: Delivery, call: Call) -> bool:
        """Returns True if a delivery was the last one that its message may have before a call."""
        return delivery.count >= self._most_receives and delivery.call.begun < call.begun

    def _shortest_kept_ms(self) -> float:
        """The shortest retention that its queue was changed to, in milliseconds."""
        name = "message_retention_seconds"
        changes = self._book.effective("change", self._place)
        return min(
            (1_000 * each.given[name] for each in changes if name in each.given), default=inf
        )

    def _late(self) -> Iterator[Violation]:
        """A source is not idle while something that it has is ready."""
        ready = {
            message_id: call.ended_ms + 1_000 * self._delay_seconds(sent)
            for sent in self._sent()
            for message_id, (call, _) in sent.ids.items()
        }
        free_ms: defaultdict[str | None, int] = defaultdict(int)
        last: dict[str, Delivery] = {}
        for call in self._calls:
            for delivery in call.given["messages"]:
                since_ms, before = ready.get(delivery.id, call.begun_ms), last.get(delivery.id)
                if before and self._came_back(self._tracks[delivery.id], before, delivery):
                    since_ms = call.begun_ms
                if self._attributes.get("ordered"):
                    since_ms = max(since_ms, free_ms[delivery.group])
                prompt_ms = SMALL_PAGES_MS if self._scenario.small_pages else PROMPT_MS
                if self._idle_ms(since_ms, call) > prompt_ms:
                    yield Violation(f"{delivery.label} was ready, and nothing happened", (call,))
            for delivery in call.given["messages"]:
                last[delivery.id] = delivery
                ready[delivery.id] = free = self._ready_ms(delivery)
                free_ms[delivery.group] = max(free, free_ms[delivery.group])

    def _ready_ms(self, delivery: Delivery) -> int:
        ended_ms: int = delivery.call.given["until_ms"]
        return ended_ms if _done(delivery) else ended_ms + self._waits_ms(delivery)[1]

    def _delay_seconds(self, sent: Sent) -> int:
        own = sent.calls[0].given["delays"][sent.place]
        return int(self._attributes.get("delay_seconds", 0) if own is None else own)

    def _idle_ms(self, since_ms: int, call: Call) -> int:
        """The longest time between `since_ms` and a call without any call of the source."""
        longest_ms, idle_ms = 0, since_ms
        for run in self._runs:
            if run is call:
                break
            if run.begun_ms > idle_ms:
                longest_ms = max(longest_ms, run.begun_ms - idle_ms)
            idle_ms = max(idle_ms, run.given["until_ms"])
        return max(longest_ms, call.begun_ms - idle_ms)


def _done(delivery: Delivery) -> bool:
    """Returns True if the function succeeded at a message."""
    call = delivery.call
    return call.outcome != "refused" and delivery.id not in call.given["failed"]


def _is_untried(delivery: Delivery) -> bool:
    """Returns True if the function did not begin a message, so that its receive does not count."""
    return delivery.id in delivery.call.given["untried"]


def _precedes(earlier: Sent, later: Sent) -> bool:
    if earlier.name == later.name:
        return earlier.place < later.place
    return earlier.answered < later.begun
