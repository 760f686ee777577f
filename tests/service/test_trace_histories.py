"""Each attempt at a URL in a message's trace: its time, its answer, its own error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.service.conftest import to_ms
from tests.service.topics import Schedules, TestTopic, failing_url

from cirrusmq.storage.sizes import UNIT_BYTES, item_bytes
from cirrusmq_local.testing import Client, Delivery, Subscriber, World

LADDER = [2**n for n in range(10)]
ERRORS: list[tuple[str | None, dict[str, Any]]] = [
    ("status 503", {"status": 503, "error": "status 503"}),
    ("redirect 302", {"status": 302, "error": "redirect 302"}),
    ("timeout", {"error": "timeout"}),
    ("connection", {"error": "connection"}),
    (None, {"status": 204}),
]


def outcomes(world: World, *errors: str | None) -> None:
    """Answer the next posts so, and all later ones as the last of them."""
    left = list(errors)
    world.endpoint = lambda url: left.pop(0) if len(left) > 1 else left[0]


@pytest.mark.parametrize(
    ("retry", "others"),
    [
        ({"policy": "custom", "waits": [1, 2, 4, 8]}, {}),
        ({"policy": "exponential_decay"}, {}),
        ({"policy": "ordered", "interval_seconds": 3}, {"ordered": True}),
    ],
)
def test_each_attempt_has_its_time_and_its_own_error(
    world: World,
    topic: TestTopic,
    schedules: Schedules,
    retry: dict[str, Any],
    others: dict[str, Any],
) -> None:
    topic.subscribe("web", "http", retry=retry, **others)
    outcomes(world, *(error for error, _ in ERRORS))
    posted: list[int] = []
    answer = world.endpoint

    def noting(url: str) -> str | None:
        posted.append(world.clock.now_ms())
        return answer(url)

    world.endpoint = noting
    (sent,) = topic.publish("one")
    schedules.run_out()

    history = topic.history(sent["id"], "web")
    assert [to_ms(each.pop("at")) for each in history] == posted
    assert history == [
        {"number": number, **shown} for number, (_, shown) in enumerate(ERRORS, start=1)
    ]


def test_the_latest_ten_are_shown_and_the_trace_says_how_many_there_were(
    topic: TestTopic, subscriber: Subscriber, schedules: Schedules
) -> None:
    failing_url(topic, subscriber)
    (sent,) = topic.publish("one")
    schedules.pass_seconds(sum(LADDER) + 3 * 512)

    attempts = topic.trace(sent["id"])["web"]["attempts"]
    history = topic.history(sent["id"], "web")
    assert attempts == 14
    assert [each["number"] for each in history] == list(range(5, 15))
    assert [to_ms(each["at"]) for each in history] == subscriber.times("one")[-10:]
    assert {each["error"] for each in history} == {"status 500"}


@pytest.mark.parametrize("policy", ["unordered", "exponential_decay", "backoff"])
def test_of_messages_published_together_each_has_its_own_attempts(
    topic: TestTopic, subscriber: Subscriber, schedules: Schedules, policy: str
) -> None:
    topic.subscribe("web", "http", retry={"policy": policy})
    refused = {f"m{n}": n % 3 for n in range(16)}

    def answer(delivery: Delivery) -> int:
        refused[delivery.text] -= 1
        return 204 if refused[delivery.text] < 0 else 500

    subscriber.answer = answer
    sent = topic.publish(*refused)
    schedules.run_out()

    for number, each in enumerate(sent):
        history = topic.history(each["id"], "web")
        expected = ["status 500"] * (number % 3) + [None]
        assert [attempt.get("error") for attempt in history] == expected
        times = [to_ms(attempt["at"]) for attempt in history]
        assert times == subscriber.times(f"m{number}")


@pytest.mark.parametrize("policy", ["unordered", "exponential_decay"])
def test_an_attempt_by_hand_is_one_of_them_and_a_pause_makes_none(
    topic: TestTopic, subscriber: Subscriber, schedules: Schedules, policy: str
) -> None:
    web = failing_url(topic, subscriber, retry={"policy": policy})
    (sent,) = topic.publish("one")
    assert topic.client.post(f"{web.path}/pause", {}).status == 200
    schedules.pass_seconds(300)
    assert len(topic.history(sent["id"], "web")) == 1
    assert topic.client.post(f"{web.path}/resume", {}).status == 200
    schedules.pass_seconds(0.1)
    before = len(topic.history(sent["id"], "web"))
    assert topic.client.post(f"{web.path}/retry", {}).status == 204
    schedules.pass_seconds(0.1)

    history = topic.history(sent["id"], "web")
    assert len(history) == before + 1
    assert [to_ms(each["at"]) for each in history] == subscriber.times("one")


@pytest.mark.parametrize("policy", ["custom", "backoff"])
def test_the_trace_of_one_given_up_shows_its_attempts(
    alice: Client, topic: TestTopic, subscriber: Subscriber, schedules: Schedules, policy: str
) -> None:
    retry: dict[str, Any] = {"policy": policy} | ({"waits": [1] * 3} if policy == "custom" else {})
    web = failing_url(topic, subscriber, retry=retry)
    sent = topic.publish("one", "two")
    schedules.run_out()

    for each, body in zip(sent, ("one", "two"), strict=True):
        state = "dead" if policy == "custom" else "discarded"
        assert topic.trace(each["id"])["web"]["state"] == state
        history = topic.history(each["id"], "web")
        assert [to_ms(attempt["at"]) for attempt in history] == subscriber.times(body)
        assert [attempt["number"] for attempt in history] == [1, 2, 3, 4]
    if policy == "backoff":
        return

    subscriber.up()
    operation = alice.post(f"/queues/dlq-{web.id}/redrive", {}).json["operation"]
    schedules.run_out()
    assert alice.get(f"/operations/{operation}").json["done"] == 2
    (again,) = topic.history(sent[0]["id"], "web")
    assert (again["number"], again["status"]) == (1, 204)


def test_a_group_and_a_queue_have_none(
    topic: TestTopic, make_queue: Callable[..., Any], alice: Client
) -> None:
    make_queue("box")
    topic.subscribe("box", "queue", endpoint="box")
    group = topic.subscribe("group")
    (sent,) = topic.publish("one")
    group.receive()
    reply = alice.get(f"{topic.path}/messages/{sent['id']}")
    assert [each.get("history") for each in reply.json["deliveries"]] == [None, None]


def parcel_of(world: World, subscription_id: str) -> dict[str, Any]:
    """The item of the only parcel of a subscription."""
    items = world.engine.execute("Scan", {"TableName": world.tables.messages})["Items"]
    (item,) = (each for each in items if each["pk"]["S"].startswith(f"Q#{subscription_id}#"))
    held: dict[str, Any] = item
    return held


@pytest.mark.writes_by_hand
def test_an_item_from_before_histories_were_kept_has_its_last_error_and_goes_on(
    world: World, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
) -> None:
    web = failing_url(topic, subscriber, retry={"policy": "custom", "waits": [60] * 9})
    (sent,) = topic.publish("one")
    schedules.pass_seconds(61)
    item = parcel_of(world, web.id)
    place = {"TableName": world.tables.messages, "Key": {"pk": item["pk"], "sk": item["sk"]}}
    as_before = {
        "UpdateExpression": "SET e0 = :error REMOVE a0",
        "ExpressionAttributeValues": {":error": {"S": "status 500"}},
    }
    world.engine.execute("UpdateItem", {**place, **as_before})

    shown = topic.trace(sent["id"])["web"]
    assert (shown["attempts"], shown["last_error"]) == (2, "status 500")
    schedules.pass_seconds(60)
    (attempt,) = topic.history(sent["id"], "web")
    assert (attempt["number"], attempt["error"]) == (3, "status 500")


def test_the_histories_of_a_full_batch_get_shorter_and_cost_no_write_unit(
    world: World, topic: TestTopic, subscriber: Subscriber, schedules: Schedules
) -> None:
    web = topic.subscribe("web", "http", retry={"policy": "custom", "waits": [1, 900, 7_200] * 5})
    subscriber.answer = lambda delivery: 400 + 100 * (len(subscriber.deliveries) % 2)
    sent = topic.publish(*(f"{n} " + "x" * 20 for n in range(16)))
    schedules.pass_seconds(14 * 3_600)

    assert 500 < item_bytes(parcel_of(world, web.id)) <= UNIT_BYTES
    for each in sent:
        attempts = topic.trace(each["id"])["web"]["attempts"]
        history = topic.history(each["id"], "web")
        assert 3 <= len(history) < 10 <= attempts
        assert history[-1]["number"] == attempts
