"""Groups that are rewound, or begin with earlier messages: nothing is lost, and the order holds.

rewind to m3 ──answered──> m3 m4 m5 once more, in their order; receipts for them are worth
nothing, but while somebody may still be at one of them its group waits
"""

from __future__ import annotations

from collections.abc import Iterator

from cirrusmq_local.judging.check_order import by_group
from cirrusmq_local.judging.deployment import Remaining
from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, Violation
from cirrusmq_local.judging.places import Delivery
from cirrusmq_local.judging.rewinders import REWIND
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import Book, Sent

_SOON_MS = 5_000
"""Time in which a published message is handed out, if nothing fails."""
CLOCKS_MS = 6_000
"""Two publishes that have no numbers are in order if this time is between them."""


def check_rewinds(scenario: Scenario, book: Book, drain: Remaining) -> Iterator[Violation]:
    """Receipts, losses and the order of all groups of a scenario with rewinds."""
    if not scenario.rewound:
        return
    for reader in ("news/group", "news/late"):
        yield from _receipts(book, reader)
        yield from _not_rewound(book, drain, reader)
    group, late = scenario.subscriptions["group"], scenario.late
    if group.get("ordered"):
        yield from _order(book, "news/group", 0)
    if late.get("ordered"):
        yield from _order(book, "news/late", 0 if group.get("ordered") else CLOCKS_MS)


def _receipts(book: Book, reader: str) -> Iterator[Violation]:
    """No receipt is worth anything that was there before the rewind."""
    for rewind in (call for call in book.effective(REWIND, reader) if call.known):
        for track in book.tracks.values():
            if track.reader != reader or track.again_ms is not None:
                continue
            for act in track.acts:
                taken = act.delivery.sent_ms >= rewind.given["to_ms"]
                before = act.delivery.call.ended < rewind.begun and rewind.ended < act.call.begun
                # A delete that was done before is done, however often it is asked for.
                again = act.verb == "delete" and any(
                    other.delivery.receipt == act.delivery.receipt and other.call is not act.call
                    for other in track.acts_before("delete", rewind.ended)
                )
                told = act.done and act.call.outcome == "answered"
                if taken and before and told and not again:
                    yield Violation(
                        "a receipt was used that a rewind had ended", (rewind, act.call)
                    )


def _not_rewound(book: Book, drain: Remaining, reader: str) -> Iterator[Violation]:
    """A rewind brings back everything since its time."""
    for rewind in (call for call in book.effective(REWIND, reader) if call.known):
        for track in (each for each in book.tracks.values() if each.reader == reader):
            if track.again_ms is not None:
                continue
            for act in track.acts_before("delete", rewind.begun):
                sent_ms = act.delivery.sent_ms
                if not act.done or act.call.ended > rewind.begun:
                    continue
                if sent_ms < rewind.given["to_ms"]:
                    continue
                again = [each for each in track.deliveries if each.call.ended > act.call.ended]
                if not again and act.delivery.expires_ms > drain.begun_ms + MAX_SKEW_MS:
                    yield Violation("a rewind did not bring a message back", (act.call, rewind))


def _order(book: Book, reader: str, apart_ms: int) -> Iterator[Violation]:
    """Each delivery against the earlier messages of its group: done with since the last rewind."""
    rewinds = book.effective(REWIND, reader)
    for members, deliveries in by_group(book, reader):
        for delivery in deliveries:
            yield from _earlier(book, reader, members, delivery, rewinds, apart_ms)
            yield from _held(book, reader, deliveries, delivery, rewinds)


def _earlier(
    book: Book,
    reader: str,
    members: list[Sent],
    delivery: Delivery,
    rewinds: list[Call],
    apart_ms: int,
) -> Iterator[Violation]:
    sent = next((each for each in members if each.label == delivery.label), None)
    if sent is None or _unsure(delivery, rewinds):
        return
    answer = delivery.call.answer
    in_front = {each.label for each in answer[: answer.index(delivery)]}
    for earlier in members:
        if not _precedes(earlier, sent, apart_ms) or earlier.label in in_front:
            continue
        for message_id, (_, sent_ms) in earlier.ids.items():
            since = [each.begun for each in rewinds if each.given["to_ms"] <= sent_ms]
            since = [each for each in since if each < delivery.call.begun]
            track = book.track(reader, message_id)
            done = [
                act
                for act in track.acts_before("delete", delivery.call.ended)
                if act.call.begun > max(since, default=-1)
                # A delete of a message from before the rewind has no effect on what came again.
                or act.delivery.call.begun > max(since, default=-1)
            ]
            if not done and not _handed_out_late(book, earlier, message_id, rewinds, sent_ms):
                calls = (earlier.calls[0], sent.calls[0], delivery.call)
                yield Violation(f"{sent.label} came before {earlier.label} of its group", calls)
                return


def _handed_out_late(
    book: Book, earlier: Sent, message_id: str, rewinds: list[Call], sent_ms: int
) -> bool:
    """Returns True if fan-out lagged behind a rewind to a later time: the old source had gaps."""
    before = [call for call in rewinds if call.given["to_ms"] > sent_ms]
    if not before:
        return False
    if not book.by_kind["fan_out"]:
        # Calls alone do not show when it was handed out: soon, if the machine had no fault.
        last_ms = max(call.begun_ms for call in before)
        return any(sent_ms - _SOON_MS <= at_ms <= last_ms for at_ms, _ in book.faults) or any(
            call.begun_ms < sent_ms + _SOON_MS for call in before
        )
    handed_out = [
        call for call in book.by_kind["fan_out"] if message_id[4:-1] in call.given["records"]
    ]
    handed_out += [call for call in book.by_kind["replay"] if "parked" in call.given]
    return any(call.ended > min(each.begun for each in before) for call in handed_out)


def _held(
    book: Book,
    reader: str,
    deliveries: list[Delivery],
    delivery: Delivery,
    rewinds: list[Call],
) -> Iterator[Violation]:
    """A message that a rewind brings back waits for the earlier leases of its group to end."""
    if _unsure(delivery, rewinds):
        return
    for rewind in rewinds:
        if not rewind.known or delivery.sent_ms < rewind.given["to_ms"]:
            continue
        if rewind.ended > delivery.call.begun:
            continue
        for before in deliveries:
            claimed = before.call.ended < rewind.begun
            until_ms = before.visible_ms - 2 * MAX_SKEW_MS
            if not claimed or until_ms <= delivery.true_claim_ms:
                continue
            if not book.track(reader, before.id).acts_on(before):
                calls = (before.call, rewind, delivery.call)
                yield Violation("came while one of its group was held from before a rewind", calls)
                return


def _unsure(delivery: Delivery, rewinds: list[Call]) -> bool:
    """Returns True if a delivery may be from before a rewind or from after it."""
    return any(
        each.begun < delivery.call.ended and not each.ended < delivery.call.begun
        for each in rewinds
    )


def _precedes(earlier: Sent, later: Sent, apart_ms: int) -> bool:
    if earlier.name == later.name:
        return earlier.place < later.place
    if apart_ms:
        ended_ms = min(call.ended_ms for call, _ in earlier.ids.values())
        return ended_ms + apart_ms < later.calls[0].begun_ms
    return earlier.answered < later.begun
