"""Two accounts whose URLs are slow: a neighbour that publishes, and what each may have at work.

push        posts to no URL that took more than a second within 10 minutes, and to it again then
push_slow   a quarter of those that run at once for an account, three quarters while it is alone
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.simulation.chaos import MOST_SKEW_MS
from tests.simulation.deployment import Deployment
from tests.simulation.environments import Client
from tests.simulation.history import Call, Violation
from tests.simulation.scenario import SLOW, Cast, Scenario
from tests.simulation.tracks import Book

from cirrusmq.access.shares import LOOK_MS
from cirrusmq.push.slowness import FIRST_MS, SLOW_MS
from cirrusmq.subscriptions import delivery_state

NEIGHBOUR = "globex"
TOPIC = "tide"
HOOKS = ("wave0", "wave1")
PROBE = "prober"
_MOST_WAIT_MS = 2 * 3_600_000
_MEMORY_MS = 150_000
"""So long an invocation that was disturbed may be counted, or not be."""
_COMES_MS = LOOK_MS + 2 * MOST_SKEW_MS + 1_000
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


def wait_for_the_end_of_slowness(deployment: Deployment) -> None:
    """Let the time pass in which URLs are taken for slow, up to two hours of it."""
    core, stage = deployment.auditor(), deployment.stage
    untils_ms = [state.slow_until_ms for state in delivery_state.read_all(core)]
    tried_ms = [each for each in untils_ms if each < delivery_state.UNTRIED_MS]
    left_ms = max(tried_ms, default=0) - stage.now_ms() + 2 * MOST_SKEW_MS + 1_000
    stage.pause(max(1_000, min(left_ms, _MOST_WAIT_MS)))


def check_neighbours(scenario: Scenario, book: Book) -> Iterator[Violation]:
    """All that is promised of slow URLs."""
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
            until_ms = slow.ended_ms + FIRST_MS - 2 * MOST_SKEW_MS
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
    quarter = -(-size // 4)
    pooled = [post for post in posts if _role(post) == "push_slow" and post.outcome != "running"]
    disturbed = [
        call
        for call in (*book.by_kind["push"], *book.by_kind["retry"])
        if call.disturbed or not call.known
    ]
    for post in pooled:
        since_ms = post.begun_ms - _MEMORY_MS
        if any(since_ms < call.ended_ms and call.begun < post.begun for call in disturbed):
            continue
        running = [each for each in pooled if each.begun <= post.begun < each.ended]
        own = [each for each in running if _account(each) == _account(post)]
        if len(_invocations(own)) > max(quarter, size - quarter):
            yield Violation("an account alone posts with more than three quarters", tuple(own))
        others = [each for each in running if _account(each) != _account(post)]
        for other in others:
            come_ms = other.begun_ms + _COMES_MS
            later = [each for each in own if each.begun_ms > come_ms]
            if len(_invocations(later)) > quarter:
                told = (other, *later)
                yield Violation("an account posts with more than a quarter beside another", told)


def _invocations(posts: list[Call]) -> set[int]:
    return {id(post.given["invocation"]) for post in posts}


def _role(post: Call) -> str:
    return str(post.given["invocation"].environment.partition("~")[0])


def _account(post: Call) -> bool:
    """Whether it is the neighbour's."""
    return post.place in HOOKS
