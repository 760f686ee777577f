"""An operator that pauses a subscription and resumes it; and what is promised of a pause.

pause ── answered ── 1 s ── a receive gets nothing new ── resume ── it gets what waited
                      10 s ── no post begins, and no function is called
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.simulation.chaos import MOST_SKEW_MS
from tests.simulation.deployment import Deployment
from tests.simulation.environments import Client
from tests.simulation.history import Call, Violation
from tests.simulation.named_functions import HANDED
from tests.simulation.scenario import Cast, Scenario
from tests.simulation.tracks import Book

from cirrusmq.base.limits import CACHE_MS

PAUSE, RESUME = "pause", "resume"
AT_WORK_MS = 10_000 + 2 * MOST_SKEW_MS
"""A worker that is at it notices a pause by then, if nothing fails."""
_MOST_TRIES = 100


class Pauser:
    """Pauses one subscription, and resumes it."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._place = cast.place.name
        self._client = Client(cast.name)

    def step(self, number: int, draw: Random) -> None:
        """One pause; most times its end, a little or long after it."""
        stage = self._deployment.stage
        stage.pause(draw.choice((0, 1_000, 5_000)))
        self._client.begin(number)
        self._call(PAUSE)
        stage.pause(draw.choice((100, 3_000, 15_000, 40_000)))
        if draw.random() < 0.7:
            self._call(RESUME)

    def finish(self) -> None:
        """In the calm: resume it, whatever became of the calls before."""
        for _ in range(_MOST_TRIES):
            if self._call(RESUME).known:
                return
            self._deployment.stage.pause(1_000)

    def _call(self, kind: str) -> Call:
        topic, _, name = self._place.partition("/")
        path = {"topic": topic, "subscription": name}
        route = f"POST /topics/{{topic}}/subscriptions/{{subscription}}/{kind}"
        return self._deployment.http(self._client, kind, self._place, {}, route, path)


def check_pauses(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """Nothing new is received, posted or handed to a function during a pause."""
    for pause in (call for call in book.by_kind[PAUSE] if call.known):
        _, _, name = pause.place.partition("/")
        for call in book.by_kind["receive"]:
            new = call.place == pause.place and call.known and "repeat" not in call.given
            if new and call.answer and not call.disturbed and _holds(book, pause, call, CACHE_MS):
                yield Violation("received while its subscription was paused", (pause, call))
        for call in [*book.by_kind[HANDED], *book.by_kind["post"]]:
            if call.place not in (pause.place, name) or call.given["invocation"].disturbed:
                continue
            if _holds(book, pause, call, AT_WORK_MS):
                yield Violation(f"{call.kind} while its subscription was paused", (pause, call))


def _holds(book: Book, pause: Call, call: Call, after_ms: int) -> bool:
    """Whether a pause is known to everybody when a call begins, and is not ended before its end."""
    if pause.ended_ms + after_ms >= call.begun_ms:
        return False
    ends = book.effective(RESUME, pause.place)
    return not any(pause.begun < end.ended and end.begun < call.ended for end in ends)
