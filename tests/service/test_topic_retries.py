"""Retries of URLs on a clock that is set: the messages blocked meanwhile, and the end.

The waits of each policy are in `tests/unit/test_retry.py`; that posts keep to them is here.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import TestQueue, sweep, to_ms
from tests.service.topics import (
    OBSTACLES,
    Schedules,
    TestSubscription,
    TestTopic,
    failing_url,
    put_in_the_way,
)

from cirrusmq.push import delivery
from cirrusmq_local.testing import Client, Subscriber, World

DAY = 86_400


def dead_letters(
    alice: Client, subscription: TestSubscription, queue: str | None = None
) -> list[dict[str, Any]]:
    return TestQueue(alice, queue or f"dlq-{subscription.id}").receive_all()


class TestExponentialDecay:
    """1, 2, 4 … 512, 512 … s: 176 retries, about one day."""

    @pytest.mark.long
    def test_after_the_last_retry_the_message_stays_counted_until_it_expires(
        self, world: World, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = failing_url(topic, subscriber)
        (sent,) = topic.publish("lost")
        schedules.run_out()
        subscriber.up()
        active = {"active": 1, "inactive": 0, "delayed": 0}

        assert web.show()["counts"] == active
        assert web.show()["state"] == "delivering"
        assert topic.active() == 1
        schedules.pass_seconds((to_ms(sent["sent_at"]) - world.clock.now_ms()) / 1e3 + DAY - 1)
        assert web.show()["counts"] == active
        assert topic.trace(sent["id"])["web"]["attempts"] == 177
        schedules.pass_seconds(1)
        assert web.show()["counts"] == {"active": 0, "inactive": 0, "delayed": 0}
        assert topic.active() == 0
        assert len(subscriber.deliveries) == 177

    def test_with_a_dead_letter_queue_it_moves_right_after_the_last_retry(
        self, alice: Client, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        alice.put("/queues/lost-and-found")
        web = failing_url(topic, subscriber, dead_letter_queue="lost-and-found")
        (sent,) = topic.publish("lost")
        schedules.run(lambda: len(subscriber.deliveries) == 176, None)
        assert dead_letters(alice, web, "lost-and-found") == []
        schedules.run_out()

        (dead,) = dead_letters(alice, web, "lost-and-found")
        assert (dead["id"], dead["body"]) == (sent["id"], "lost")
        assert dead["dead_letter"] | {"dead_at": ""} == {
            "source_queue": "news",
            "subscription": "web",
            "receive_count": 177,
            "dead_at": "",
            "reason": "retries",
        }
        assert to_ms(dead["dead_letter"]["dead_at"]) == subscriber.times("lost")[-1]
        assert web.show()["counts"]["active"] == 0
        traced = topic.trace(sent["id"])["web"]
        assert (traced["state"], traced["attempts"]) == ("dead", 177)

    def test_messages_behind_the_probe_are_not_attempted_and_follow_when_it_is_accepted(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = failing_url(topic, subscriber, "probe")
        for number in range(20):
            topic.publish(f"behind {number}")
        schedules.pass_seconds(100)
        assert set(subscriber.bodies()) == {"probe"}
        assert web.show()["counts"]["active"] == 21
        subscriber.up()
        schedules.run_out()

        behind = [f"behind {number}" for number in range(20)]
        assert subscriber.bodies()[-21] == "probe"
        assert subscriber.bodies()[-20:] == behind
        accepted = subscriber.times("probe")[-1]
        assert {at for body in behind for at in subscriber.times(body)} == {accepted}
        assert web.show()["counts"]["active"] == 0
        assert web.show()["state"] == "delivering"

    def test_the_next_failure_becomes_the_probe_with_waits_of_its_own(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        topic.subscribe("web", "http")
        subscriber.down("first", "third")
        topic.publish("first")
        topic.publish("second")
        topic.publish("third")
        topic.publish("fourth")
        schedules.pass_seconds(20)
        assert subscriber.waits("first") == [1, 2, 4, 8]
        subscriber.down("third")
        schedules.pass_seconds(50)

        assert len(subscriber.times("second")) == len(subscriber.times("fourth")) == 1
        assert subscriber.waits("third")[:4] == [1, 2, 4, 8]

    def test_a_probe_with_used_up_retries_no_longer_blocks(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = topic.subscribe("web", "http")
        subscriber.down("stubborn", "sick")
        topic.publish("stubborn")
        schedules.pass_seconds(60)
        topic.publish("sick")
        topic.publish("well")
        schedules.run(lambda: len(subscriber.times("sick")) == 5, None)

        assert len(subscriber.times("stubborn")) == 177
        assert subscriber.waits("sick") == [1, 2, 4, 8]
        assert subscriber.times("well") == []
        assert web.show()["state"] == "retrying"
        subscriber.up()
        schedules.run_out()
        assert len(subscriber.times("well")) == 1
        assert len(subscriber.times("stubborn")) == 177

    def test_of_a_batch_failing_together_only_the_oldest_is_tried_again(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        failing_url(topic, subscriber, *"abcdefgh")
        schedules.pass_seconds(70)

        assert subscriber.waits("a") == [1, 2, 4, 8, 16, 32]
        assert [len(subscriber.times(body)) for body in "bcdefgh"] == [1] * 7
        subscriber.up()
        schedules.run_out()
        assert [len(subscriber.times(body)) for body in "bcdefgh"] == [2] * 7

    @pytest.mark.long
    def test_the_retries_end_when_the_message_expires(
        self, world: World, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = failing_url(topic, subscriber, "first")
        schedules.pass_seconds(43_200)
        topic.publish("second")
        schedules.run_out()

        sent_ms = subscriber.times("first")[0] + 43_200_000
        assert max(subscriber.times("second")) < sent_ms + DAY * 1000
        assert web.show()["counts"]["active"] == 0 or (world.clock.now_ms() < sent_ms + DAY * 1000)


class TestBackoff:
    """3 retries, each after a random 10-20 s, in order."""

    def test_four_attempts_10_to_20_s_apart_then_the_next_message(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        web = topic.subscribe("web", "http", retry={"policy": "backoff"})
        subscriber.down("one", "two")
        sent = topic.publish("one", "two", "three")
        schedules.run_out()

        assert subscriber.bodies() == ["one"] * 4 + ["two"] * 4 + ["three"]
        for body in ("one", "two"):
            waits = subscriber.waits(body)
            assert len(waits) == 3
            assert all(10 <= wait <= 20 for wait in waits)
        assert len({*subscriber.waits("one"), *subscriber.waits("two")}) == 6
        assert subscriber.times("two")[0] == subscriber.times("one")[-1]
        assert web.show()["counts"]["active"] == 0
        assert [topic.trace(each["id"])["web"] for each in sent] == [
            {"state": "discarded", "attempts": 4},
            {"state": "discarded", "attempts": 4},
            {"state": "delivered", "attempts": 1},
        ]
        assert topic.active() == 0

    def test_the_next_message_waits_until_this_one_is_delivered(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        topic.subscribe("web", "http", retry={"policy": "backoff"})
        subscriber.down("one")
        topic.publish("one")
        topic.publish("two")
        topic.publish("three")
        schedules.run(lambda: len(subscriber.deliveries) == 2, None)
        subscriber.up()
        schedules.run_out()

        assert subscriber.bodies() == ["one", "one", "one", "two", "three"]

    def test_with_a_dead_letter_queue_a_message_to_drop_goes_there(
        self, alice: Client, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        alice.put("/queues/dead")
        web = topic.subscribe("web", "http", retry={"policy": "backoff"}, dead_letter_queue="dead")
        subscriber.down("one")
        (one, _) = topic.publish("one", "two")
        schedules.run_out()

        assert [dead["id"] for dead in dead_letters(alice, web, "dead")] == [one["id"]]
        assert subscriber.bodies() == ["one"] * 4 + ["two"]
        assert topic.trace(one["id"])["web"]["state"] == "dead"


class TestPoliciesThatEndInADeadLetterQueue:
    POLICIES: tuple[tuple[dict[str, Any], dict[str, Any], list[float]], ...] = (
        ({"policy": "unordered", "max_retries": 0}, {}, []),
        ({"policy": "custom", "waits": [0.5, 3, 61.25, 5]}, {}, [0.5, 3, 61.25, 5]),
        (
            {"policy": "ordered", "interval_seconds": 0.01, "max_retries": 4},
            {"ordered": True},
            [0.01] * 4,
        ),
    )

    @pytest.mark.parametrize(("retry", "others", "waits"), POLICIES)
    def test_the_attempts_come_at_the_waits_and_then_the_message_is_a_dead_letter(
        self,
        alice: Client,
        topic: TestTopic,
        subscriber: Subscriber,
        schedules: Schedules,
        retry: dict[str, Any],
        others: dict[str, Any],
        waits: list[float],
    ) -> None:
        web = topic.subscribe("web", "http", retry=retry, **others)
        subscriber.down("sick")
        (sent,) = topic.publish("sick", tags=["t"], attributes={"a": "1"})
        queue = f"dlq-{web.id}"
        assert (alice.get(f"/queues/{queue}").code == "QueueNotFound") == bool(waits)
        schedules.run_out()

        assert subscriber.waits("sick") == waits
        (dead,) = dead_letters(alice, web)
        assert dead["id"] == sent["id"]
        assert (dead["body"], dead["tags"], dead["attributes"]) == ("sick", ["t"], {"a": "1"})
        assert dead["dead_letter"]["reason"] == "retries"
        assert dead["dead_letter"]["receive_count"] == len(waits) + 1
        assert dead["receive_count"] == 1
        assert web.show()["dead_letter_queue"] == queue
        assert web.show()["counts"]["active"] == 0
        assert web.show()["state"] == "delivering"
        traced = topic.trace(sent["id"])["web"]
        told = {"state": "dead", "attempts": len(waits) + 1, "dead_letter_queue": queue}
        assert traced == told

    @pytest.mark.parametrize(
        ("obstacle", "ordered"),
        [*((obstacle, False) for obstacle in OBSTACLES), (OBSTACLES[0], True)],
    )
    def test_if_its_own_queue_cannot_be_made_a_message_stays_and_holds_nothing_back(
        self,
        world: World,
        alice: Client,
        topic: TestTopic,
        subscriber: Subscriber,
        schedules: Schedules,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        obstacle: str,
        ordered: bool,
    ) -> None:
        policy = "ordered" if ordered else "unordered"
        retry = {"policy": policy, "max_retries": 1}
        web = topic.subscribe("web", "http", retry=retry, ordered=ordered)
        queue = f"dlq-{web.id}"
        put_in_the_way(alice, queue, obstacle, monkeypatch)
        subscriber.down("sick")
        (sent,) = topic.publish("sick")
        schedules.run_out()
        topic.publish("well")
        world.settle()
        sweep(world)

        assert len(subscriber.waits("sick")) == 1
        assert subscriber.bodies()[-1] == "well"
        assert topic.trace(sent["id"])["web"] == {"state": "pending", "attempts": 2}
        shown = web.show()
        assert (shown["state"], shown["counts"]["active"]) == ("delivering", 1)
        assert queue in caplog.text

    def test_unordered_goes_on_with_the_others_while_one_waits(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        topic.subscribe("web", "http", retry={"policy": "unordered"})
        subscriber.down("sick")
        topic.publish("sick")
        schedules.pass_seconds(5)
        topic.publish("well")
        schedules.pass_seconds(100)

        assert subscriber.times("well") == [subscriber.times("sick")[0] + 5_001]
        assert subscriber.waits("sick") == [10, 30, 60]

    def test_in_order_everything_waits_for_the_failing_one(
        self, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
    ) -> None:
        topic.subscribe("web", "http", ordered=True)
        subscriber.down("one")
        topic.publish("one")
        topic.publish("two")
        schedules.pass_seconds(600)
        assert subscriber.waits("one") == [60] * 10
        assert subscriber.times("two") == []
        subscriber.up()
        topic.publish("three")
        schedules.run_out()

        assert subscriber.bodies()[-3:] == ["one", "two", "three"]

    @pytest.mark.parametrize(
        ("fields", "wait_seconds", "left_seconds"),
        [
            # The next attempt would be in the last two minutes: the message is not lost in silence.
            (
                {"ordered": True, "retry": {"policy": "ordered", "interval_seconds": 30}},
                30,
                120,
            ),
            ({"retry": {"policy": "http_unordered"}}, 300, 300),
        ],
        ids=["ordered without max_retries", "288 retries after 300 s"],
    )
    def test_retries_end_with_the_messages_life(
        self,
        world: World,
        alice: Client,
        topic: TestTopic,
        subscriber: Subscriber,
        schedules: Schedules,
        fields: dict[str, Any],
        wait_seconds: int,
        left_seconds: int,
    ) -> None:
        web = failing_url(topic, subscriber, "one", **fields)
        schedules.pass_seconds(10 * wait_seconds)
        assert subscriber.waits("one") == [wait_seconds] * 10
        world.clock.pass_seconds(DAY - 16 * wait_seconds)
        schedules.run_out()

        lived_ms = subscriber.times("one")[-1] - subscriber.times("one")[0]
        assert lived_ms == (DAY - left_seconds) * 1000
        assert [dead["body"] for dead in dead_letters(alice, web)] == ["one"]


@pytest.mark.parametrize(
    ("retry", "waits"),
    [
        # The waits of 1 s and 2 s are over when the attempts end: the next ones start at once.
        (None, [3, 3, 4, 8, 16, 32, 64, 128]),
        ({"policy": "custom", "waits": [10, 2, 5]}, [10, 3, 5]),
    ],
    ids=["exponential_decay", "custom"],
)
def test_a_wait_counts_from_the_start_of_the_attempt_before_it(
    world: World,
    topic: TestTopic,
    subscriber: Subscriber,
    schedules: Schedules,
    retry: dict[str, Any] | None,
    waits: list[int],
) -> None:
    failing_url(topic, subscriber, retry=retry)
    answer = world.endpoint

    def slow(url: str) -> str | None:
        failed = answer(url)
        world.clock.pass_seconds(3)
        return failed

    world.endpoint = slow
    topic.publish("slow")
    schedules.pass_seconds(300)

    assert subscriber.waits("slow") == waits


def test_webhook_id_stays_and_the_request_id_is_new(
    world: World, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
) -> None:
    failing_url(topic, subscriber)
    (sent,) = topic.publish("sick")
    schedules.pass_seconds(100)

    headers = [headers for _, headers, _ in world.posts]
    assert len(headers) == 7
    assert {each["webhook-id"] for each in headers} == {sent["id"]}
    assert {each["x-cmq-message-id"] for each in headers} == {sent["id"]}
    assert len({each["x-cmq-request-id"] for each in headers}) == 7


def test_a_subscription_shows_its_next_attempt_and_last_error(
    topic: TestTopic, subscriber: Subscriber, schedules: Schedules
) -> None:
    web = topic.subscribe("web", "http")
    assert web.show().keys() & {"next_attempt_at", "last_error"} == set()
    subscriber.down()
    (sent,) = topic.publish("sick")
    schedules.pass_seconds(100)

    shown = web.show()
    assert shown["state"] == "retrying"
    assert shown["last_error"] == "status 500"
    assert to_ms(shown["next_attempt_at"]) == subscriber.times("sick")[0] + 127_000
    assert topic.trace(sent["id"])["web"] == {
        "state": "retrying",
        "attempts": 7,
        "next_attempt_at": shown["next_attempt_at"],
        "last_error": "status 500",
    }


def test_a_failing_subscription_has_one_execution_and_healthy_ones_none(
    world: World, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
) -> None:
    sick = topic.subscribe("sick", "http")
    for name in ("well", "good"):
        topic.subscribe(name, "http", endpoint=f"http://127.0.0.1:9/{name}")
    answer = world.endpoint
    world.endpoint = lambda url: answer(url) or ("timeout" if url.endswith("/hook") else None)
    for number in range(21):
        topic.publish(*(f"{number}.{place}" for place in range(16)))
    schedules.pass_seconds(300)

    assert sick.show()["counts"]["active"] == 21 * 16
    assert schedules.started == {sick.id: 1}
    assert schedules.running == [f"{sick.id}-1"]
    for name in ("well", "good"):
        times = [each.at_ms for each in subscriber.deliveries if each.path == name]
        assert len(times) == 21 * 16
        assert max(times) - min(times) == 20
    assert len(subscriber.bodies("hook")) == 16 + 8


def test_an_execution_hands_over_to_a_successor_after_1500_rounds(
    monkeypatch: pytest.MonkeyPatch,
    topic: TestTopic,
    subscriber: Subscriber,
    schedules: Schedules,
) -> None:
    # Nine events a round, and 25,000 would fail the execution.
    assert delivery.ROUNDS == 1_500
    monkeypatch.setattr("cirrusmq.push.delivery.ROUNDS", 15)
    retry = {"policy": "ordered", "interval_seconds": 5}
    web = failing_url(topic, subscriber, "sick", ordered=True, retry=retry)
    schedules.pass_seconds(5 * 17)

    assert subscriber.waits("sick") == [5] * 17
    assert schedules.started == {web.id: 2}
    assert schedules.running == [f"{web.id}-2"]
    assert schedules.rounds[f"{web.id}-1"] == 16
    assert web.show()["state"] == "retrying"
