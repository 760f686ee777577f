"""Every message says the account that sent it, wherever it is received."""

from __future__ import annotations

from collections.abc import Iterator

from cirrusmq_local.judging.clients import ACCOUNT, GUEST
from cirrusmq_local.judging.history import Violation
from cirrusmq_local.judging.tracks import Book


def check_senders(book: Book) -> Iterator[Violation]:
    """A delivery names the account of the actor that is in the message's label."""
    for track in book.tracks.values():
        for delivery in track.deliveries:
            if delivery.label.startswith("key"):
                continue  # several actors send under one deduplication id
            sender = GUEST if delivery.label.startswith("guest") else ACCOUNT
            if delivery.sender != sender:
                yield Violation(
                    f"{delivery.label} is said to be of {delivery.sender}", (delivery.call,)
                )
