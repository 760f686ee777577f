"""Fair queues: while a message of a group waits, no environment serves another one again and again.

    sent, due, seen by all ──── the wait ──── its first delivery
    environment ~1      loud        loud        loud     ← passed over: its ring has gone around

An environment that a fault met, or whose answer is not known, may have had its turn for the group.

If groups have `max_in_flight`, a receive and the leases that others surely hold stay within it:

    lease      held ──── 5 s ──── a receive of the group ──── 5 s ──── its end
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cirrusmq.model.receipt import decode
from cirrusmq_local.judging.history import Call, Violation
from cirrusmq_local.judging.places import Delivery
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import Book

_SHARES = 4
"""The number of groups that a receive takes from, if there are as many."""

SEEN_MS = 5_000
"""A due message is seen after this time: clocks differ, and marks hide it for a while."""
LONGEST_DELAY_MS = 3_000
"""The longest delay that a sender gives a message."""
MAX_TURNS = 2
"""Turns of another group with one environment: the turn it had just begun, and the next."""


def check_turns(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """Each first delivery against the receives that other groups had while it waited."""
    if book.by_kind["change"] or _passes(scenario):
        return  # the delay is not known, or a group is passed over with reason
    delay_ms = 1_000 * scenario.queues["orders"].get("delay_seconds", 0)
    calls = _by_turns(book)
    seen: set[str] = set()
    """The ids delivered: a rewound message waits again, from a time that is not known."""
    for call in book.by_kind["receive"]:
        for delivery in call.answer if call.known and call.place == "orders" else ():
            first = "group" not in call.given and delivery.id not in seen
            seen.add(delivery.id)
            if first and delivery.count == 1 and delivery.dead is None:
                due_ms = delivery.sent_ms + max(delay_ms, LONGEST_DELAY_MS) + SEEN_MS
                yield from _wait_of(delivery, due_ms, calls)


def _passes(scenario: Scenario) -> bool:
    """Returns True if groups have a limit at which a receive passes them."""
    return bool({"max_in_flight", "rate"} & scenario.queues["orders"].keys())


def _by_turns(book: Book) -> list[Call]:
    """The receives that name no group: these take out of turn."""
    calls = (call for call in book.by_kind["receive"] if call.place == "orders")
    return [call for call in calls if "group" not in call.given]


def _wait_of(waiting: Delivery, due_ms: int, calls: list[Call]) -> Iterator[Violation]:
    partition = _partition(waiting)
    turns: Counter[tuple[str, str | None]] = Counter()
    for call in calls:
        if call.begun_ms <= due_ms or call.begun >= waiting.call.begun:
            continue
        if "repeat" in call.given:
            continue  # it may answer what an earlier one had
        of_partition = [
            each.group
            for each in (call.answer if call.known else ())
            if _partition(each) == partition
        ]
        if not call.known or call.disturbed or waiting.group in of_partition:
            for key in [key for key in turns if key[0] == call.environment]:
                del turns[key]
            continue
        for group in dict.fromkeys(of_partition):
            turns[call.environment, group] += 1
            if turns[call.environment, group] > MAX_TURNS:
                text = f"{group} was served {MAX_TURNS + 1} times before {waiting.label}"
                yield Violation(f"{text} of {waiting.group}", (call, waiting.call))
                return


def check_shares(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """A full receive has at most its share of a group while another group waits.

    wants 4, a share is 1      answered: loud loud loud loud        red: due, seen, not held
    """
    if book.by_kind["change"] or scenario.small_pages:
        return
    if _passes(scenario):
        return
    delay_ms = 1_000 * scenario.queues["orders"].get("delay_seconds", 0)
    calls = _by_turns(book)
    first: dict[str, Delivery] = {}
    for call in calls:
        for delivery in call.answer if call.known else ():
            first.setdefault(delivery.id, delivery)
    waited = [each for each in first.values() if each.count == 1 and each.dead is None]
    for call in calls:
        if not call.known or call.disturbed or not _alone(call, book):
            continue
        groups = Counter(each.group for each in call.answer)
        share = _share_of(call.given["max"])
        if len(call.answer) < call.given["max"] or max(groups.values()) <= share:
            continue
        partitions = {_partition(each) for each in call.answer}
        for each in waited:
            due_ms = each.sent_ms + max(delay_ms, LONGEST_DELAY_MS) + SEEN_MS
            there = _partition(each) in partitions and each.call.begun > call.ended
            if there and due_ms < call.begun_ms and each.group not in groups:
                text = f"{each.label} of {each.group} waited while others got more than a share"
                yield Violation(text, (call, each.call))
                return


def _alone(call: Call, book: Book) -> bool:
    """Returns True if no other call runs at the same time, which may win a race against it."""
    return not any(
        other is not call and other.overlaps(call)
        for other in book.calls
        if other.kind not in ("meter", "fan_out")
    )


def check_in_flight(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """Each receive against what its groups had in flight when it began."""
    limit = scenario.queues["orders"].get("max_in_flight")
    if limit is None or book.by_kind["change"]:
        return
    held: list[tuple[Delivery, int]] = []
    """(delivery, the moment from which it may be free)"""
    for (reader, _, _), track in book.tracks.items():
        for delivery in track.deliveries if reader == "orders" else ():
            # A repeated receive answers the receipt of the first one.
            ends = [
                act.call.begun for act in track.acts if act.delivery.receipt == delivery.receipt
            ]
            # A purged message is not counted any more.
            purges = book.effective("purge", "orders")
            ends += [call.begun for call in purges if call.ended > delivery.call.begun]
            held.append((delivery, min(ends, default=1 << 60)))
    for call in book.by_kind["receive"]:
        if call.place != "orders" or not call.known:
            continue
        for group, partition in {(each.group, _partition(each)) for each in call.answer}:
            there = {
                other.id
                for other, free in held
                if (other.group, _partition(other)) == (group, partition)
                and other.call.ended_ms + SEEN_MS < call.begun_ms
                and other.visible_ms > call.ended_ms + SEEN_MS
                and free > call.ended
            }
            added = {each.id for each in call.answer if each.group == group} - there
            if added and len(there | added) > limit:
                text = f"{group} had {len(there)} in flight and got {len(added)} more"
                yield Violation(f"{text}: {limit} are allowed", (call,))
                return


def _share_of(limit: int) -> int:
    """How many messages of a group a receive takes at first."""
    return -(-limit // _SHARES)


def _partition(delivery: Delivery) -> int:
    receipt = decode(delivery.receipt)
    assert receipt is not None
    return receipt.partition
