"""Promises of a URL's breaker, by the posts that its endpoint saw.

    20 refused within a minute ── open: 5 posts in a row take 11 s or more
    taken ── closed: a message that waits is posted soon

Posts that begin while the breaker is surely open are tries, and use up no retry. A crash loses
counts and waits, so this is asked of URLs of which no worker was disturbed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, Violation
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import Book

OUTCOMES = 20
MINUTE_MS, SURELY_MS = 60_000, 50_000
TRIES_MS = 1_000 + 2_000 + 4_000 + 8_000 - 4 * MAX_SKEW_MS
"""Least time from a try of an open breaker to the fourth one behind it, on clocks that differ."""
SOON_MS = 20_000


def check_breakers(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """All that is promised of every subscription with a breaker."""
    for name, attributes in scenario.subscriptions.items():
        if attributes.get("breaker"):
            yield from _Hook(scenario, book, name).check()


def may_have_opened(ended_ms: list[int]) -> bool:
    """Returns True if some minute had 20 of the outcomes, of which these are the times in order."""
    far_ms = MINUTE_MS + 4 * MAX_SKEW_MS
    spans = zip(ended_ms, ended_ms[OUTCOMES - 1 :], strict=False)
    return any(last - first < far_ms for first, last in spans)


class _Hook:
    def __init__(self, scenario: Scenario, book: Book, name: str) -> None:
        attributes = scenario.subscriptions[name]
        self._book, self._name = book, name
        self._unfailing = scenario.unfailing and not any(
            name in call.place.split() and (call.disturbed or not call.known)
            for kind in ("push", "retry")
            for call in book.by_kind[kind]
        )
        self._in_flight: int = attributes["max_in_flight"]
        self._retries = len(attributes["retry"]["waits"])
        self._share: float = attributes["breaker"]["share"]
        posts = (call for call in book.by_kind["post"] if call.place == name)
        self._posts = sorted(posts, key=lambda call: call.begun_ms)

    def check(self) -> Iterator[Violation]:
        if not self._unfailing:
            return  # counts and waits may be lost; that no message is, is checked elsewhere
        tries = self._tries()
        yield from self._too_many(tries)
        yield from self._counted(tries)
        yield from self._stays_open()
        yield from self._opens_early()

    def _tries(self) -> list[Call]:
        """Posts that surely began while it was open: just behind 20 failures in a row."""
        least, found = OUTCOMES + self._in_flight, list[Call]()
        failed: list[Call] = []
        for post in self._posts:
            if len(failed) > least:
                within = failed[-1].begun_ms - failed[-least - 1].begun_ms < SURELY_MS
                if within or (found and found[-1] is failed[-1]):
                    found.append(post)
            failed = [*failed, post] if post.outcome == "refused" else []
        return found

    def _too_many(self, tries: list[Call]) -> Iterator[Violation]:
        for first, last in zip(tries, tries[4:], strict=False):
            index = self._posts.index(first)
            if self._posts[index + 4] is not last or last.begun_ms - first.begun_ms >= TRIES_MS:
                continue
            if all(each.outcome == "refused" for each in self._posts[index : index + 4]):
                yield Violation("posts go on though nearly all of them fail", (first, last))
                return

    def _stays_open(self) -> Iterator[Violation]:
        """A post is taken, and a message that was never posted waits for long behind it."""
        seen = set[str]()
        before: Call | None = None
        for post in self._posts:
            new = post.given["id"] not in seen
            seen.add(post.given["id"])
            if before is not None and new and self._waited(before, post):
                yield Violation("one is taken, and the next one waits for long", (before, post))
                return
            before = post if post.outcome == "answered" else None

    def _waited(self, before: Call, post: Call) -> bool:
        if post.begun_ms - before.ended_ms < SOON_MS or self._paused(before, post):
            return False
        sent_ms = self._book.sent_ms_of(post.given["id"])
        return sent_ms is not None and sent_ms < before.begun_ms - SOON_MS

    def _paused(self, before: Call, post: Call) -> bool:
        return any(
            before.begun_ms - SOON_MS < call.begun_ms < post.begun_ms
            for kind in ("pause", "resume")
            for call in self._book.by_kind[kind]
            if call.place == f"news/{self._name}"
        )

    def _counted(self, tries: list[Call]) -> Iterator[Violation]:
        """A dead letter had all posts of its policy besides the tries of an open breaker."""
        for each in self._book.sent.values():
            for message_id in each.ids:
                posts = [post for post in self._posts if post.given["id"] == message_id]
                if any(post.outcome != "refused" for post in posts):
                    continue
                track = self._book.track(f"news/{self._name}", message_id)
                moved = any(True for _ in track.acts_before("delete", 1 << 60))
                counted = [post for post in posts if post not in tries]
                if moved and len(counted) <= self._retries:
                    yield Violation("a try of an open breaker used up a retry", tuple(posts))

    def _opens_early(self) -> Iterator[Violation]:
        """A message waits for its first post though no minute had 20 outcomes until then."""
        for index, (before, post) in enumerate(pairwise(self._posts)):
            ended = [each.ended_ms for each in self._posts[: index + 1]]
            if may_have_opened(ended):
                return
            if before.outcome == "refused" and self._waited(before, post):
                yield Violation("it is open though no minute had 20 outcomes", (before, post))
                return
