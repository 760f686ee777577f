"""The breaker of a URL: while most posts fail, one message is tried, and none is given up."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.test_pausing import call
from tests.service.topics import Schedules, TestTopic

from cirrusmq_local.testing import Posting, World

RETRIES = {"policy": "custom", "waits": [600, 600]}


class Url:
    """A URL that can be turned off, and keeps when it was posted to."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.error: str | None = "status 503"
        self.refused: set[str] = set()
        """Bodies that it never takes."""
        self.posts: list[tuple[int, str, str | None]] = []
        world.post = self._post  # type: ignore[method-assign]

    def _post(self, url: str, headers: Any, body: bytes) -> Posting:
        error = self.error
        if any(each.encode() in body for each in self.refused):
            error = "status 400"
        self.posts.append((self._world.clock.now_ms(), headers["webhook-id"], error))
        return Posting(error)

    @property
    def taken(self) -> set[str]:
        return {message_id for _, message_id, error in self.posts if error is None}


@pytest.fixture
def url(world: World) -> Url:
    return Url(world)


def publish(topic: TestTopic, count: int, body: str = "order") -> list[str]:
    found = []
    for first in range(0, count, 10):
        bodies = [f"{body} {number}" for number in range(first, min(first + 10, count))]
        found += [each["id"] for each in topic.publish(*bodies)]
    return found


def test_it_opens_when_enough_posts_failed(
    topic: TestTopic, schedules: Schedules, url: Url
) -> None:
    web = topic.subscribe("web", "http", breaker={}, retry=RETRIES, max_in_flight=1)
    assert web.show()["breaker"] == {"share": 0.5}
    assert web.show()["breaker_state"] == "closed"

    publish(topic, 60)

    assert len(url.posts) == 20
    shown = web.show()
    assert (shown["breaker_state"], shown["breaker_error"]) == ("open", "status 503")
    assert shown["state"] == "retrying"
    assert shown["counts"]["active"] == 60


def test_while_open_one_message_is_tried_ever_more_rarely_and_no_try_counts(
    topic: TestTopic, schedules: Schedules, url: Url
) -> None:
    topic.subscribe("web", "http", breaker={}, retry=RETRIES, max_in_flight=1)
    ids = publish(topic, 60)
    opened_ms = url.posts[-1][0]

    schedules.pass_seconds(190)

    tried = [round((at_ms - opened_ms) / 1000) for at_ms, _, _ in url.posts[20:]]
    assert tried == [1, 3, 7, 15, 31, 63, 123, 183]
    unposted = set(ids) - {message_id for _, message_id, _ in url.posts[:20]}
    traces = [topic.trace(message_id)["web"] for message_id in sorted(unposted)]
    assert {each["attempts"] for each in traces} == {0}


def test_it_closes_when_a_try_succeeds_and_everything_is_delivered_once(
    topic: TestTopic, schedules: Schedules, url: Url
) -> None:
    web = topic.subscribe("web", "http", breaker={}, retry=RETRIES, max_in_flight=4)
    ids = publish(topic, 60)
    schedules.pass_seconds(300)
    late = publish(topic, 10, "late")
    url.error = None

    schedules.pass_seconds(61)
    assert web.show()["breaker_state"] == "closed"
    schedules.pass_seconds(600)

    assert url.taken == {*ids, *late}
    taken = [message_id for _, message_id, error in url.posts if error is None]
    assert len(taken) == len(set(taken))
    assert web.show()["state"] == "delivering"


def test_no_message_uses_up_its_retries_while_it_is_open(
    topic: TestTopic, schedules: Schedules, url: Url
) -> None:
    retry = {"policy": "custom", "waits": [1]}
    web = topic.subscribe("web", "http", breaker={}, retry=retry, max_in_flight=1)
    ids = publish(topic, 40)
    schedules.pass_seconds(3_600)
    url.error = None
    schedules.pass_seconds(120)

    early = [message_id for _, message_id, _ in url.posts[:20]]
    given_up = {each for each in early if early.count(each) == 2}
    assert url.taken == set(ids) - given_up
    assert web.show()["breaker_state"] == "closed"


def test_messages_that_never_succeed_do_not_keep_it_open(
    topic: TestTopic, schedules: Schedules, url: Url
) -> None:
    waits = {"policy": "custom", "waits": [3_600, 3_600]}
    web = topic.subscribe("web", "http", breaker={}, retry=waits, max_in_flight=1)
    bad = publish(topic, 60, "bad")
    url.refused = {"bad"}
    url.error = None
    schedules.pass_seconds(120)
    good = publish(topic, 20, "good")

    schedules.pass_seconds(1_200)

    assert url.taken == set(good)
    posts = [message_id for _, message_id, _ in url.posts]
    assert set(posts) == {*bad, *good}
    assert web.show()["breaker_state"] in ("open", "closed")


def test_successes_among_failures_keep_it_closed(
    topic: TestTopic, schedules: Schedules, url: Url
) -> None:
    web = topic.subscribe("web", "http", breaker={"share": 0.6}, retry=RETRIES, max_in_flight=1)
    url.error, url.refused = None, {"bad"}
    for _ in range(15):
        topic.publish("bad", "good")
    assert web.show()["breaker_state"] == "closed"
    topic.publish(*["bad"] * 10)
    assert web.show()["breaker_state"] == "open" or len(url.posts) == 40


def test_failures_of_an_earlier_minute_do_not_open_it(
    topic: TestTopic, schedules: Schedules, url: Url
) -> None:
    web = topic.subscribe("web", "http", breaker={}, retry=RETRIES, max_in_flight=1)
    publish(topic, 19)
    schedules.pass_seconds(70)
    topic.publish("one more")
    assert web.show()["breaker_state"] == "closed"
    assert len(url.posts) == 20


def test_without_it_every_message_is_posted(
    topic: TestTopic, schedules: Schedules, url: Url
) -> None:
    web = topic.subscribe("web", "http", retry=RETRIES)
    publish(topic, 60)
    assert len(url.posts) == 60
    assert web.show()["breaker"] is None
    assert "breaker_state" not in web.show()


def test_taking_it_away_ends_its_wait(topic: TestTopic, schedules: Schedules, url: Url) -> None:
    web = topic.subscribe("web", "http", breaker={}, retry=RETRIES, max_in_flight=1)
    ids = publish(topic, 60)
    schedules.pass_seconds(200)
    url.error = None
    reply = web.client.patch(web.path, {"breaker": None})
    assert reply.status == 200, reply.text
    schedules.pass_seconds(660)
    assert url.taken == set(ids)
    assert "breaker_state" not in web.show()


def test_a_pause_beside_it_posts_nothing_and_resuming_goes_on(
    topic: TestTopic, schedules: Schedules, url: Url
) -> None:
    web = topic.subscribe("web", "http", breaker={}, retry=RETRIES, max_in_flight=1)
    ids = publish(topic, 60)
    call(web, "pause")
    schedules.pass_seconds(5)
    posted = len(url.posts)
    schedules.pass_seconds(300)
    assert len(url.posts) == posted
    shown = web.show()
    assert (shown["state"], shown["breaker_state"]) == ("paused", "open")

    url.error = None
    call(web, "resume")
    schedules.pass_seconds(700)
    assert url.taken == set(ids)
