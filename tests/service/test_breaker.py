"""The breaker of a URL: while most posts fail, one message is tried, and none is given up."""

from __future__ import annotations

import pytest
from tests.service.test_pausing import call
from tests.service.topics import Schedules, TestTopic

from cirrusmq_local.testing import Delivery, Subscriber

RETRIES = {"policy": "custom", "waits": [600, 600]}


@pytest.fixture
def url(subscriber: Subscriber) -> Subscriber:
    """The subscriber behind the URL, which is down at first."""
    subscriber.down()
    return subscriber


def refuse_bad(delivery: Delivery) -> int:
    """The answer of a URL that takes all but messages whose body begins with `bad`."""
    return 400 if delivery.text.startswith("bad") else 204


def ids_of(deliveries: list[Delivery]) -> list[str]:
    return [each.message_id for each in deliveries]


def publish(topic: TestTopic, count: int, body: str = "order") -> list[str]:
    found = []
    for first in range(0, count, 10):
        bodies = [f"{body} {number}" for number in range(first, min(first + 10, count))]
        found += [each["id"] for each in topic.publish(*bodies)]
    return found


def test_it_opens_when_enough_posts_failed(
    topic: TestTopic, schedules: Schedules, url: Subscriber
) -> None:
    web = topic.subscribe("web", "http", breaker={}, retry=RETRIES, max_in_flight=1)
    assert web.show()["breaker"] == {"share": 0.5}
    assert web.show()["breaker_state"] == "closed"

    publish(topic, 60)

    assert len(url.deliveries) == 20
    shown = web.show()
    assert (shown["breaker_state"], shown["breaker_error"]) == ("open", "status 500")
    assert shown["state"] == "retrying"
    assert shown["counts"]["active"] == 60


def test_while_open_one_message_is_tried_ever_more_rarely_and_no_try_counts(
    topic: TestTopic, schedules: Schedules, url: Subscriber
) -> None:
    topic.subscribe("web", "http", breaker={}, retry=RETRIES, max_in_flight=1)
    ids = publish(topic, 60)
    opened_ms = url.deliveries[-1].at_ms

    schedules.pass_seconds(190)

    tried = [round((each.at_ms - opened_ms) / 1000) for each in url.deliveries[20:]]
    assert tried == [1, 3, 7, 15, 31, 63, 123, 183]
    unposted = set(ids) - {*ids_of(url.deliveries[:20])}
    traces = [topic.trace(message_id)["web"] for message_id in sorted(unposted)]
    assert {each["attempts"] for each in traces} == {0}


def test_it_closes_when_a_try_succeeds_and_everything_is_delivered_once(
    topic: TestTopic, schedules: Schedules, url: Subscriber
) -> None:
    web = topic.subscribe("web", "http", breaker={}, retry=RETRIES, max_in_flight=4)
    ids = publish(topic, 60)
    schedules.pass_seconds(300)
    late = publish(topic, 10, "late")
    url.up()

    schedules.pass_seconds(61)
    assert web.show()["breaker_state"] == "closed"
    schedules.pass_seconds(600)

    assert sorted(ids_of(url.taken)) == sorted([*ids, *late])
    assert web.show()["state"] == "delivering"


def test_no_message_uses_up_its_retries_while_it_is_open(
    topic: TestTopic, schedules: Schedules, url: Subscriber
) -> None:
    retry = {"policy": "custom", "waits": [1]}
    web = topic.subscribe("web", "http", breaker={}, retry=retry, max_in_flight=1)
    ids = publish(topic, 40)
    schedules.pass_seconds(3_600)
    url.up()
    schedules.pass_seconds(120)

    early = ids_of(url.deliveries[:20])
    given_up = {each for each in early if early.count(each) == 2}
    assert {*ids_of(url.taken)} == set(ids) - given_up
    assert web.show()["breaker_state"] == "closed"


def test_always_failing_messages_do_not_keep_it_open(
    topic: TestTopic, schedules: Schedules, url: Subscriber
) -> None:
    waits = {"policy": "custom", "waits": [3_600, 3_600]}
    topic.subscribe("web", "http", breaker={}, retry=waits, max_in_flight=1)
    bad = publish(topic, 60, "bad")
    url.answer = refuse_bad
    schedules.pass_seconds(120)
    good = publish(topic, 20, "good")

    schedules.pass_seconds(1_200)

    assert {*ids_of(url.taken)} == set(good)
    assert {*ids_of(url.deliveries)} == {*bad, *good}


def test_successes_among_failures_keep_it_closed(
    topic: TestTopic, schedules: Schedules, url: Subscriber
) -> None:
    web = topic.subscribe("web", "http", breaker={"share": 0.6}, retry=RETRIES, max_in_flight=1)
    url.answer = refuse_bad
    for _ in range(15):
        topic.publish("bad", "good")
    assert web.show()["breaker_state"] == "closed"
    topic.publish(*["bad"] * 10)
    assert web.show()["breaker_state"] == "open" or len(url.deliveries) == 40


def test_failures_of_an_earlier_minute_do_not_open_it(
    topic: TestTopic, schedules: Schedules, url: Subscriber
) -> None:
    web = topic.subscribe("web", "http", breaker={}, retry=RETRIES, max_in_flight=1)
    publish(topic, 19)
    schedules.pass_seconds(70)
    topic.publish("one more")
    assert web.show()["breaker_state"] == "closed"
    assert len(url.deliveries) == 20


def test_without_it_every_message_is_posted(
    topic: TestTopic, schedules: Schedules, url: Subscriber
) -> None:
    web = topic.subscribe("web", "http", retry=RETRIES)
    publish(topic, 60)
    assert len(url.deliveries) == 60
    assert web.show()["breaker"] is None
    assert "breaker_state" not in web.show()


def test_taking_it_away_ends_its_wait(
    topic: TestTopic, schedules: Schedules, url: Subscriber
) -> None:
    web = topic.subscribe("web", "http", breaker={}, retry=RETRIES, max_in_flight=1)
    ids = publish(topic, 60)
    schedules.pass_seconds(200)
    url.up()
    reply = web.client.patch(web.path, {"breaker": None})
    assert reply.status == 200, reply.text
    schedules.pass_seconds(660)
    assert {*ids_of(url.taken)} == set(ids)
    assert "breaker_state" not in web.show()


def test_a_pause_beside_it_posts_nothing_and_resuming_goes_on(
    topic: TestTopic, schedules: Schedules, url: Subscriber
) -> None:
    web = topic.subscribe("web", "http", breaker={}, retry=RETRIES, max_in_flight=1)
    ids = publish(topic, 60)
    call(web, "pause")
    schedules.pass_seconds(5)
    posted = len(url.deliveries)
    schedules.pass_seconds(300)
    assert len(url.deliveries) == posted
    shown = web.show()
    assert (shown["state"], shown["breaker_state"]) == ("paused", "open")

    url.up()
    call(web, "resume")
    schedules.pass_seconds(700)
    assert {*ids_of(url.taken)} == set(ids)
