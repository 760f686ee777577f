"""A message's life: in one place at a time, gone when deleted, and never gone otherwise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from cirrusmq.base.limits import CALL_MS, TOPIC_LIFE_SECONDS
from cirrusmq_local.judging.cancellers import CANCEL, RESCHEDULE, may_be_cancelled
from cirrusmq_local.judging.check_leases import first_gone, free_ms, returns, revived
from cirrusmq_local.judging.check_replacing import may_be_replaced
from cirrusmq_local.judging.deployment import Remaining
from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, Violation
from cirrusmq_local.judging.places import Delivery
from cirrusmq_local.judging.rewinders import OPEN
from cirrusmq_local.judging.scenario import LATE, Scenario
from cirrusmq_local.judging.tracks import HANDED, Act, Book, Sent, Track

LONGEST_LEASE_SECONDS = 100
"""The longest visibility timeout that receivers ask for here."""
_MOVERS = ("replay", "receive")
"""Kinds of calls that dead-letter messages."""


def check_lives(scenario: Scenario, book: Book, drain: Remaining) -> Iterator[Violation]:
    """Returned after a delete or purge, in two places, counted wrong, lost."""
    for track in book.tracks.values():
        for delivery in track.deliveries:
            yield from _gone(book, track, delivery)
            yield from _too_early(scenario, book, track, delivery)
        for before, after in pairwise(track.deliveries):
            yield from _next_delivery(scenario, book, track, before, after)
    yield from _ids(book)
    yield from _answered_with_purged(book)
    for sent in book.sent.values():
        yield from _lost(scenario, book, drain, sent)
    yield from _atomic(scenario, book)


def _was_given_back(track: Track, act: Act) -> bool:
    """Returns True if the act is by a receipt that its holder may have given back before."""
    ended = track.acts_before("give back", act.call.begun)
    return any(each.delivery.receipt == act.delivery.receipt for each in ended)


def _gone(book: Book, track: Track, delivery: Delivery) -> Iterator[Violation]:
    """No deleted or purged message is received, unless an operation brought it back."""
    deleted = [
        act
        for act in track.acts
        if act.verb == "delete"
        and act.done
        # A receiver that gave it back deletes nothing, but a write that the SDK repeats hides it.
        and not (act.call.repeated and _was_given_back(track, act))
        # A receive makes its own deletes before it claims.
        and (act.call.ended < delivery.call.begun or act.call.begun == delivery.call.begun)
    ]
    if deleted:
        # A delete that the SDK repeated may say so of a message deleted long before.
        receipt = deleted[-1].delivery.receipt
        first = next(act for act in deleted if act.delivery.receipt == receipt)
        if not returns(book, track, delivery, first_gone(book, track, first.call.begun)):
            yield Violation("received after it was deleted", (first.call, delivery.call))
    for call in book.by_kind["purge"]:
        in_reach = delivery.call.place.partition("/")[0] == call.place
        in_force = call.known and call.ended < delivery.call.begun
        purged_ms = call.begun_ms + call.skew_ms - call.unsure_ms
        if in_reach and in_force and delivery.sent_ms < purged_ms:
            yield Violation("received after the queue was purged", (call, delivery.call))


def _too_early(
    scenario: Scenario, book: Book, track: Track, delivery: Delivery
) -> Iterator[Violation]:
    """A message's own delay is kept; the queue's may change in the meantime.

    receiver, its clock ahead   receives the message, gives it back untried
    receiver, its clock behind                                       receives it: the count is 1
    """
    if delivery.dead is not None or delivery is not track.deliveries[0]:
        return
    if delivery.count > 1 or book.by_kind["redrive"]:
        return
    if any(call.given["id"] == delivery.id for call in book.by_kind[RESCHEDULE]):
        return
    for sent in (each for each in book.sent.values() if each.label == delivery.label):
        delay = sent.calls[0].given["delays"][sent.place]
        # A topic's message may be sent again into its queue, later.
        published_ms = [sent_ms for _, sent_ms in sent.ids.values()]
        sent_ms = min([delivery.sent_ms, *published_ms])
        if sent.calls[0].given.get("bounded"):
            continue  # its bound may have made it due earlier
        if delay and delivery.claim_ms < sent_ms + 1_000 * delay and not sent.key:
            yield Violation("received before its delay was over", (sent.calls[0], delivery.call))


def _next_delivery(
    scenario: Scenario, book: Book, track: Track, before: Delivery, after: Delivery
) -> Iterator[Violation]:
    """From one delivery to the next: counted on, or moved with a reason, never two copies."""
    if before.receipt == after.receipt:
        return
    calls = (before.call, after.call)
    queue = track.reader.partition("/")[0]
    until = after.call.ended
    rewound = any(call.begun < until for call in book.effective("rewind", queue))
    redriven = any(call.begun < until for call in book.effective("redrive", "dead"))
    if after.sent_ms == before.sent_ms:
        if after.call.place != before.call.place:
            yield Violation("in two places at once", calls)
        yield from _counted(book, track, before, after)
    elif after.call.place != before.call.place:
        if after.dead is not None and not redriven:
            free = free_ms(track, before, until)
            again = _purged_and_sent_again(book, track, after)
            if not again and not rewound and not _consumed(book, track, before, after):
                counted = before.count - bool(track.untried(before, until))
                yield from _dead_letter(before, after, free, counted)
        if after.dead is None and not redriven and not _purged_and_sent_again(book, track, after):
            yield Violation("came back from the dead-letter queue by itself", calls)
    elif not redriven and not rewound and not _consumed(book, track, before, after):
        yield Violation("a repeated send was stored beside the first", calls)


def _counted(book: Book, track: Track, before: Delivery, after: Delivery) -> Iterator[Violation]:
    """A receive counts, but one that was given back untried.

    receive: 3 ── given back untried ── receive: 3 ── given back ── receive: 4
    """
    if revived(book, track, before, after):
        return
    calls, untried = (before.call, after.call), track.untried(before, after.call.ended)
    if after.count < before.count + (not untried):
        yield Violation("the receive count did not grow: two copies", calls)
    between = (
        each
        for each in book.by_kind["receive"]
        if each.place == track.reader
        and each not in calls
        and each.begun < after.call.ended
        and before.call.begun < each.ended
    )
    certain = all(each.known and not each.disturbed for each in between)
    if any(act.done for act in untried) and certain and after.count > before.count:
        yield Violation("a receive that nothing was tried at was counted", calls)


def _dead_letter(before: Delivery, after: Delivery, free: int, counted: int) -> Iterator[Violation]:
    assert after.dead is not None
    calls = (before.call, after.call)
    if after.dead["dead_at"] < free:
        yield Violation("moved to the dead-letter queue while it was held", calls)
    if after.dead["receive_count"] < counted:
        yield Violation("a dead letter forgot how often it was received", calls)


def _consumed(book: Book, track: Track, before: Delivery, after: Delivery) -> bool:
    """Returns True if a send repeated just before `after` may have found its message gone."""
    until, queue = after.call.ended, track.reader.partition("/")[0]
    if not any(call.begun > before.call.begun for call in book.sends_of(track.id)) and not any(
        call.ended > before.call.begun for call in book.sends_of(track.id)
    ):
        return False
    # A message that is sent again then comes to all of the queue's receivers.
    tracks = {each.reader: each for each in (track, book.track(queue, track.id))}.values()
    gone = any(
        True
        for each in tracks
        for verb in ("delete", "dead letter")
        for _ in each.acts_before(verb, until)
    )
    purged = any(call.begun < until for call in book.effective("purge", queue))
    return gone or purged or after.claim_ms >= before.expires_ms


def _purged_and_sent_again(book: Book, track: Track, after: Delivery) -> bool:
    """Returns True if a repeated send may have found nothing of the first, not even its parcel."""
    purges = [call.begun for call in book.effective("purge", track.reader.partition("/")[0])]
    return bool(purges) and any(call.ended > min(purges) for call in book.sends_of(track.id))


def _ids(book: Book) -> Iterator[Violation]:
    """A repeated send answers the first one's ids, a duplicate within five minutes too.

    Unless the first one may have been purged before the second: after the purge it is a new one.
    """
    by_key: defaultdict[str, dict[str, tuple[Call, int]]] = defaultdict(dict)
    for sent in book.sent.values():
        if sent.key is None and len(sent.ids) > 1:
            first, second = list(sent.ids.values())[:2]
            yield Violation("a repeated send answered another id", (first[0], second[0]))
        if sent.key is not None:
            by_key[sent.label] |= sent.ids
    for ids in by_key.values():
        in_order = sorted(ids.values(), key=lambda each: each[1])
        for (call, sent_ms), (other, other_ms) in pairwise(in_order):
            if other_ms - sent_ms < 300_000 and not _purged_between(book, call, other):
                yield Violation("two messages with one deduplication id", (call, other))


def _purged_between(book: Book, call: Call, other: Call) -> bool:
    """Returns True if a purge may have taken one send's message before another stored its own."""
    purges = book.effective("purge", call.place)
    # A call that is asked for again stored it when it was asked for first.
    asked = book.by_kind["send"]
    begun = min((each.begun for each in asked if _is_asked_again(each, call)), default=call.begun)
    return any(purge.begun < other.ended and purge.ended > begun for purge in purges)


