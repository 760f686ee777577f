"""A message with a `replace` key is received, or another one took its place: never both or neither.

    a sent ──> b sent, replaced: a ──> a is received by nobody, from the beginning
    a sent ──> b sent, replaced: null ──> a was claimed before, or has ended

Excused is what a purge takes, since the same send stores it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cirrusmq.base.timestamps import parse_time
from cirrusmq_local.judging.history import Call, Violation
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import Book, Sent

_UNDOING = ("purge", "rewind", "change", "redrive")


class Answered(list[tuple[str, int]]):
    """Id and time of sending of each message of a send, and the message that it replaced."""

    replaced: str | None = None


def read_sent(call: Call, answer: Any) -> Answered:
    """Returns the answer of a send."""
    entries = answer["messages"]
    shown = Answered((each["id"], parse_time("sent_at", each["sent_at"])) for each in entries)
    shown.replaced = entries[0].get("replaced")
    return shown


def key_of(sent: Sent) -> str | None:
    """Returns the key by which a message replaces others, or None."""
    key: str | None = sent.calls[0].given.get("replaces")
    return key


def may_be_replaced(book: Book, message_id: str) -> bool:
    """Returns True if a send may have taken a message's place, by what the senders know."""
    own = [sent for sent in book.sent.values() if message_id in sent.ids]
    if not own or key_of(own[0]) is None:
        return False
    for sent in _others(book, own[0]):
        for call in sent.calls:
            if call.ended < own[0].begun:
                continue
            # The answer of a repetition has what its first try replaced, if that is known.
            told = call.known and (call is sent.calls[0] or call.answer.replaced is not None)
            if not told or call.answer.replaced == message_id:
                return True
    return False


def replaced_ids(book: Book, queue: str) -> tuple[set[str], int]:
    """Returns the ids that were replaced in a queue, and how many more may be."""
    known: set[str] = set()
    unknown = 0
    for sent in book.sent.values():
        if key_of(sent) is None or sent.calls[0].place != queue:
            continue
        found = {call.answer.replaced for call in sent.calls if call.known}
        known |= {each for each in found if each is not None}
        if found <= {None} and (len(sent.calls) > 1 or not sent.calls[0].known):
            unknown += 1
    return known, unknown


def check_replacing(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """Yields what breaks the promises above."""
    if not scenario.replacing:
        return
    claims = {
        track.id: track.deliveries
        for track in book.tracks.values()
        if track.reader == "orders" and track.deliveries
    }
    undone = any(book.effective(kind, "orders") for kind in _UNDOING)
    for sent in book.sent.values():
        if key_of(sent) is None:
            continue
        for call in sent.calls:
            replaced = call.answer.replaced if call.known else None
            if replaced is None or undone:
                continue
            if replaced in claims:
                yield Violation("received, and replaced", (call, claims[replaced][0].call))
            yield from _replaced_a_newer_one(book, sent, call, replaced, claims)
        if not undone:
            yield from _left_waiting(book, sent, claims)


def _replaced_a_newer_one(
    book: Book, sent: Sent, call: Call, replaced: str, claims: dict[str, Any]
) -> Iterator[Violation]:
    """A send that is repeated after its message was received takes nothing away."""
    newer = [each for each in book.sent.values() if replaced in each.ids]
    received = [each.call for one in sent.ids for each in claims.get(one, ())]
    for each in newer:
        if any(receive.ended < each.begun for receive in received):
            yield Violation("a repeated send replaced a newer message", (call, each.calls[0]))


def _left_waiting(book: Book, sent: Sent, claims: dict[str, Any]) -> Iterator[Violation]:
    """A message that waited under the key when a send began does not wait behind it."""
    (first, *again) = sent.calls
    if again or not first.known or first.answer.replaced is not None:
        return
    receives = [call for call in book.by_kind["receive"] if call.place == "orders"]
    if any(map(first.overlaps, receives)):
        return  # it may have held the message for a moment
    own = [each for one in sent.ids for each in claims.get(one, ())][:1]
    own_begun = _first_try(receives, own[0].call) if own else 0
    for other in _others(book, sent):
        at_once = other.answered > first.begun
        if at_once and not (own and own[0].count == 1 and own_begun > other.answered):
            continue  # of two sends at once, one replaces the other if both are there
        if at_once and any(call.overlaps(each) for call in other.calls for each in receives):
            continue  # as above, when the other one was sent
        for message_id in other.ids:
            deliveries = claims.get(message_id, ())
            if deliveries and deliveries[0].count == 1 and deliveries[0].dead is None:
                taken = deliveries[0]
                if _first_try(receives, taken.call) > max(first.ended, other.answered):
                    yield Violation("it waited, and was not replaced", (first, taken.call))


def _first_try(receives: list[Call], receive: Call) -> int:
    """The beginning of the receive that may have claimed what it or its repeat answers."""
    attempt = receive.given.get("attempt")
    if attempt is None:
        return receive.begun
    return min(each.begun for each in receives if each.given.get("attempt") == attempt)


def _others(book: Book, sent: Sent) -> list[Sent]:
    return [
        each
        for each in book.sent.values()
        if each is not sent
        and key_of(each) == key_of(sent)
        and each.calls[0].place == sent.calls[0].place
    ]
