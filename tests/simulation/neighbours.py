"""Two accounts whose URLs or functions are slow, and what each may have at work.

push        posts to no URL that took more than a second within 10 minutes, and to it again then
push_slow   a quarter of those that run at once for an account, three quarters while it is alone
call        the same of its workers
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from tests.simulation.deployment import Deployment
from tests.simulation.scenario import SLOW

from cirrusmq.access.shares import LOOK_MS
from cirrusmq.subscriptions.delivery import items as delivery_items
from cirrusmq.subscriptions.delivery import rules as delivery_rules
from cirrusmq.subscriptions.delivery.rules import FIRST_MS, SLOW_MS
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.history import MAX_SKEW_MS, Call, Violation
from cirrusmq_local.judging.scenario import Cast, Scenario
from cirrusmq_local.judging.tracks import HANDED, Book
from cirrusmq_local.testing.core import FUNCTION

NEIGHBOUR = "globex"
TOPIC = "tide"
HOOKS = ("wave0", "wave1")
PROBE = "prober"
_MAX_WAIT_MS = 2 * 3_600_000
_MEMORY_MS, _WORKERS_MEMORY_MS = 150_000, 960_000
"""So long an invocation that was disturbed may be counted, or not be."""
_COMES_MS = LOOK_MS + 2 * MAX_SKEW_MS + 1_000
"""Time in which one account learns that another has something at work."""


class Neighbour:
    """Publishes to a topic of another account."""

    def __init__(self, deployment: Deployment, scenario: Scenario, cast: Cast) -> None:
        self._deployment = deployment
        self._client = Client(cast.name, NEIGHBOUR)

    def step(self, number: int, draw: Random) -> None:
        """One publish."""
        self._client.begin(number)
        messages = [{"body": f"wave {number}"}] * draw.choice((1, 2))
        route, path = "POST /topics/{topic}/messages", {"topic": TOPIC}
        self._deployment.http(
            self._client, "publish beside", TOPIC, {}, route, path, {"messages": messages}
        )


def subscriptions_beside(scenario: Scenario) -> dict[str, dict[str, Any]]:
    """The neighbour's subscriptions: URLs, or groups with a function if workers are shared."""
    if not scenario.workers:
        return {name: {"protocol": "http", "endpoint": f"http://{name}.example/"} for name in HOOKS}
    invoke = {"function": FUNCTION, "max_concurrency": 6, "batch": 1, "timeout_seconds": 60}
    return {name: {"protocol": "pull", "invoke": invoke} for name in HOOKS}


def wait_for_the_end_of_slowness(deployment: Deployment) -> None:
    """Let the time pass in which URLs are taken for slow, up to two hours of it."""
    core, stage = deployment.auditor(), deployment.stage
    untils_ms = [state.slow_until_ms for state in delivery_items.read_all(core)]
    tried_ms = [each for each in untils_ms if each < delivery_rules.UNTRIED_MS]
    left_ms = max(tried_ms, default=0) - stage.now_ms() + 2 * MAX_SKEW_MS + 1_000
    stage.pause(max(1_000, min(left_ms, _MAX_WAIT_MS)))


def check_neighbours(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """All that is promised of slow URLs, and of the workers of functions that accounts share."""
    if scenario.workers:
        yield from _more_workers_than_its_share(book, scenario.workers)
    if scenario.family != SLOW:
        return
    posts = sorted(book.by_kind["post"], key=lambda call: call.begun)
    yield from _posted_by_push(posts)
    yield from _slow_for_good(book, posts)
    yield from _more_than_its_share(book, posts, scenario.slow_pushes)


def _posted_by_push(posts: list[Call]) -> Iterator[Violation]:
    """A post of push within ten minutes of a slow one."""
    demoted: dict[str, Call] = {}
    for post in posts:
        slow = demoted.get(post.place)
        if slow is not None and _role(post) == "push":
            until_ms = slow.ended_ms + FIRST_MS - 2 * MAX_SKEW_MS
            if slow.given["invocation"].ended_ms < post.begun_ms < until_ms:
                yield Violation("push posts to a URL that is slow", (slow, post))
        invocation = post.given["invocation"]
        settled = invocation.known and not invocation.disturbed
        if settled and post.ended_ms - post.begun_ms > 2 * SLOW_MS:
            demoted[post.place] = post


def _slow_for_good(book: Book, posts: list[Call]) -> Iterator[Violation]:
    """A post of push_slow to a URL whose time of slowness has passed."""
    probes = [call for call in book.by_kind["send"] if call.actor == PROBE and call.known]
    for probe in probes:
        ids = {message_id for message_id, _ in probe.answer}
        tried = {post.place for post in posts if post.given["invocation"].ended < probe.begun}
        for post in posts:
            if post.given["id"] in ids and post.place in tried and _role(post) != "push":
                yield Violation("a URL is slow for good", (probe, post))


def _more_than_its_share(book: Book, posts: list[Call], size: int) -> Iterator[Violation]:
    pooled = [post for post in posts if _role(post) == "push_slow" and post.outcome != "running"]
    disturbed = [
        call
        for call in (*book.by_kind["push"], *book.by_kind["retry"])
        if call.disturbed or not call.known
    ]
    yield from _above_shares(pooled, size, disturbed, _MEMORY_MS)


def _more_workers_than_its_share(book: Book, size: int) -> Iterator[Violation]:
    calls = sorted(book.by_kind[HANDED], key=lambda call: call.begun)
    # What fails in the function itself takes no worker out of the count too early.
    disturbed = [
        call
        for call in book.by_kind["work"]
        if any(not fault.startswith(HANDED) for fault in call.faults)
    ]
    answered = [call for call in calls if call.outcome == "answered"]  # else it has no end
    yield from _above_shares(answered, size, disturbed, _WORKERS_MEMORY_MS)


def _above_shares(
    pooled: list[Call], size: int, disturbed: list[Call], memory_ms: int
) -> Iterator[Violation]:
    """Posts or calls of one account, of those in a pool, that are above its share."""
    quarter = -(-size // 4)
    for post in pooled:
        since_ms = post.begun_ms - memory_ms
        if any(since_ms < call.ended_ms and call.begun < post.begun for call in disturbed):
            continue
        running = [each for each in pooled if each.begun <= post.begun < each.ended]
        own = [each for each in running if _account(each) == _account(post)]
        if len(_invocations(own)) > max(quarter, size - quarter):
            yield Violation("an account alone works with more than three quarters", tuple(own))
        others = [each for each in running if _account(each) != _account(post)]
        for other in others:
            come_ms = other.begun_ms + _COMES_MS
            later = [each for each in own if each.begun_ms > come_ms]
            if len(_invocations(later)) > quarter:
                told = (other, *later)
                yield Violation("an account works with more than a quarter beside another", told)


def _invocations(posts: list[Call]) -> set[int]:
    return {id(post.given["invocation"]) for post in posts}


def _role(post: Call) -> str:
    return str(post.given["invocation"].environment.partition("~")[0])


def _account(post: Call) -> bool:
    """Whether it is the neighbour's."""
    return post.place.rpartition("/")[2] in HOOKS
