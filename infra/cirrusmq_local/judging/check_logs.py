"""A topic's log: its readers see every published message, each under one id.

No cursor is refused: from any environment, and also after the secret was turned over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from cirrusmq_local.judging.history import Call, Violation
from cirrusmq_local.judging.log_readers import READ
from cirrusmq_local.judging.tracks import Book


def check_logs(book: Book) -> Iterator[Violation]:
    """Readers began before anything was published, and have read to the end."""
    seen: defaultdict[str, dict[str, Call]] = defaultdict(dict)
    labels: dict[str, str] = {}
    for call in book.by_kind[READ]:
        if call.outcome == "refused":
            yield Violation("a cursor was refused", (call,))
        if call.outcome == "failed" and not call.faults:
            yield Violation("a log could not be read, though nothing failed", (call,))
        for message_id, label in call.answer or () if call.known else ():
            seen[call.actor].setdefault(message_id, call)
            labels[message_id] = label
    for reader in {call.actor for call in book.by_kind[READ]}:
        yield from _missed(book, reader, seen[reader])
        yield from _doubled(book, seen[reader], labels)


def _missed(book: Book, reader: str, seen: dict[str, Call]) -> Iterator[Violation]:
    for sent in book.sent.values():
        for message_id, (call, _) in sent.ids.items():
            if call.place == "news" and message_id not in seen:
                yield Violation(f"{reader} of the log missed {sent.label}", (call,))


def _doubled(book: Book, seen: dict[str, Call], labels: dict[str, str]) -> Iterator[Violation]:
    with_key = {sent.label for sent in book.sent.values() if sent.key is not None}
    first: dict[str, str] = {}
    for message_id, call in seen.items():
        other = first.setdefault(labels[message_id], message_id)
        if other != message_id and labels[message_id] not in with_key:
            yield Violation("a publish was stored under two ids", (seen[other], call))