def _is_asked_again(first: Call, call: Call) -> bool:
    """Returns True if two calls are the same send."""
    attempt = call.given["attempt"]
    return attempt is not None and first.given["attempt"] == attempt and first.place == call.place


def _answered_with_purged(book: Book) -> Iterator[Violation]:
    """A send that begins after a purge is answered is not answered with a purged message's id.

    A: k ── answered ── purge ── answered ── B: k, another send ── answered with A's id
    """
    for sent in book.sent.values():
        if sent.key is None:
            continue
        for call, sent_ms in sent.ids.values():
            for purge in book.effective("purge", call.place):
                after = purge.known and purge.ended < sent.begun
                if after and sent_ms < purge.begun_ms - 2 * MAX_SKEW_MS:
                    promise = "a send after a purge was answered with a purged message"
                    yield Violation(promise, (purge, call))


def _lost(scenario: Scenario, book: Book, drain: Remaining, sent: Sent) -> Iterator[Violation]:
    for message_id, (call, sent_ms) in sent.stored.items():
        for reader in _readers(scenario, sent):
            queue = reader.partition("/")[0]
            if excused(scenario, book, drain, queue, sent_ms, call, sent):
                continue
            track = book.track(reader, message_id)
            if reader == LATE.name and _left_before(book, message_id):
                continue
            # A message that a purge took and a send stored again has earlier deliveries.
            since = any(each.sent_ms >= sent_ms for each in track.deliveries)
            if not since and may_be_cancelled(book, reader, message_id):
                continue
            if not since and may_be_replaced(book, message_id):
                continue
            if not track.deliveries:
                yield Violation(f"lost: {sent.label} was never received by {reader}", (call,))
                continue
            last = track.deliveries[-1]
            if any(act.free_ms >= last.expires_ms for act in track.acts_on(last)):
                continue  # held to the end of its life
            if not any(True for _ in track.acts_before("delete", 1 << 60)):
                yield Violation(f"lost: {sent.label} after a receive by {reader}", (last.call,))
            yield from _not_rewound(scenario, book, drain, track)


