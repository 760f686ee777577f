"""No message is received while one of a higher priority of its queue could have been.

    a high one    sent ──answered── 1 s ──                 ended ──lease── 30 s ──
    a receive                        a lower one: no                        a lower one: no

With `ageing_seconds`, a lower one may be received if it waited as long for each level between; and
no receive gets higher ones alone that came later than that after a lower one that waits:

    ageing 10 s     low sent ────────── 10 s ────────── high sent ── a receive: low first

Clocks' differences and the queue's delay aside. A receive that was disturbed may have claimed the
higher one, and not answered it. An answer may have messages of several priorities.
"""

from __future__ import annotations

from collections.abc import Iterator

from cirrusmq_local.judging.check_heads import hidden, lives, may_undo, undone_before
from cirrusmq_local.judging.deployment import Bounds
from cirrusmq_local.judging.history import Call, Violation
from cirrusmq_local.judging.places import Delivery
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import Book, Sent

_CHANGES = ("purge", "change", "redrive", "rewind", "pause", "cancel", "reschedule")
_AGED_MS = 2_500
"""An environment looks through all levels once a second, and sees a message within another."""
_LATE_MS = 500
"""Added to `FIRST_MS` of the heads: a message is seen a second after its send."""


def check_priorities(scenario: Scenario, deployment: Bounds, book: Book) -> Iterator[Violation]:
    """Each message against the receives that got lower ones, and the priorities in each answer."""
    orders = scenario.queues["orders"]
    if not orders.get("priorities"):
        return
    for call in book.by_kind["receive"]:
        for delivery in call.answer if call.known else ():
            given = _priority_of(book, delivery.label)
            if given is not None and given != delivery.priority:
                yield Violation(f"{delivery.label} lost its priority", (call,))
    if "retry" in orders or "dead_letter" in orders or scenario.subscriptions:
        return
    if any(book.by_kind[kind] for kind in _CHANGES):
        return
    receives = [call for call in book.by_kind["receive"] if call.place == "orders"]
    looks = [call for call in receives if _is_sound(call)]
    undone = [call for call in receives if may_undo(call)]
    skew_ms = 2 * deployment.max_skew_ms + _LATE_MS
    ageing_ms = 1_000 * (orders.get("ageing_seconds") or 0)
    for sent in book.sent.values():
        if sent.key is None:
            own = sent.calls[0].given["priorities"][sent.place]
            lower = [
                call
                for call in looks
                if any(
                    each.priority < own and not _has_waited(each, call, own, ageing_ms, skew_ms)
                    for each in call.answer
                )
                and not undone_before(call, sent, undone, deployment, skew_ms)
                and lives(call, sent, orders, skew_ms)
            ]
            yield from hidden(book, sent, lower, skew_ms, 1_000 * orders["delay_seconds"])
            if ageing_ms:
                sound = [
                    call
                    for call in looks
                    if not undone_before(call, sent, undone, deployment, skew_ms)
                ]
                yield from _starved(book, sent, own, ageing_ms, sound, skew_ms)


def _has_waited(
    lower: Delivery, call: Call, own_priority: int, ageing_ms: int, skew_ms: int
) -> bool:
    """Returns True if a message may have been received before one of a higher priority by age."""
    wait_ms = (own_priority - lower.priority) * ageing_ms
    return bool(ageing_ms) and call.ended_ms - lower.sent_ms + skew_ms >= wait_ms


def _starved(
    book: Book, sent: Sent, own_priority: int, ageing_ms: int, looks: list[Call], skew_ms: int
) -> Iterator[Violation]:
    """The first receive that got only higher ones, all sent too long after a message to pass it."""
    first = sent.calls[0]
    if len(sent.calls) > 1 or first.given["attempt"] or first.given["delays"][sent.place]:
        return
    for message_id, (sending, sent_ms) in sent.ids.items():
        deliveries = book.track(sending.place, message_id).deliveries
        if not deliveries or deliveries[0].count > 1:
            continue  # an answer that was lost may have had it
        received = deliveries[0].call.begun
        for call in looks:
            passed = all(
                each.priority > own_priority
                and each.sent_ms - sent_ms
                > (each.priority - own_priority) * ageing_ms + _AGED_MS + skew_ms
                for each in call.answer
            )
            seen = sending.ended_ms + _AGED_MS + skew_ms <= call.begun_ms
            if passed and seen and call.ended < received:
                text = f"{sent.label} was passed by what was sent too long after it"
                yield Violation(text, (sending, call))
                return


def _priority_of(book: Book, label: str) -> int | None:
    """The priority that a label was sent with; None if that is not known, or several are."""
    found = {sent.calls[0].given["priorities"][sent.place] for sent in _labelled(book, label)}
    return found.pop() if len(found) == 1 else None


def _labelled(book: Book, label: str) -> list[Sent]:
    return [sent for sent in book.sent.values() if sent.label == label]


def _is_sound(call: Call) -> bool:
    return call.known and bool(call.answer) and not call.faults and "repeat" not in call.given
