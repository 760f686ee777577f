"""Pushing to URLs: nothing lost, nothing again without a reason, in order, one at a time.

A post is a call that the endpoint answered (`taken`), refused, or took while its answer was lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, Violation
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import REDELIVER, Book, Sent

HOLD_MS = 30_000 - 2 * MAX_SKEW_MS
BACKOFF_POSTS = 4
SECOND_MS = 1_000


def check_pushes(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """All that is promised of every pushed subscription."""
    for name, attributes in scenario.subscriptions.items():
        if attributes["protocol"] == "http":
            hook = attributes["endpoint"].removeprefix("http://").partition(".")[0]
            yield from _Hook(book, name, attributes["retry"]["policy"], hook).check()
            yield from _too_fast(book, hook, attributes.get("rate"))


def _too_fast(book: Book, hook: str, rate: int | None) -> Iterator[Violation]:
    """At most `rate` posts begin within a second, from all workers together."""
    posts = sorted(
        (call for call in book.by_kind["post"] if call.place == hook),
        key=lambda call: call.begun_ms,
    )
    for before, after in zip(posts, posts[rate or len(posts) :], strict=False):
        if after.begun_ms - before.begun_ms < SECOND_MS:
            yield Violation("more is posted within a second than the rate says", (before, after))


class _Hook:
    def __init__(self, book: Book, name: str, policy: str, hook: str) -> None:
        self._book = book
        self._name = name
        self._policy = policy
        self._rounds = [call for call in book.by_kind["retry"] if call.place == name]
        self._posts = [call for call in book.by_kind["post"] if call.place == hook]
        self._of: defaultdict[str, list[Call]] = defaultdict(list)
        for post in self._posts:
            self._of[post.given["id"]].append(post)
        invocations = [*book.by_kind["push"], *book.by_kind["retry"]]
        self._troubles = sum(
            1
            for call in invocations
            if name in call.place.split() and (call.disturbed or not call.known)
        )

    def check(self) -> Iterator[Violation]:
        for post in self._posts:
            if not post.given["signed"] and not post.given["invocation"].outdated:
                yield Violation("a post without a signature by its subscriber's secret", (post,))
        for posts in self._of.values():
            yield from self._again(posts)
        sent = [each for each in self._book.sent.values() if each.calls[0].place == "news"]
        for each in sent:
            yield from self._lost(each)
            yield from self._too_early(each)
        if self._policy in ("backoff", "exponential_decay"):
            yield from self._behind_the_probe()
        if self._policy == "backoff":
            yield from self._one_at_a_time()
            yield from self._in_order([each for each in sent if each.ids and each.key is None])

    def _again(self, posts: list[Call]) -> Iterator[Violation]:
        """A message is posted again only after a refusal, a lost answer or a crash.

        How often it comes by redeliveries is checked elsewhere.
        """
        asked = [
            call
            for call in self._book.effective(REDELIVER, f"news/{self._name}")
            if posts[0].given["id"] in call.given["ids"]
        ]
        for before, after in pairwise(posts):
            if any(call.begun < after.begun for call in asked):
                continue
            lapsed = after.given["claimed_ms"] >= before.given["claimed_ms"] + HOLD_MS
            if before.outcome == "running" or lapsed:
                continue
            if after.begun < before.ended and before.outcome != "failed":
                yield Violation("a message is posted by two at once", (before, after))
            if before.outcome == "answered" and not before.given["invocation"].disturbed:
                yield Violation("posted again after it was taken", (before, after))
        settled = not any(post.given["invocation"].disturbed for post in posts)
        limit = BACKOFF_POSTS * (1 + len(asked))
        if self._policy == "backoff" and settled and len(posts) > limit:
            yield Violation("posted after it was dropped", tuple(posts))

    def _lost(self, sent: Sent) -> Iterator[Violation]:
        for message_id, (call, _) in sent.ids.items():
            posts = self._of[message_id]
            if any(post.outcome != "refused" for post in posts):
                continue
            dropped = len(posts) + self._troubles >= BACKOFF_POSTS
            if self._policy == "backoff" and dropped:
                continue
            track = self._book.track(f"news/{self._name}", message_id)
            if any(True for _ in track.acts_before("delete", 1 << 60)):
                continue  # in the dead-letter queue
            yield Violation(f"lost: {sent.label} was never taken by {self._name}", (call, *posts))

    def _too_early(self, sent: Sent) -> Iterator[Violation]:
        """By its publisher's clock; its poster's may be ahead."""
        delay_ms = 1_000 * (sent.calls[0].given["delays"][sent.place] or 0)
        for message_id, (call, sent_ms) in sent.ids.items() if not sent.key and delay_ms else ():
            for post in self._of[message_id][:1]:
                if post.begun_ms < sent_ms + delay_ms - MAX_SKEW_MS:
                    yield Violation("posted before its delay was over", (call, post))

    def _one_at_a_time(self) -> Iterator[Violation]:
        for before, after in pairwise(self._posts):
            if before.outcome == "running" or after.begun > before.ended:
                continue
            same = before.given["invocation"] is after.given["invocation"]
            lapsed = after.begun_ms >= before.given["claimed_ms"] + HOLD_MS
            if before.outcome != "failed" and not same and not lapsed:
                yield Violation("two invocations deliver at once", (before, after))

    def _behind_the_probe(self) -> Iterator[Violation]:
        """While a subscription retries, new messages are not attempted.

        retry: round 1 ──answered: wait──           ──round 2── posts
        push:                           begins, posts
        push:                                          begins, posts
        """
        within, between = self._within_rounds(), self._between_rounds()
        for post in self._posts:
            push = post.given["invocation"]
            # A resume lets a worker begin with the messages that wait.
            if push.kind != "push" or push.actor.startswith("push<pauser"):
                continue
            retried = [
                call
                for begun, until, call in within
                if begun < push.begun < post.begun < until and self._failing(begun)
            ]
            waited = [
                call
                for begun, until, call in between
                if begun < push.begun < until and self._failing(begun)
            ]
            if retried or waited:
                first = (retried or waited)[0]
                yield Violation("attempted while another one is retried", (first, post))

    def _failing(self, moment: int) -> bool:
        """Returns True if a message was tried and not taken by then: delays make rounds too."""
        tried = {post.given["id"] for post in self._posts if post.begun < moment}
        taken = {
            post.given["id"]
            for post in self._posts
            if post.ended < moment and post.outcome == "answered"
        }
        return bool(tried - taken)

    def _within_rounds(self) -> list[tuple[int, int, Call]]:
        """A round posts only where its generation retried from the round's beginning on."""
        latest: dict[int, tuple[int, int, Call]] = {}
        for post in self._posts:
            call = post.given["invocation"]
            if call.kind == "retry":
                latest[id(call)] = (call.begun, post.begun, call)
        return list(latest.values())

    def _between_rounds(self) -> list[tuple[int, int, Call]]:
        executions: defaultdict[str, list[Call]] = defaultdict(list)
        for call in self._rounds:
            executions[call.actor.rpartition("#")[0]].append(call)
        # A round that ends proves nothing: another generation may have taken over since.
        return [
            (before.ended, after.begun, before)
            for rounds in executions.values()
            for before, after in pairwise(rounds)
            if after.known and after.answer["action"] != "done"
        ]

    def _in_order(self, sent: list[Sent]) -> Iterator[Violation]:
        in_order = sorted(sent, key=lambda each: (each.answered, each.place))
        first = 0
        posted: defaultdict[str, int] = defaultdict(int)
        done: set[str] = set()
        by_id = {message_id: each for each in sent for message_id in each.ids}
        for post in self._posts:
            late: Sent | None = by_id.get(post.given["id"])
            if late is None:
                continue
            while first < len(in_order) and in_order[first].label in done:
                first += 1
            for earlier in in_order[first:]:
                if earlier.answered > late.begun and earlier.name != late.name:
                    break
                # Their order follows the times in their ids, which are of their clients.
                before = min(earlier.ids) < min(late.ids)
                if before and earlier.label not in done:
                    calls = (earlier.calls[0], late.calls[0], post)
                    yield Violation(f"{late.label} was posted before {earlier.label}", calls)
                    return
            posted[late.label] += 1
            dropped = posted[late.label] + self._troubles >= BACKOFF_POSTS
            if post.outcome != "refused" or dropped:
                done.add(late.label)
