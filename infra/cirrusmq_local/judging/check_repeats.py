"""A receive that is repeated within the lease answers what its first try holds, same receipts.

receive ──answers m1, m2, held until 12:00:05──┐        repeat ──> m1, m2
                                               └ nobody settles them until then

In a long queue it may find a part, or nothing, and then it acts like a first receive.
A try that lost the answer of a claim may hold more than it answered, in an earlier partition: its
repeat answers what it finds there, and the rest comes again when its lease has ended.
"""

from __future__ import annotations

from collections.abc import Iterator

from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, Violation
from cirrusmq_local.judging.places import Delivery
from cirrusmq_local.judging.rewinders import REWIND
from cirrusmq_local.judging.tracks import Book, reader_of

_MAX_WAITING = 80
"""A repeat looks with 50 read units: this number of parcels it reads beyond doubt."""
_CHANGES = ("purge", "rewind", "change")
"""With fewer partitions or a shorter life a message may be out of reach, with a purge gone."""


def check_repeats(book: Book) -> Iterator[Violation]:
    """Each repeat that was answered, undisturbed, against its first try that was answered."""
    if any(book.by_kind[kind] for kind in _CHANGES):
        return
    first: dict[str, Call] = {}
    for call in book.by_kind["receive"]:
        if "attempt" not in call.given or not call.known:
            continue
        before = first.setdefault(call.given["attempt"], call)
        if before is call or call.faults or before.outdated or before.unanswered:
            continue
        answered = {delivery.receipt for delivery in call.answer}
        held = [each for each in before.answer if _held(book, each, call)]
        if not held or _waiting(book, call) > _MAX_WAITING:
            continue
        if len(held) == len(before.answer) and not {each.receipt for each in held} <= answered:
            yield Violation("a repeated receive did not answer what it holds", (before, call))


def _waiting(book: Book, repeat: Call) -> int:
    """The most messages that may be in a queue or group when a repeat is made."""
    sent = sum(each.begun < repeat.ended for each in book.sent.values())
    gone = sum(
        any(
            act.done and act.call.ended < repeat.begun
            for act in track.acts_before("delete", repeat.begun)
        )
        for track in book.tracks.values()
        if track.reader == repeat.place
    )
    return sent - gone


def _held(book: Book, delivery: Delivery, repeat: Call) -> bool:
    """Returns True if a message is held beyond doubt until the repeat has ended."""
    if repeat.ended_ms + 2 * MAX_SKEW_MS >= min(delivery.visible_ms, delivery.expires_ms):
        return False
    reader = reader_of(delivery)
    # A rewind ends every receipt of its group, also while the repeat looks.
    if any(call.begun < repeat.ended for call in book.effective(REWIND, reader)):
        return False
    track = book.track(reader, delivery.id)
    return not any(act.call.begun < repeat.ended for act in track.acts_on(delivery))
