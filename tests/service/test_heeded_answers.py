"""Answers of a URL that say more than that it failed: 410, Retry-After, and none for long."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from tests.service.topics import Schedules, TestTopic

from cirrusmq.webhooks.client import read_retry_after
from cirrusmq_local.testing import Client, Posting, World


class Url:
    """A URL that answers as it is told, and notes when it was asked."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.answers: list[Posting] = []
        self.asked_ms: list[int] = []
        self.seconds = 0.0
        world.post = self._post  # type: ignore[method-assign]

    def _post(self, url: str, headers: object, body: bytes) -> Posting:
        self.asked_ms.append(self._world.clock.now_ms())
        self._world.clock.pass_seconds(self.seconds)
        return self.answers.pop(0) if self.answers else Posting(None)

    @property
    def waits(self) -> list[int]:
        """Seconds between the posts."""
        pairs = zip(self.asked_ms, self.asked_ms[1:], strict=False)
        return [round((after - before) / 1_000) for before, after in pairs]


@pytest.fixture
def url(world: World) -> Url:
    return Url(world)


RETRIES = {"retry": {"policy": "custom", "waits": [10, 10, 10]}}


@pytest.mark.few(3)
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("asked", "waited"), [(None, 10), (0.0, 10), (3.0, 10), (90.0, 90), (86_400.0, 3_600)]
)
def test_the_next_attempt_is_when_the_url_wants_it_within_bounds(
    world: World, topic: TestTopic, url: Url, status: int, asked: float | None, waited: int
) -> None:
    """Never before the policy's wait, and within an hour."""
    topic.subscribe("web", "http", **RETRIES)
    url.answers = [Posting(f"status {status}", asked)]
    topic.publish("one")
    Schedules(world, sweeps=True).pass_seconds(waited + 60)
    assert url.waits == [waited]


@pytest.mark.parametrize("policy", ["backoff", "exponential_decay"])
def test_messages_behind_a_failing_one_wait_as_long(
    world: World, topic: TestTopic, url: Url, policy: str
) -> None:
    topic.subscribe("web", "http", retry={"policy": policy})
    url.answers = [Posting("status 429", 120.0)]
    topic.publish("one", "two") if policy == "backoff" else topic.publish("one")
    Schedules(world, sweeps=True).pass_seconds(300)
    assert url.waits[0] == 120
    assert len(url.asked_ms) == (3 if policy == "backoff" else 2)


def test_a_time_in_the_header_is_seconds_or_a_date() -> None:
    now_s = 1_795_000_000.0
    assert read_retry_after("120", now_s) == 120
    assert read_retry_after(formatdate(now_s + 90, usegmt=True), now_s) == 90
    assert read_retry_after("Wed, 21 Oct 2015 07:28:00 GMT", now_s) == 0
    for odd in (None, "", "-5", "1.5", "soon", "٣", "9" * 5_000, "Wed, 99 Foo 2015 07:28:00 GMT"):
        found = read_retry_after(odd, now_s)
        assert found is None or found >= 0


def test_a_gone_url_is_paused_until_it_is_resumed(
    world: World, alice: Client, topic: TestTopic, url: Url
) -> None:
    web = topic.subscribe("web", "http", max_in_flight=1, **RETRIES)
    url.answers = [Posting("status 410")]
    topic.publish("one", "two", "three")
    schedules = Schedules(world, sweeps=True)
    schedules.pass_seconds(600)
    assert len(url.asked_ms) == 1
    shown = web.show()
    assert (shown["paused"], shown["gone"], shown["state"]) == (True, True, "paused")
    assert shown["counts"]["active"] == 3

    path = "/topics/news/subscriptions/web"
    assert alice.post(f"{path}/resume").status == 200
    schedules.pass_seconds(60)
    shown = web.show()
    assert (shown["paused"], "gone" in shown, shown["counts"]["active"]) == (False, False, 0)
    assert len(url.asked_ms) == 4


def test_a_pause_of_its_owner_says_nothing_of_the_url(alice: Client, topic: TestTopic) -> None:
    topic.subscribe("web", "http")
    shown = alice.post("/topics/news/subscriptions/web/pause").json
    assert (shown["paused"], "gone" in shown) == (True, False)


def test_a_hanging_url_is_shown_after_its_first_timeout(
    world: World, topic: TestTopic, url: Url
) -> None:
    """Its poster goes on with the next messages, and tells so before it is done with all."""
    web = topic.subscribe("web", "http", max_in_flight=1, retry={"policy": "unordered"})
    url.seconds = 15.0
    url.answers = [Posting("timeout")] * 12
    shown: list[tuple[str, str | None]] = []
    post = world.post

    def look(*given: object) -> Posting:
        state = web.show()
        shown.append((state["state"], state.get("last_error")))
        return post(*given)  # type: ignore[arg-type]

    world.post = look  # type: ignore[method-assign,assignment]
    topic.publish(*"abcdef")
    assert shown[0] == ("delivering", None)
    assert shown[1] == ("retrying", "timeout")
