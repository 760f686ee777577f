"""No message is hidden from a receive: neither a fresh one nor one whose lease has ended.

send ──answered──                 ended ──lease of a receiver──
          0.5 s, and the clocks' differences            30 s, and the clocks' differences
                 ── receive that looks ──> not empty             ── receive ──> not empty

A receive whose bodies the store refuses has claimed its messages, and undoes that when it gives up.
No answer and no count shows it. Until then they are held; then they are free as after a lease.

    receive ──claims m── asks for its body, again and again ──undone ── failed
                            another ── looks in vain                          30 s
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from cirrusmq.base.limits import RETENTION_SECONDS_DEFAULT
from cirrusmq_local.judging.cancellers import CANCEL, RESCHEDULE
from cirrusmq_local.judging.deployment import Bounds
from cirrusmq_local.judging.history import Call, Violation
from cirrusmq_local.judging.pausers import PAUSE
from cirrusmq_local.judging.places import Delivery
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import Book, Sent, Track

FIRST_MS, AGAIN_MS = 500, 30_000
"""How late a message may be seen: for the first time, and after that."""
_CHANGES = ("purge", "change", "redrive", "rewind", PAUSE, CANCEL, RESCHEDULE)
_OF_BODIES = ("BatchGetItem", "GetObject")
_ANSWERED = ("slow", "jump")
"""Faults of calls that answer what they would have answered without."""


def check_heads(scenario: Scenario, deployment: Bounds, book: Book) -> Iterator[Violation]:
    """Queues that have no order, retry policy or dead letters: a message has one place to be in."""
    for name, attributes in scenario.queues.items():
        if attributes.get("ordered") or "retry" in attributes or "dead_letter" in attributes:
            continue
        if "max_in_flight" in attributes:
            continue  # a group at its limit is passed over
        if scenario.small_pages and attributes.get("fair"):
            continue  # a look of a unit does not see all groups
        if scenario.subscriptions or any(book.by_kind[kind] for kind in _CHANGES):
            continue
        receives = [call for call in book.by_kind["receive"] if call.place == name]
        vain = [call for call in map(_whole, receives) if _vain(call)]
        undone = [call for call in receives if may_undo(call)]
        skew_ms = 2 * deployment.max_skew_ms
        for sent in book.sent.values():
            if sent.calls[0].place == name and sent.key is None:
                delay_ms = 1_000 * attributes["delay_seconds"]
                looks = [
                    call
                    for call in vain
                    if _is_for(call, sent)
                    and lives(call, sent, attributes, skew_ms)
                    and not undone_before(call, sent, undone, deployment, skew_ms)
                    and not ("rate" in attributes and _may_be_full(call, sent, receives, skew_ms))
                ]
                yield from hidden(book, sent, looks, skew_ms, delay_ms)


def lives(call: Call, sent: Sent, attributes: dict[str, Any], skew_ms: int) -> bool:
    """Returns True if a message lived until a call's end, by whatever clock."""
    life_ms = 1_000 * attributes.get("message_retention_seconds", RETENTION_SECONDS_DEFAULT)
    return all(call.ended_ms + skew_ms < sent_ms + life_ms for _, sent_ms in sent.ids.values())


def _vain(call: Call) -> bool:
    """Returns True if a call scanned everything, undisturbed, and found nothing."""
    if "where" in call.given:
        walk = *call.given["walk"], call
        return call.seen_all and all(each.known and not each.faults for each in walk)
    return call.known and not call.answer and not call.faults and call.given["wait"] > 0


def _whole(call: Call) -> Call:
    """The receives by an attribute that saw everything together, as one: what they got beside a
    message does not count."""
    walk = call.given.get("walk")
    return replace(call, begun=walk[0].begun, begun_ms=walk[0].begun_ms) if walk else call


def _is_for(call: Call, sent: Sent) -> bool:
    """Returns True if a receive could have got a message, by its group and attribute."""
    wanted = call.given.get("group", sent.group), call.given.get("where")
    color = sent.calls[0].given["colors"][sent.place]
    return wanted in ((sent.group, None), (sent.group, color))


def _may_be_full(looked: Call, sent: Sent, receives: list[Call], skew_ms: int) -> bool:
    """Returns True if a message's group may have had nothing left of its rate when a call looked.

    Another call got some of it in that second or the one before, or nobody knows what it got.
    """
    return any(
        call is not looked
        and call.begun_ms < looked.ended_ms + 1_000 + skew_ms
        and looked.begun_ms < call.ended_ms + 1_000 + skew_ms
        and (
            not call.known
            or bool(call.faults)
            or call.overlaps(looked)
            or any(each.group == sent.group for each in call.answer)
        )
        for call in receives
    )


def may_undo(call: Call) -> bool:
    """Returns True if bodies were refused to a receive, which then undid its claims."""
    kinds = [fault.partition(": ") for fault in call.faults]
    return any(what in _OF_BODIES and fault not in _ANSWERED for what, _, fault in kinds)


def undone_before(
    looked: Call, sent: Sent, undone: list[Call], bounds: Bounds, skew_ms: int
) -> bool:
    """Returns True if a call scanned while a receive may have held a message, or within 30 s after
    it undid the claim."""
    return any(
        sent.begun < call.ended
        and call.begun < looked.ended
        and looked.begun_ms < _over_ms(call, bounds) + AGAIN_MS + skew_ms
        for call in undone
    )


def _over_ms(call: Call, bounds: Bounds) -> int:
    """The time from which a receive does nothing any more, even if its caller does not know it."""
    if call.haunted:
        return 1 << 60
    return min(call.ended_ms, call.begun_ms + 1_000 * bounds.receive_seconds)


def hidden(
    book: Book, sent: Sent, vain: list[Call], skew_ms: int, delay_ms: int
) -> Iterator[Violation]:
    """The first receive that should have got the message instead of what it got, or nothing."""
    first = sent.calls[0]
    if len(sent.calls) > 1 or first.given["attempt"] or first.given["delays"][sent.place]:
        return
    for message_id, (call, _) in sent.ids.items():
        track = book.track(call.place, message_id)
        before, seen_ms = None, call.ended_ms + delay_ms + FIRST_MS + skew_ms
        for delivery in track.deliveries:
            counted = delivery.count == (1 if before is None else before.count + 1)
            for looked in vain if counted else ():
                if seen_ms <= looked.begun_ms and looked.ended < _first_try(book, delivery.call):
                    calls = (call if before is None else before.call, looked, delivery.call)
                    yield Violation(f"{sent.label} was hidden from a receive", calls)
                    return
            before = delivery
            seen_ms = _free_ms(track, delivery) + AGAIN_MS + skew_ms


def _first_try(book: Book, call: Call) -> int:
    """The beginning of the receive that may have claimed what `call` answers.

    A repeat answers with the messages that its first try claimed, and has held since:

        first try  claims m ── answer lost                   a repeat ── answered: m, received once
        another             m is held: looks in vain
    """
    attempt = call.given.get("attempt")
    if attempt is None:
        return call.begun
    tries = [each for each in book.by_kind["receive"] if each.given.get("attempt") == attempt]
    return min(each.begun for each in tries)


def _free_ms(track: Track, delivery: Delivery) -> int:
    """The latest time at which a delivery's hold can have ended."""
    ends = [delivery.visible_ms]
    for act in track.acts_on(delivery):
        if act.effective:
            ends.append(act.result if isinstance(act.result, int) else 1 << 60)
    return max(ends)
