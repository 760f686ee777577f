"""An operator that has messages delivered to a subscription again, and the promises of that.

published ──> delivered, deleted ──> redeliver: answered ──> delivered once more, from a parcel
                                                             of its own, and deleted
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from random import Random

from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.deployment import Deployment
from cirrusmq_local.judging.history import Call, Violation
from cirrusmq_local.judging.rewinders import ROUTE, ask
from cirrusmq_local.judging.scenario import Cast, Scenario
from cirrusmq_local.judging.tracks import REDELIVER, Book

_MAX_IDS = 6


class Redeliverer:
    """Has messages of one subscription delivered again."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._place = cast.place.name
        self._client = Client(cast.name)

    def step(self, number: int, draw: Random) -> None:
        """One or some of the taken messages, somewhat later; at times again if not answered."""
        self._deployment.stage.pause(draw.choice((500, 3_000, 10_000)))
        self._client.begin(number)
        taken = list(dict.fromkeys(self._taken()))[-12:]
        if not taken:
            return
        ids = draw.sample(taken, min(len(taken), draw.choice((1, 3, _MAX_IDS))))
        topic, _, name = self._place.partition("/")
        path = {"topic": topic, "subscription": name}
        ask(
            *(self._deployment, self._client, draw, REDELIVER, self._place, {"ids": ids}),
            *(f"POST {ROUTE}/redeliver", path, {"ids": ids}),
        )

    def _taken(self) -> Iterator[str]:
        """The ids of the messages that consumers deleted, or a URL took."""
        hook = self._place.rpartition("/")[2]
        for call in self._deployment.history.calls:
            if call.kind == "delete" and call.known and call.place == self._place:
                yield from (each.id for each in call.given["messages"])
            elif call.kind == "receive" and call.deleted and call.place == self._place:
                yield from (each.id for each in call.given["delete"])
            elif call.kind == "post" and call.known and call.place == hook:
                yield call.given["id"]


def check_redelivered(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """Each message comes again as often as that was asked for, and never more often."""
    for cast in scenario.cast:
        if cast.part != "redeliverer":
            continue
        asked: defaultdict[str, list[Call]] = defaultdict(list)
        for call in book.effective(REDELIVER, cast.place.name):
            for message_id in call.given["ids"]:
                asked[message_id].append(call)
        name = cast.place.name.rpartition("/")[2]
        if scenario.subscriptions[name]["protocol"] == "http":
            policy = scenario.subscriptions[name]["retry"]["policy"]
            yield from _posts(book, name, asked, loses=policy == "backoff")
        else:
            yield from _deliveries(book, cast.place.name, asked)


def _deliveries(
    book: Book, reader: str, asked: defaultdict[str, list[Call]]
) -> Iterator[Violation]:
    came = defaultdict(list)
    for track in book.tracks.values():
        if track.reader == reader and track.again_ms is not None:
            came[track.id].append(track)
            deleted = any(True for _ in track.acts_before("delete", 1 << 60))
            if not deleted:
                last = track.deliveries[-1]
                yield Violation("lost after it was delivered again", (last.call,))
    for message_id, calls in asked.items():
        tracks = came[message_id]
        if len(tracks) > len(calls):
            first = [each.deliveries[0].call for each in tracks]
            yield Violation("delivered again more often than was asked", (*calls, *first))
        known = [call for call in calls if call.known]
        if len(tracks) < len(known):
            yield Violation("a message was not delivered again", tuple(known))


def _posts(
    book: Book, hook: str, asked: defaultdict[str, list[Call]], *, loses: bool
) -> Iterator[Violation]:
    """`loses`: True if messages that fail for long are dropped."""
    posts: defaultdict[str, list[Call]] = defaultdict(list)
    for post in book.by_kind["post"]:
        if post.place == hook:
            posts[post.given["id"]].append(post)
    for message_id, held in posts.items():
        calls = asked[message_id]
        sure = [post for post in held if post.known and not post.given["invocation"].disturbed]
        if len(sure) > 1 + len(calls):
            yield Violation("posted again more often than was asked", (*calls, *sure))
        for call in (each for each in calls if each.known):
            since = [post for post in held if post.begun > call.begun]
            if not any(post.outcome != "refused" for post in since) and not (loses and since):
                yield Violation("a message was not posted again", (call, *since))