def _left_before(book: Book, message_id: str) -> bool:
    """Returns True if a message may have left the queue before the receiver `late` was made.

    A call that is under way when it is made may have read the queue before, and ends a message
    without a note:

        replay   reads the queue ───────────────── dead-letters m
        opener             the receiver ── answered
    """
    opened = min(call.ended for call in book.effective(OPEN, LATE.name) if call.known)
    opened_ms = min(call.ended_ms for call in book.effective(OPEN, LATE.name) if call.known)
    track = book.track(LATE.holder, message_id)
    left = any(True for verb in ("delete", "dead letter") for _ in track.acts_before(verb, opened))
    dead_ms = min(
        (each.dead["dead_at"] for each in track.deliveries if each.dead is not None),
        default=1 << 60,
    )
    under_way = (call for kind in _MOVERS for call in book.by_kind[kind] if call.begun < opened)
    may_move_until_ms = max(
        (min(call.ended_ms, call.begun_ms + CALL_MS) for call in under_way), default=0
    )
    return left or dead_ms < max(opened_ms, may_move_until_ms) + MAX_SKEW_MS


def _readers(scenario: Scenario, sent: Sent) -> Iterator[str]:
    """The places that are to get a message; URLs and functions are checked elsewhere."""
    return (place for place in _places(scenario, sent) if place not in scenario.invoked)


