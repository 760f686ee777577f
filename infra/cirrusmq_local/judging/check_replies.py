"""A request has one end: a reply, or its asker hears that none came. Never both.

reply: 200 ──> every look of the asker has this reply, and nobody receives the message
asker: timed_out ──> no reply was or will be taken, and nobody receives the message
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from cirrusmq_local.judging.check_leases import first_gone, returns
from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, Violation
from cirrusmq_local.judging.tracks import AWAIT, REPLY, Book

WAITING, TIMED_OUT = "waiting", "timed_out"


def read_state(call: Call, answer: Any) -> str:
    """Returns the reply's body in the answer of a look, or the state if there is none."""
    return str(answer["reply"]["body"] if "reply" in answer else answer["state"])


def check_replies(book: Book) -> Iterator[Violation]:
    """Yields what breaks the promises above."""
    replies: defaultdict[str, list[Call]] = defaultdict(list)
    for call in book.by_kind[REPLY]:
        replies[call.given["id"]].append(call)
    looks: defaultdict[str, list[Call]] = defaultdict(list)
    for call in book.by_kind[AWAIT]:
        if call.known:
            looks[call.given["id"]].append(call)
    for message_id in dict.fromkeys([*replies, *looks]):
        yield from _one_end(replies[message_id], looks[message_id])
        yield from _received_since(book, message_id, replies[message_id], looks[message_id])
    for message_id, calls in looks.items():
        for call in calls:
            due_ms = call.given["due_ms"] + 2 * MAX_SKEW_MS
            if call.answer == WAITING and call.begun_ms + call.skew_ms >= due_ms:
                yield Violation(f"{message_id} is awaited behind its deadline", (call,))


def _one_end(replies: list[Call], looks: list[Call]) -> Iterator[Violation]:
    done = [call for call in replies if call.known]
    for call in done[1:]:
        if call.given["body"] != done[0].given["body"]:
            yield Violation("two replies to one request", (done[0], call))
    ends = [call for call in looks if call.answer != WAITING]
    for call in ends[1:]:
        if call.answer != ends[0].answer:
            yield Violation("an asker saw two ends of one request", (ends[0], call))
    for call in ends:
        if call.answer == TIMED_OUT and done:
            yield Violation("a reply was taken, and its asker told of none", (done[0], call))
        if call.answer == TIMED_OUT:
            continue
        if done and call.answer != done[0].given["body"]:
            yield Violation("an asker saw another reply", (done[0], call))
        tried = [each for each in replies if each.effective and each.begun < call.ended]
        if call.answer not in {each.given["body"] for each in tried}:
            yield Violation("an asker saw a reply that nobody gave", (call,))


def _received_since(
    book: Book, message_id: str, replies: list[Call], looks: list[Call]
) -> Iterator[Violation]:
    """Nobody receives a message whose request has ended, unless its send put it there again."""
    for call in (call for call in looks if call.answer != WAITING):
        gone = [each.begun for each in replies if each.given["body"] == call.answer]
        for track in (each for each in book.tracks.values() if each.id == message_id):
            for delivery in track.deliveries:
                if delivery.call.begun < call.ended:
                    continue
                if gone and returns(book, track, delivery, first_gone(book, track, min(gone))):
                    continue
                if not gone and any(each.haunted for each in book.sends_of(message_id)):
                    continue
                yield Violation("received, and its request had ended", (call, delivery.call))
