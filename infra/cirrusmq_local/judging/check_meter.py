"""The meter against the store and the history, however its batches were cut and repeated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from cirrusmq_local.judging.cancellers import CANCEL
from cirrusmq_local.judging.check_replacing import replaced_ids
from cirrusmq_local.judging.history import Call, Violation
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import REPLY, Book

MAX_PER_RECEIVE = 16


class Used(NamedTuple):
    """The use of a place by its clients: of a kind, from what they know to the highest possible."""

    place: str
    kind: str
    known: int
    limit: int


def check_usage(
    scenario: Scenario, billed: Counter[tuple[str, str]], book: Book
) -> Iterator[Violation]:
    """Billed counts are between the counts that clients know and the highest possible ones.

    billed: (place, kind of use) -> count.
    """
    for used in usage(scenario, book):
        count = billed[used.place, used.kind]
        if not used.known <= count <= used.limit:
            bounds = f"{used.known} to {used.limit}"
            yield Violation(f"{used.place}: {count} {used.kind} are billed, where {bounds} were")


def usage(scenario: Scenario, book: Book) -> Iterator[Used]:
    """Yields what clients used of each place."""
    for place, calls in _by_place(book.by_kind["receive"]).items():
        if place in scenario.invoked:
            continue  # a worker received nearly all
        receipts = {each.receipt for call in calls if call.known for each in call.answer}
        # A claim whose answer was lost may have taken a message that its receive, which answers the
        # others, does not know of; so may a repeated one, with another receive in between.
        unknown = sum(call.disturbed or call.outcome in ("failed", "crashed") for call in calls)
        limit = len(receipts) + MAX_PER_RECEIVE * unknown
        yield Used(place, "received", len(receipts), limit)
    sends = [*book.by_kind["send"], *book.by_kind["send again"]]
    for place, calls in _by_place(sends).items():
        ids = {message_id for call in calls if call.known for message_id, _ in call.answer}
        # A write that the SDK repeats is stored again if the message was consumed in between.
        limit = sum(
            (1 + call.repeated) * len(call.given["labels"]) for call in calls if call.effective
        )
        kind = "published" if place == "news" else "sent"
        replies = [call for call in book.by_kind[REPLY] if call.place == place]
        done = {call.given["id"] for call in replies if call.known}
        tried = {call.given["id"] for call in replies if call.effective}
        known, limit = len(ids) + len(done), limit + len(done | tried)
        if not book.by_kind["redrive"]:
            yield Used(place, kind, known, limit)
    repeated = any(call.repeated for call in book.calls)
    for place, calls in _by_place(book.by_kind["delete"]).items():
        if place in scenario.invoked:
            continue
        done, tried = set(), set()
        for call in calls:
            for number, delivery in enumerate(call.given["messages"]):
                tried.add(delivery.receipt)
                if call.known and call.answer[number] == 0:
                    done.add(delivery.receipt)
        for call in (each for each in book.by_kind[CANCEL] if each.place == place):
            tried |= {call.given["id"]} if call.effective else set()
            done |= {call.given["id"]} if call.known else set()
        replaced, unsure = replaced_ids(book, place)
        done |= replaced
        tried |= replaced | {f"replaced {number}" for number in range(unsure)}
        if not repeated and not book.by_kind["purge"]:
            yield Used(place, "deleted", len(done), len(tried))


def _by_place(calls: list[Call]) -> dict[str, list[Call]]:
    places: dict[str, list[Call]] = {}
    for call in calls:
        places.setdefault(call.place, []).append(call)
    return places
