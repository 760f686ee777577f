"""Leases: one receiver holds a message at a time, and only the newest receipt is valid.

A: receive ──holds until 12:00:05──┐
B:               receive (held by two)   receive ──holds──> A's receipt is stale from here on
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, Violation
from cirrusmq_local.judging.places import Delivery
from cirrusmq_local.judging.rewinders import REWIND
from cirrusmq_local.judging.tracks import ENDING, Act, Book, Track


def check_leases(book: Book) -> Iterator[Violation]:
    """Expiry, one holder at a time, stale receipts, receipts refused without a reason."""
    for track in book.tracks.values():
        for delivery in track.deliveries:
            if delivery.call.begun_ms + delivery.call.skew_ms >= delivery.expires_ms:
                yield Violation("received after its expiry", (delivery.call,))
            if delivery.visible_ms > delivery.expires_ms:
                yield Violation("a lease outlives its message", (delivery.call,))
        yield from _one_holder(book, track)
        yield from _receipts(book, track)


def free_ms(track: Track, delivery: Delivery, until: int) -> int:
    """The earliest time at which a delivery's hold can have ended, as far as calls up to `until`
    (a moment) may have ended it."""
    free = delivery.visible_ms
    perhaps = []  # an unanswered call may take effect late, after later calls
    for act in track.acts_on(delivery):
        if act.call.begun >= until or not act.effective:
            continue
        if act.verb == "visibility" and act.done and act.call.ended < until:
            free = act.free_ms
        else:
            perhaps.append(act.free_ms)
    return min([free, *perhaps])


def _one_holder(book: Book, track: Track) -> Iterator[Violation]:
    for before, after in pairwise(track.deliveries):
        if before.receipt == after.receipt:
            if "repeat" not in after.call.given:
                yield Violation("one receipt, answered twice", (before.call, after.call))
            continue
        if after.claim_ms >= free_ms(track, before, after.call.ended):
            continue
        if not revived(book, track, before, after):
            yield Violation("held by two receivers at once", (before.call, after.call))


def revived(book: Book, track: Track, before: Delivery, after: Delivery) -> bool:
    """Returns True if the message may have been deleted and brought back between two deliveries."""
    if _rewound(book, track, before, after):
        return True
    gone = [act.call.begun for act in track.acts_before("delete", after.call.ended)]
    gone += [call.begun for call in book.effective("purge", track.reader.partition("/")[0])]
    return bool(gone) and bool(returns(book, track, after, min(gone)))


def _rewound(book: Book, track: Track, before: Delivery, after: Delivery) -> bool:
    """Returns True if a group may have been rewound between two deliveries, which ends the first
    one's receipt. A receive that began before may still answer as if there were no rewind."""
    return any(
        call.begun < after.call.ended
        and (before.call.begun < call.ended or after.call.begun < call.ended)
        and call.given["to_ms"] <= after.sent_ms
        for call in book.effective(REWIND, track.reader)
    )


def first_gone(book: Book, track: Track, gone: int) -> int:
    """The moment from which a repeated send may have found nothing of the message, and stored a
    copy of it that lives beside what a rewind or redrive brings back."""
    moments = [act.call.begun for verb in ENDING for act in track.acts_before(verb, gone)]
    moments += [call.begun for call in book.effective("purge", track.reader.partition("/")[0])]
    return min([gone, *moments])


