"""A receive that chooses gets what it asked for alone."""

from __future__ import annotations

from collections.abc import Iterator

from cirrusmq_local.judging.history import Violation
from cirrusmq_local.judging.tracks import Book


def check_choices(book: Book) -> Iterator[Violation]:
    """Each answer to a receive of a group, or by an attribute."""
    for call in book.by_kind["receive"]:
        for delivery in call.answer if call.known else ():
            if call.given.get("group", delivery.group) != delivery.group:
                yield Violation(f"{delivery.label} is of another group than asked for", (call,))
            if call.given.get("where", delivery.color) != delivery.color:
                yield Violation(f"{delivery.label} has not the attribute asked for", (call,))
