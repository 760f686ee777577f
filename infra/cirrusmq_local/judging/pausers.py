"""An operator that pauses a subscription, queue or receiver and resumes it; what a pause promises.

pause ── answered ── 1 s ── a receive gets nothing new ── resume ── it gets what waited
                      10 s ── no post begins, and no function is called
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from cirrusmq.base.limits import CACHE_MS
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.deployment import Deployment
from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, Violation
from cirrusmq_local.judging.scenario import Cast, Scenario
from cirrusmq_local.judging.tracks import HANDED, Book

PAUSE, RESUME = "pause", "resume"
AT_WORK_MS = 10_000 + 2 * MAX_SKEW_MS
"""A worker that is at it notices a pause by then, if nothing fails."""
_MAX_TRIES = 100


class Pauser:
    """Pauses one subscription, queue or receiver, and resumes it."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._place, self._of_topic = cast.place.name, cast.place.topic
        self._client = Client(cast.name)
        self._longer_ms, self._pauses_ms = scenario.paused_ms, scenario.pauses_ms

    def step(self, number: int, draw: Random) -> None:
        """One pause; most times its end, a little or long after it."""
        stage = self._deployment.stage
        stage.pause(draw.choice((0, 1_000, 5_000)))
        self._client.begin(number)
        self._call(PAUSE)
        stage.pause(self._longer_ms + draw.choice(self._pauses_ms))
        if draw.random() < 0.7:
            self._call(RESUME)

    def finish(self) -> None:
        """In the calm: resume it, whatever became of the calls before."""
        for _ in range(_MAX_TRIES):
            if self._call(RESUME).known:
                return
            self._deployment.stage.pause(1_000)

    def _call(self, kind: str) -> Call:
        holder, _, name = self._place.partition("/")
        if not self._of_topic:
            path = {"queue": holder, "receiver": name} if name else {"queue": holder}
            route = f"PATCH /queues/{{queue}}{'/receivers/{receiver}' if name else ''}"
            body = {"paused": kind == PAUSE}
            return self._deployment.http(self._client, kind, self._place, {}, route, path, body)
        path = {"topic": holder, "subscription": name}
        route = f"POST /topics/{{topic}}/subscriptions/{{subscription}}/{kind}"
        return self._deployment.http(self._client, kind, self._place, {}, route, path)


def check_pauses(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """Nothing new is received, posted or handed to a function during a pause."""
    for pause in (call for call in book.by_kind[PAUSE] if call.known):
        _, _, name = pause.place.partition("/")
        for call in book.by_kind["receive"]:
            new = call.place == pause.place and call.known and "repeat" not in call.given
            if new and call.answer and not call.disturbed and _holds(book, pause, call, CACHE_MS):
                yield Violation("received while it was paused", (pause, call))
        for call in [*book.by_kind[HANDED], *book.by_kind["post"]]:
            if call.place not in (pause.place, name) or call.given["invocation"].disturbed:
                continue
            if _holds(book, pause, call, AT_WORK_MS):
                yield Violation(f"{call.kind} while it was paused", (pause, call))


def check_ages(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """No message of a queue grows too old by the time of a pause."""
    limit = scenario.queues["orders"].get("dead_letter", {}).get("max_age_seconds")
    if limit is None or book.by_kind["redrive"] or not book.by_kind[PAUSE]:
        return
    for sent in book.sent.values():
        for message_id, (_, sent_ms) in sent.ids.items():
            for delivery in book.track("orders", message_id).deliveries:
                dead = delivery.dead
                if dead is None or dead["reason"] != "max_age":
                    continue
                aged_ms = dead["dead_at"] - sent_ms
                paused_ms = sum(
                    max(0, min(until_ms, dead["dead_at"]) - max(from_ms, sent_ms))
                    for from_ms, until_ms in _surely_paused(book, "orders")
                )
                if aged_ms - paused_ms < 1_000 * limit - 2 * MAX_SKEW_MS:
                    text = f"{sent.label} grew too old in a pause of {paused_ms} ms"
                    yield Violation(text, (delivery.call,))


def _surely_paused(book: Book, place: str) -> Iterator[tuple[int, int]]:
    """From when to when a place was paused beyond doubt, by the true time."""
    ends = book.effective(RESUME, place)
    for pause in (call for call in book.by_kind[PAUSE] if call.known and call.place == place):
        later = [end for end in ends if end.ended > pause.begun]
        until_ms = min((end.begun_ms for end in later), default=1 << 60)
        yield pause.ended_ms + MAX_SKEW_MS, until_ms - MAX_SKEW_MS


def _holds(book: Book, pause: Call, call: Call, after_ms: int) -> bool:
    """Returns True if all know a pause when a call begins, and no resume begins before its end."""
    if pause.ended_ms + after_ms >= call.begun_ms:
        return False
    ends = book.effective(RESUME, pause.place)
    return not any(pause.begun < end.ended and end.begun < call.ended for end in ends)