def returns(book: Book, track: Track, after: Delivery, gone: int) -> bool:
    """Returns True if a call may have brought the message back between a moment and a delivery.

    A rewind takes messages deleted before it began; a send repeated when its message is consumed
    stores it again; a record that is fanned out again makes a deleted parcel again.
    """
    queue = track.reader.partition("/")[0]
    for call in book.effective("rewind", queue):
        meanwhile = gone < call.ended and call.begun < after.call.ended
        if meanwhile and call.given["to_ms"] <= after.sent_ms:
            return True
    for call in book.effective(REWIND, track.reader):
        meanwhile = gone < call.ended and call.begun < after.call.ended
        if meanwhile and call.given["to_ms"] <= after.sent_ms:
            return True
    earlier = [each for each in track.deliveries if each.sent_ms < after.sent_ms]
    lapsed_ms = min((each.expires_ms for each in earlier), default=1 << 60)
    for call in book.sends_of(track.id):
        # After its first life is over, a dead letter of it does not keep a repetition away.
        lapsed = call.ended_ms + MAX_SKEW_MS >= lapsed_ms
        if (gone < call.ended or lapsed) and call.begun < after.call.ended:
            return True
    handed_out = [
        call for call in book.by_kind["fan_out"] if track.id[4:-1] in call.given["records"]
    ]
    handed_out += [call for call in book.by_kind["replay"] if "parked" in call.given]
    if any(_may_put_late(call, gone) and call.begun < after.call.ended for call in _replays(book)):
        return True
    return any(
        (gone < call.ended or call.haunted) and call.begun < after.call.ended for call in handed_out
    )


def _replays(book: Book) -> Iterator[Call]:
    """The runs of the operations that give groups what a log has."""
    return (call for call in book.by_kind["replay"] if "operation" in call.given)


def _may_put_late(replay: Call, gone: int) -> bool:
    """Returns True if a put of a replay may take effect behind a delete that it does not know of.

    replay          PutItem ──────── slow, for longer than its lease ────────> stored again
    next replay            the same parcel stored ──> receive ──> delete
    """
    return replay.haunted or (
        replay.begun < gone < replay.ended and "PutItem: slow" in replay.faults
    )


def _receipts(book: Book, track: Track) -> Iterator[Violation]:
    for act in track.acts:
        newer = [
            each
            for each in track.deliveries
            if each.receipt != act.delivery.receipt
            and (each.true_claim_ms, each.count) > (act.delivery.true_claim_ms, act.delivery.count)
            and each.call.ended < act.call.begun
        ]
        used = [
            each
            for each in track.acts_on(act.delivery)
            if each.verb in ENDING and each.done and each.call.ended < act.call.begun
        ]
        newer = [
            each
            for each in newer
            if not returns(book, track, each, first_gone(book, track, act.call.ended))
        ]
        if act.done and newer and not _deleted_before(track, act):
            yield Violation("a stale receipt was acted on", (newer[0].call, act.call))
        # A write that the SDK repeats finds no message, and cannot know whose doing that is.
        if act.done and used and not act.call.repeated and not _deleted_before(track, act):
            yield Violation("a receipt was used again after its end", (used[0].call, act.call))
        if isinstance(act.result, str) and _good(book, track, act):
            yield Violation("a good receipt was refused", (act.delivery.call, act.call))


def _deleted_before(track: Track, act: Act) -> bool:
    """Returns True if a delete may have found its message deleted already, by another call."""
    earlier = track.acts_before("delete", act.call.ended)
    return act.verb == "delete" and any(each.call is not act.call for each in earlier)


def _good(book: Book, track: Track, act: Act) -> bool:
    """Returns True if a receipt was beyond doubt the newest, and its lease still running."""
    delivery, call = act.delivery, act.call
    queue = track.reader.partition("/")[0]
    ended_ms = call.ended_ms + MAX_SKEW_MS  # by the clock of a receiver that took it since
    if act.result != "ReceiptExpired" or ended_ms >= delivery.expires_ms:
        return False
    if ended_ms >= free_ms(track, delivery, call.ended):
        return False
    if any(each.begun < call.ended for each in book.effective("purge", queue)):
        return False
    for each in book.effective(REWIND, track.reader):
        if each.begun < call.ended and each.given["to_ms"] <= delivery.sent_ms:
            return False
    others = (each for each in track.acts_on(delivery) if each is not act or act.verb != "delete")
    return not any(
        each.effective and each.call.begun < call.ended
        for each in others
        if each.verb in ENDING or each.call.given.get("seconds") == 0
    )