def _places(scenario: Scenario, sent: Sent) -> Iterator[str]:
    target = sent.calls[0].place
    if target in scenario.queues:
        yield from (target, *(f"{target}/{name}" for name in scenario.receivers))
        if scenario.early:
            yield LATE.name
        return
    for name, attributes in scenario.subscriptions.items():
        wanted = attributes.get("filter", {}).get("tags")
        tags = sent.calls[0].given["tags"][sent.place]
        if wanted is None or set(wanted) & set(tags):
            if attributes["protocol"] == "queue":
                endpoint = attributes["endpoint"]
                yield from (endpoint, *(f"{endpoint}/{each}" for each in scenario.receivers))
            elif attributes["protocol"] == "pull":
                yield f"{target}/{name}"
    if scenario.late:
        yield f"{target}/late"


def excused(
    scenario: Scenario,
    book: Book,
    drain: Remaining,
    queue: str,
    sent_ms: int,
    sending: Call,
    sent: Sent,
) -> bool:
    """Returns True if a message may be gone without having been received.

    `sending`: the call whose answer said that the message is stored. A purge takes no message
    that was sent after its answer, even if the clocks differ.
    """
    if queue not in scenario.queues:
        return sent_ms + 1_000 * TOPIC_LIFE_SECONDS <= drain.begun_ms + MAX_SKEW_MS
    lives = [scenario.queues[queue]["message_retention_seconds"]]
    lives += [
        call.given["message_retention_seconds"]
        for call in book.effective("change", queue)
        if "message_retention_seconds" in call.given
    ]
    if asks := sent.calls[0].given.get("asks"):
        lives.append(asks)  # its life ends at its deadline
    # A message may wait for its retry to the end of its life, or for one of its group that does.
    wait_seconds = max(scenario.queues[queue].get("retry", {}).get("waits", [0]))
    waits = wait_seconds or scenario.queues[queue].get("ordered")
    slack_seconds = wait_seconds + LONGEST_LEASE_SECONDS if waits or asks else 0
    # Under a rate the last message that the drain receives waits for all the others.
    for name in ("receive_rate", "rate"):
        if rate := scenario.queues[queue].get(name):
            slack_seconds += -(-drain.left[queue].kept // rate)
    # One with a deduplication id is the first one's, which may be unanswered; so is a topic's copy.
    once = sent.key or sending.place != queue
    begun = min([sending.begun, *(each.begun for each in book.sends_labelled(sent) if once)])
    if sent_ms + 1_000 * (min(lives) - slack_seconds) <= drain.begun_ms + MAX_SKEW_MS:
        return True
    return any(begun < call.ended for call in book.effective("purge", queue))


def _not_rewound(
    scenario: Scenario, book: Book, drain: Remaining, track: Track
) -> Iterator[Violation]:
    """A rewind brings back everything that was deleted before it began."""
    kept_ms = 1_000 * scenario.queues["orders"].get("rewind_seconds", 0)
    queue = track.reader.partition("/")[0]
    for rewind in (call for call in book.effective("rewind", queue) if call.known):
        for act in track.acts_before("delete", rewind.begun):
            sent_ms = act.delivery.sent_ms
            if not act.done or act.call.ended > rewind.begun or act.delivery.dead is not None:
                continue
            if sent_ms < rewind.given["to_ms"]:
                continue
            if sent_ms + kept_ms <= drain.begun_ms + MAX_SKEW_MS:
                continue
            if may_be_cancelled(book, track.reader, track.id) or may_be_replaced(book, track.id):
                continue  # what a rewind brings back was not received since
            again = [each for each in track.deliveries if each.call.ended > act.call.ended]
            if not again and act.delivery.expires_ms > drain.begun_ms + MAX_SKEW_MS:
                yield Violation("a rewind did not bring a message back", (act.call, rewind))


def _atomic(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """An unanswered send is stored whole or not at all."""
    if scenario.queues["orders"]["message_retention_seconds"] < 1_000 or book.by_kind["purge"]:
        return
    if any("message_retention_seconds" in call.given for call in book.by_kind["change"]):
        return
    seen = {delivery.label for track in book.tracks.values() for delivery in track.deliveries}
    seen |= {each.label for call in book.by_kind[HANDED] for each in call.given["messages"]}
    seen |= {book.label_of[call.given["id"]] for call in book.by_kind[CANCEL] if call.effective}
    sends: defaultdict[str, list[Sent]] = defaultdict(list)
    for sent in book.sent.values():
        if sent.key is None:
            sends[sent.name].append(sent)
    for held in sends.values():
        there = [sent for sent in held if sent.label in seen]
        if there and len(there) < len(held):
            yield Violation("half of a send was stored", tuple(held[0].calls))
