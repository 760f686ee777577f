"""Dead letters: each was received. Each receive counted was answered, or its answer lost.

receive: claims m1 ── m2 is throttled ──> answers m1           m1 was received once
receive: claims m1 ── m2 is throttled ──> 503                  m1 counts, but no client has it
receive: claims m1 ── m2 is throttled ── its time is over      nobody could be told of m1
"""

from __future__ import annotations

from collections.abc import Iterator

from cirrusmq_local.judging.history import Call, Violation
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import Book, Track

_SURVIVABLE = ("throttled", "hot", "unread", "conflict", "stale", "short", "unprocessed")
"""Faults of store calls that say that nothing was done: a receive must tell what it has claimed."""
_SHORT_SECONDS = 2
"""A lease that may end while bodies are tried to be read."""
_OF_WRITES = ("UpdateItem", "PutItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem")


def check_dead_letters(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """Messages dead-lettered after too many receives, in runs without a redrive or a rewind.

    Dead letters of a function's source are checked elsewhere. Untried give-backs do not count.
    """
    if book.by_kind["redrive"] or book.by_kind["rewind"]:
        return
    for track in book.tracks.values():
        dead = next((each for each in track.deliveries if each.dead is not None), None)
        if dead is None or dead.dead is None or dead.dead["reason"] != "max_receives":
            continue
        if track.reader in scenario.invoked:
            continue
        counted = int(dead.dead["receive_count"])
        counts = {
            each.count
            for each in track.deliveries
            if each.dead is None and not any(act.done for act in track.untried(each, 1 << 60))
        }
        lost = [call for call in _receives(book, track) if _may_have_lost(call)]
        if len(counts) + len(lost) < counted:
            calls = tuple(each.call for each in track.deliveries)
            yield Violation("a dead letter that nobody ever got", (*calls, *_failed(book, track)))


def _receives(book: Book, track: Track) -> Iterator[Call]:
    return (call for call in book.by_kind["receive"] if call.place == track.reader)


def _failed(book: Book, track: Track) -> list[Call]:
    return [call for call in _receives(book, track) if not call.known]


def _may_have_lost(call: Call) -> bool:
    """Returns True if a call may have claimed messages that it could not answer.

    A refused write does not excuse it, nor bodies that cannot be read: a message that cannot be
    answered is given back. If the give-back is refused too, nothing can be done.
    """
    if call.outcome == "crashed":
        return True  # it was ended, perhaps without a fault: the clock may have jumped
    kinds = [fault.partition(": ") for fault in call.faults]
    if any(fault not in _SURVIVABLE for _, _, fault in kinds):
        return True  # a claim whose answer was lost, though the receive answered the others
    tried = any(operation == "GetObject" for operation, _, _ in kinds)
    if tried and call.given.get("timeout", 30) <= _SHORT_SECONDS:
        return True  # the lease was over before it gave up reading: the give-back came too late
    if call.known or not call.effective:
        return False
    if not kinds:
        return True
    reads = any(operation in ("BatchGetItem", "GetItem", "Query") for operation, _, _ in kinds)
    writes = sum(operation in _OF_WRITES for operation, _, _ in kinds)
    return reads and writes > 0
