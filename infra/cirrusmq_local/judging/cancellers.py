"""Senders that change their minds: they cancel messages, or say when they are due."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any

from cirrusmq.base.timestamps import format_time, parse_time
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.deployment import Deployment
from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, Violation
from cirrusmq_local.judging.places import Delivery
from cirrusmq_local.judging.scenario import Cast, Scenario
from cirrusmq_local.judging.tracks import Book, Track

CANCEL, RESCHEDULE = "cancel", "reschedule"
_ROUTE = "/queues/{queue}/messages/{id}"


class Canceller:
    """Cancels and reschedules messages of one queue, or of one receiver: the last sent ones."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._place = cast.place
        self._client = Client(cast.name)

    def step(self, number: int, draw: Random) -> None:
        """One message, and once more if its answer is lost."""
        stage = self._deployment.stage
        self._client.begin(number)
        sent = [
            message_id
            for call in self._deployment.history.calls
            if call.kind in ("send", "send again") and call.known
            for message_id, _ in call.answer
        ]
        if not sent:
            return
        message_id = draw.choice(sent[-6:])
        for _ in range(3):
            if draw.random() < 0.5:
                call = self._call(CANCEL, "DELETE", message_id, None)
            else:
                call = self._call(RESCHEDULE, "PATCH", message_id, self._due(draw))
            if call.outcome in ("answered", "refused") and draw.random() < 0.6:
                return
            stage.pause(draw.choice((0, 100, 500, 5_000)))

    def _due(self, draw: Random) -> dict[str, Any]:
        if draw.random() < 0.5:
            return {"delay_seconds": draw.choice((0, 1, 3, 20))}
        at_ms = self._deployment.stage.now_ms() + draw.choice((-1_000, 500, 2_000, 8_000))
        return {"deliver_at": format_time(at_ms)}

    def _call(self, kind: str, method: str, message_id: str, body: Any) -> Call:
        given = {"id": message_id, **(body or {})}
        place = self._place
        path = {"queue": place.holder, "id": message_id}
        query = {"receiver": place.receiver} if place.receiver else None
        return self._deployment.http(
            *(self._client, kind, place.name, given, f"{method} {_ROUTE}", path, body, query),
            read=lambda _, answer: answer and parse_time("visible_at", answer["visible_at"]),
        )


def check_cancelled(book: Book) -> Iterator[Violation]:
    """Nobody receives a cancelled message, nor any message before it is due."""
    changed = _by_place(book.by_kind[RESCHEDULE])
    cancelled = _by_place(book.by_kind[CANCEL])
    for track in book.tracks.values():
        for delivery in track.deliveries:
            for call in cancelled[track.reader, track.id]:
                if call.known and not _comes_again(book, track, call, delivery):
                    yield Violation("received, and cancelled", (call, delivery.call))
            calls = [call for call in changed[track.reader, track.id] if call.effective]
            if delivery.count > 1 or not calls or not all(call.known for call in calls):
                continue
            # It was not received before any of them, or that would have been refused.
            *others, last = sorted(calls, key=lambda call: call.ended)
            in_turn = all(call.ended < last.begun for call in others)
            again = _comes_again(book, track, last, delivery)
            if in_turn and not again and _taken_ms(delivery) < _due_ms(last):
                yield Violation("received before it was due", (last, delivery.call))


def _taken_ms(delivery: Delivery) -> int:
    """When it was claimed; a dead letter was, by another's clock, before it was moved."""
    if delivery.dead is None:
        return delivery.claim_ms
    return int(delivery.dead["dead_at"]) + 2 * MAX_SKEW_MS


def _due_ms(call: Call) -> int:
    """When the message is due: by the answer, and by the time that was asked for.

    To a clock ahead that time may be over, and to the receiver's behind it may not.
    """
    asked = call.given.get("deliver_at")
    answered: int = call.answer
    if not asked:
        return answered
    return max(answered, parse_time("deliver_at", asked) - 2 * MAX_SKEW_MS)


def _comes_again(book: Book, track: Track, call: Call, delivery: Delivery) -> bool:
    """Returns True if it may have been deleted before a call, or purged before or behind the
    delivery: a send that is repeated stores it again then."""
    if any(True for _ in track.acts_before("delete", call.ended)):
        return True
    purges = [each.begun for each in book.effective("purge", track.reader)]
    repeated = (
        any(each.ended > min(purges) for each in book.sends_of(track.id)) if purges else False
    )
    return repeated and min(purges) < max(delivery.call.ended, call.ended)


def may_be_cancelled(book: Book, reader: str, message_id: str) -> bool:
    """Returns True if a call may have cancelled a reader's message: each receiver has its copy."""
    cancels = book.effective(CANCEL, reader)
    return any(call.given["id"] == message_id for call in cancels)


def _by_place(calls: list[Call]) -> defaultdict[tuple[str, str], list[Call]]:
    held: defaultdict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in calls:
        held[call.place, call.given["id"]].append(call)
    return held
