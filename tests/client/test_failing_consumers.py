"""Failures of consumers cost little: waits, dead letters without a queue, missing sources."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.conftest import NewQueue, Wait
from tests.client.taking import unused

from cirrusmq_client import (
    Batches,
    Client,
    Consumer,
    DeadLetter,
    Message,
    NoProgress,
    Producer,
    Queue,
    Received,
    Retry,
    Subscription,
    errors,
)
from cirrusmq_client.options import Options
from cirrusmq_client.results import Ack
from cirrusmq_client.results import Wait as OwnWait
from cirrusmq_client.upkeep import Upkeep

pytestmark = pytest.mark.usefixtures("either_consumer")


class Failing:
    """A handler that notes its messages and fails."""

    def __init__(self, result: Any = None) -> None:
        self.result = result
        self.counts: list[int] = []

    def __call__(self, given: Received | list[Received]) -> Any:
        messages = given if isinstance(given, list) else [given]
        self.counts += [message.receive_count for message in messages]
        if self.result is None:
            raise RuntimeError("the shop is closed")
        return self.result


@pytest.mark.alone
@pytest.mark.parametrize("batches", [None, Batches(max_batch=8)], ids=["single", "batches"])
def test_a_raising_handler_gets_few_deliveries(
    client: Client,
    producer: Producer,
    queue: str,
    caplog: pytest.LogCaptureFixture,
    batches: Batches | None,
) -> None:
    handler = Failing()
    sent = producer.send(queue, "two coffees")

    with Consumer(queue, handler, client=client, batches=batches, wait_seconds=1):
        time.sleep(5)

    # At 0 s, after 1 s, after 1 or 2 more, after 2 to 4 more.
    assert handler.counts in ([1, 2, 3], [1, 2, 3, 4])
    told = [line for line in caplog.messages if "handler failed" in line]
    assert len(told) == len(handler.counts)
    assert all(f"queue {queue}" in line and sent.id in line for line in told)


def test_waits_double_from_one_second_to_five_minutes() -> None:
    upkeep = Upkeep(object(), Queue("orders"), Options())  # type: ignore[arg-type]
    waits = [upkeep.timed(Retry(), count) for count in (1, 2, 3, 4, 9, 10, 1_000_000)]

    assert waits == [OwnWait(seconds) for seconds in (1, 2, 4, 8, 256, 300, 300)]
    drawn = {OwnWait(300).delay_seconds or 0 for _ in range(2_000)}
    assert min(drawn) >= 150
    assert max(drawn) <= 300
    assert len(drawn) > 100
    assert {OwnWait(1).delay_seconds for _ in range(50)} == {1}
    # A time that the handler chose, and other results, stay as they are.
    for result in (Retry(0), Retry(7.5), Ack(), DeadLetter("no")):
        assert upkeep.timed(result, 5) is result


@pytest.mark.alone
def test_the_retry_policy_goes_before_the_waits_of_the_library(
    client: Client, producer: Producer, new_queue: NewQueue, wait_until: Wait
) -> None:
    dead = new_queue()
    name = new_queue(
        retry={"policy": "custom", "waits": [0.05] * 5},
        dead_letter={"queue": dead, "max_receives": 1000},
    )
    handler = Failing()
    with Consumer(name, handler, client=client, wait_seconds=1):
        began = time.monotonic()
        producer.send(name, "a")
        wait_until(lambda: client.show_queue(dead)["counts"]["active"] == 1, seconds=10)
    assert handler.counts == [1, 2, 3, 4, 5, 6]
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("ordered", [False, True])
def test_a_dead_letter_makes_its_missing_queue(
    client: Client,
    producer: Producer,
    new_queue: NewQueue,
    wait_until: Wait,
    caplog: pytest.LogCaptureFixture,
    ordered: bool,
) -> None:
    name = new_queue(ordered=ordered)
    handler = Failing(DeadLetter("not an order"))

    with Consumer(name, handler, client=client, wait_seconds=1):
        group = "g" if ordered else None
        client.send(name, [Message("a", group=group), Message("b", group=group)])
        wait_until(lambda: len(handler.counts) == 2)
        made = f"dlq-{name}"
        wait_until(lambda: any(each["name"] == made for each in client.list_queues("dlq-")))
        wait_until(lambda: client.show_queue(made)["counts"]["active"] == 2)

    assert len(handler.counts) == 2
    assert client.show_queue(name)["dead_letter"] == {"queue": made, "max_receives": 1_000}
    letter = client.receive(made)[0]
    assert letter.dead_letter is not None
    assert (letter.dead_letter["source_queue"], letter.dead_letter["reason"]) == (
        name,
        "not an order",
    )
    assert f"queue {name} had no dead-letter queue: {made} is its own now" in caplog.messages
    assert not [line for line in caplog.messages if "not settled" in line]


def test_the_dead_letter_queue_of_a_long_name_has_the_queues_id(
    client: Client, producer: Producer, wait_until: Wait
) -> None:
    name = unused("q").ljust(64, "x")
    made = "dlq-" + client.create_queue(name)["id"]

    with Consumer(name, Failing(DeadLetter()), client=client, wait_seconds=1):
        producer.send(name, "a")
        wait_until(lambda: client.show_queue(name)["dead_letter"] is not None)
        wait_until(lambda: client.show_queue(made)["counts"]["active"] == 1)


@pytest.mark.alone
@pytest.mark.parametrize("why", ["not wanted", "not possible"])
def test_a_dead_letter_without_a_queue_waits(
    client: Client,
    producer: Producer,
    new_queue: NewQueue,
    caplog: pytest.LogCaptureFixture,
    why: str,
) -> None:
    name = new_queue()
    if why == "not possible":  # a dead-letter queue has none itself
        new_queue(dead_letter={"queue": name, "max_receives": 3})
    handler = Failing(DeadLetter("not an order"))
    wanted = why != "not wanted"
    sent = producer.send(name, "a")

    with Consumer(name, handler, client=client, make_dead_letter_queue=wanted, wait_seconds=1):
        time.sleep(5)

    assert handler.counts in ([1, 2, 3], [1, 2, 3, 4])
    assert client.show_queue(name)["dead_letter"] is None
    comes_again = (
        f"{sent.id} of queue {name} has no dead-letter queue and comes again: not an order"
    )
    assert caplog.messages.count(comes_again) == len(handler.counts)
    refused = [line for line in caplog.messages if "gets none" in line]
    assert len(refused) == (1 if wanted else 0), "it is tried once a minute"


def test_a_dead_letter_of_a_group_with_a_dropping_policy_makes_its_queue(
    client: Client, producer: Producer, topic: str, wait_until: Wait
) -> None:
    group: Any = {"protocol": "pull", "retry": {"policy": "exponential_decay"}}
    made = "dlq-" + client.create_subscription(topic, "shop", group)["id"]
    with Consumer(
        Subscription(topic, "shop"), Failing(DeadLetter()), client=client, wait_seconds=1
    ):
        producer.publish(topic, "a")
        wait_until(lambda: client.show_subscription(topic, "shop")["dead_letter_queue"] == made)
        wait_until(lambda: client.show_queue(made)["counts"]["active"] == 1)


def test_a_missing_queue_is_waited_for(
    client: Client, producer: Producer, wait_until: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    name = unused("q")
    got: list[str] = []

    with Consumer(name, lambda message: got.append(message.text), client=client, wait_seconds=1):
        wait_until(lambda: f"queue {name} is waited for" in caplog.text)
        assert f"looked for again in 0.5 s: account local has no queue {name}" in caplog.text
        client.create_queue(name)
        producer.send(name, "a")
        wait_until(lambda: got == ["a"], seconds=10)
        # It may go and come again: consumers need not be started after their queues.
        client.delete_queue(name)
        caplog.clear()
        wait_until(lambda: f"queue {name} is waited for" in caplog.text)
        client.create_queue(name, {"ordered": True})
        producer.send(name, "b", group="g")
        wait_until(lambda: got == ["a", "b"], seconds=10)

    assert "Traceback" not in caplog.text
    client.delete_queue(name)


def test_a_missing_queue_is_made_with_the_given_attributes(
    client: Client, producer: Producer, wait_until: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    name = unused("q")
    got: list[str] = []

    def member() -> Consumer:
        return Consumer(
            name,
            lambda message: got.append(message.text),
            client=client,
            create={"ordered": True},
            wait_seconds=1,
        )

    with member(), member():
        wait_until(lambda: f"queue {name} was not there: it is made" in caplog.messages)
        producer.send(name, "a", group="g")
        wait_until(lambda: got == ["a"])
    assert client.show_queue(name)["ordered"] is True


def test_a_queue_refused_at_create_is_waited_for(
    client: Client, wait_until: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    name = unused("q")
    with Consumer(name, print, client=client, create={"partitions": 0}, wait_seconds=1):
        wait_until(lambda: f"queue {name} is waited for" in caplog.text)
    assert "partitions" in caplog.text


def test_receivers_and_subscriptions_are_made_too(
    client: Client,
    producer: Producer,
    queue: str,
    topic: str,
    wait_until: Wait,
    caplog: pytest.LogCaptureFixture,
) -> None:
    got: list[str] = []

    def consume(source: Any, **options: Any) -> Consumer:
        handler: Any = lambda message: got.append(message.text)  # noqa: E731
        return Consumer(source, handler, client=client, create={}, wait_seconds=1, **options)

    with (
        consume(Queue(queue, receiver="audit")),
        consume(Subscription(topic, "shop")),
        consume(Subscription(topic, "screens"), broadcasting=NoProgress()),
    ):
        wait_until(lambda: caplog.text.count("was not there: it is made") == 3)
        producer.send(queue, "a")
        producer.publish(topic, "b")
        wait_until(lambda: sorted(got) == ["a", "b", "b"])
    modes = {each["name"]: each["mode"] for each in client.list_subscriptions(topic)}
    assert modes == {"shop": "clustering", "screens": "broadcasting"}


def test_a_missing_topic_is_waited_for_or_made(
    client: Client, producer: Producer, wait_until: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    choices: list[Any] = [None, {}]
    for create in choices:
        topic = unused("t")
        got: list[str] = []

        def note(message: Received, got: list[str] = got) -> None:
            got.append(message.text)

        with Consumer(
            topic, note, client=client, broadcasting=NoProgress(), create=create, wait_seconds=1
        ):
            if create is None:
                wait_until(lambda: f"topic {topic} is waited for" in caplog.text)  # noqa: B023
                client.create_topic(topic)
            else:
                made = f"topic {topic} was not there: it is made"
                wait_until(lambda: made in caplog.messages)  # noqa: B023
            client.create_subscription(topic, "all", {"protocol": "pull"})
            producer.publish(topic, "a")
            wait_until(lambda: got == ["a"], seconds=10)  # noqa: B023


def test_a_wrong_key_ends_a_consumer(stack: Any, new_client: Callable[..., Client]) -> None:
    client = new_client()
    client._transport._http.headers["authorization"] = "Bearer AK00000000000000000000:wrong"
    with pytest.raises(errors.Unauthenticated):
        Consumer("orders", print, client=client).run()


@pytest.mark.alone
def test_a_member_without_sight_of_the_policy_waits_too(
    client: Client,
    producer: Producer,
    queue: str,
    new_client: Callable[..., Client],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A grant to receive does not show attributes."""
    key = client.create_key("neighbour")
    client.put_grant(queue, "neighbour", "receive")
    other = new_client()
    bearer = f"Bearer {key['access_key_id']}:{key['secret']}"
    other._transport._http.headers["authorization"] = bearer
    producer.send(queue, "a")
    handler = Failing(DeadLetter())

    with (
        caplog.at_level(logging.WARNING),
        Consumer(f"local:{queue}", handler, client=other, wait_seconds=1),
    ):
        time.sleep(5)

    assert handler.counts in ([1, 2, 3], [1, 2, 3, 4])
    assert client.show_queue(queue)["dead_letter"] is None
