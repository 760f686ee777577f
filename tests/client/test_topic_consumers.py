"""Consumers of topics: broadcasting members, and groups that share."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import Wait
from tests.client.taking import consuming

from cirrusmq_client import (
    Batches,
    CallbackProgress,
    Client,
    Consumer,
    FileProgress,
    Message,
    NoProgress,
    Producer,
    Queue,
    Received,
    Retry,
    Subscription,
)
from cirrusmq_client.errors import Conflict
from cirrusmq_client.inputs import RetryInput, SubscriptionInput

BROADCASTING: SubscriptionInput = {"protocol": "pull", "mode": "broadcasting"}


@pytest.fixture
def topic(client: Client, topic: str) -> str:
    # A message that matches no subscription is not kept.
    client.create_subscription(topic, "everything", {"protocol": "pull"})
    return topic


class Member:
    """A broadcasting member and its messages."""

    def __init__(self, client: Client, log: Any, progress: Any, **options: Any) -> None:
        self.got: list[str] = []
        self.consumer = Consumer(log, self.handle, client=client, broadcasting=progress, **options)

    def handle(self, message: Received) -> None:
        self.got.append(message.text)

    def __enter__(self) -> Member:
        self.consumer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.consumer.stop()
        self.consumer.join()


@pytest.mark.usefixtures("both_consumers")
def test_every_member_gets_everything_once_and_in_order(
    client: Client, producer: Producer, topic: str, wait_until: Wait
) -> None:
    client.create_subscription(topic, "screens", BROADCASTING)
    log = Subscription(topic, "screens")
    bodies = [str(number) for number in range(100)]
    producer.publish(topic, "before they came")
    with (
        Member(client, log, NoProgress()) as first,
        Member(client, log, NoProgress()) as second,
        Member(client, topic, NoProgress()) as third,
    ):
        for body in bodies:
            producer.publish(topic, body)
            time.sleep(0.002)  # those of one millisecond are in no order
        members = (first, second, third)
        wait_until(lambda: all(len(member.got) >= 100 for member in members), seconds=30)
        time.sleep(0.3)
    assert [member.got for member in members] == [bodies] * 3


@pytest.mark.usefixtures("either_consumer")
def test_the_subscriptions_filter_holds_for_its_members(
    client: Client, producer: Producer, topic: str, wait_until: Wait
) -> None:
    client.create_subscription(topic, "paid", BROADCASTING | {"filter": {"tags": ["paid"]}})
    with Member(client, Subscription(topic, "paid"), NoProgress()) as member:
        for body, tags in [("a", ["paid"]), ("b", ["open"]), ("c", ["open", "paid"]), ("d", [])]:
            producer.publish(topic, body, tags=tags)
        wait_until(lambda: len(member.got) == 2)
    assert member.got == ["a", "c"]


@pytest.mark.usefixtures("either_consumer")
@pytest.mark.parametrize("kept", ["file", "callback"])
def test_a_member_goes_on_from_its_progress(
    client: Client, producer: Producer, topic: str, wait_until: Wait, tmp_path: Path, kept: str
) -> None:
    client.create_subscription(topic, "screens", BROADCASTING)
    held: list[str] = []

    def make() -> Any:
        if kept == "file":
            return FileProgress(tmp_path / "progress")
        return CallbackProgress(lambda: held[-1] if held else None, held.append)

    log = Subscription(topic, "screens")
    with Member(client, log, make()) as member:
        producer.publish_batch(topic, ["a", "b"])
        wait_until(lambda: len(member.got) == 2)
    producer.publish_batch(topic, ["while it", "was down"])
    with Member(client, log, make()) as again, Member(client, log, NoProgress()) as fresh:
        producer.publish(topic, "after")
        wait_until(lambda: len(again.got) == 3)
        wait_until(lambda: fresh.got)
    assert member.got == ["a", "b"]
    # One that is stored late, on a busy machine, is shown again behind the others.
    assert sorted(again.got) == sorted(["while it", "was down", "after"])
    # Without progress, messages published while it was down are skipped.
    assert fresh.got == ["after"]


@pytest.mark.usefixtures("either_consumer")
def test_a_member_stopped_within_a_page_goes_on_behind_its_last_message(
    client: Client, producer: Producer, topic: str, wait_until: Wait, tmp_path: Path
) -> None:
    progress = FileProgress(tmp_path / "progress")
    got: list[str] = []
    third, go_on = threading.Event(), threading.Event()

    def handle(message: Received) -> None:
        got.append(message.text)
        if len(got) == 3:
            third.set()
            go_on.wait(20)

    consumer = Consumer(topic, handle, client=client, broadcasting=progress)
    consumer.start()
    bodies = [str(number) for number in range(10)]
    producer.publish_batch(topic, bodies)
    assert third.wait(20)
    consumer.stop()
    go_on.set()
    consumer.join()
    with Member(client, topic, progress) as member:
        wait_until(lambda: len(got) + len(member.got) >= 10)
    assert got + member.got == bodies


@pytest.mark.usefixtures("either_consumer")
def test_a_member_seeks_a_time_and_goes_on_from_there(
    client: Client, producer: Producer, topic: str, wait_until: Wait, tmp_path: Path
) -> None:
    progress = FileProgress(tmp_path / "progress")
    sent = []
    with Member(client, topic, progress) as member:
        for body in ("a", "b", "c"):
            sent.append(producer.publish(topic, body).sent_at)
            time.sleep(0.01)
        wait_until(lambda: len(member.got) == 3)
        member.consumer.seek(sent[1])
        producer.publish(topic, "d")
        wait_until(lambda: member.got[-1:] == ["d"] and len(member.got) >= 6)
    assert [body for body in member.got if body != "a"] == [*"bc", *"bcd"]
    assert member.got.count("a") == 1
    again = Member(client, topic, progress)
    again.consumer.seek(datetime.fromisoformat(sent[2]))
    with again:
        wait_until(lambda: len(again.got) == 2)
    assert again.got == ["c", "d"]


def test_a_seek_drops_read_but_unhandled_messages(
    client: Client, producer: Producer, topic: str, wait_until: Wait
) -> None:
    got: list[str] = []
    first, go_on = threading.Event(), threading.Event()

    def handle(message: Received) -> None:
        got.append(message.text)
        first.set()
        go_on.wait(20)

    sent = []
    for body in ("a", "b", "c"):
        sent.append(producer.publish(topic, body).sent_at)
        time.sleep(0.01)
    with Consumer(topic, handle, client=client, broadcasting=NoProgress()) as consumer:
        consumer.seek(sent[0])
        assert first.wait(20)
        consumer.seek(sent[2])
        go_on.set()
        wait_until(lambda: len(got) >= 2)
        time.sleep(0.3)
    assert got == ["a", "c"]


def test_only_a_broadcasting_member_seeks(client: Client, topic: str) -> None:
    consumer = Consumer(Subscription(topic, "everything"), print, client=client)
    with pytest.raises(ValueError, match="rewind_subscription"):
        consumer.seek("2026-11-20T08:00:00Z")


def test_a_group_gets_a_message_once_more_by_its_id(
    client: Client, producer: Producer, topic: str, wait_until: Wait
) -> None:
    group = Subscription(topic, "again")
    client.create_subscription(topic, "again", {"protocol": "pull"})
    sent = [producer.publish(topic, body) for body in "ab"]
    with pytest.raises(Conflict, match="on its way"):
        client.redeliver(topic, "again", sent[1].id)
    assert _take(client, group, 2) == ["a", "b"]
    # A message that is gone may be one that fan-out puts later, until it says that it is over.
    wait_until(lambda: client.trace(topic, sent[1].id)["deliveries"][0]["state"] == "delivered")
    (*_, ended) = client.watch_operation(client.redeliver(topic, "again", sent[1].id))
    assert (ended["kind"], ended["state"], ended["done"]) == ("replay", "succeeded", 1)
    assert _take(client, group, 1) == ["b"]


def _take(client: Client, group: Subscription, count: int) -> list[str]:
    """Receive and delete so many messages; their texts, sorted."""
    texts: list[str] = []
    while len(texts) < count:
        received = client.receive(group, max_messages=16, wait_seconds=10)
        texts += [message.text for message in received]
        if received:
            client.delete(group, [message.receipt for message in received])
    return sorted(texts)


@pytest.mark.usefixtures("either_consumer")
def test_broadcast_messages_come_in_batches_too(
    client: Client, producer: Producer, topic: str, wait_until: Wait
) -> None:
    sizes: list[int] = []
    consumer = Consumer(
        topic,
        lambda messages: sizes.append(len(messages)),
        client=client,
        broadcasting=NoProgress(),
        batches=Batches(max_batch=40, max_await=2),
    )
    with consumer:
        producer.publish_batch(topic, map(str, range(90)))
        wait_until(lambda: sum(sizes) == 90)
    assert sizes[-1] == 10
    assert max(sizes) <= 40


@pytest.mark.usefixtures("either_consumer")
def test_a_queue_cannot_be_broadcast(client: Client) -> None:
    with pytest.raises(ValueError, match="not a queue"):
        Consumer(Queue("orders"), print, client=client, broadcasting=NoProgress())


@pytest.mark.usefixtures("both_consumers")
def test_groups_get_everything_and_their_members_share(
    client: Client, producer: Producer, topic: str, wait_until: Wait
) -> None:
    seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
    consumers = []
    for group in ("mail", "stock"):
        client.create_subscription(topic, group, {"protocol": "pull"})
        source = Subscription(topic, group)
        for _ in range(2):
            consumers.append(
                Consumer(
                    source,
                    lambda message, group=group: seen[group].update([message.text]),  # type: ignore[misc]
                    client=client,
                    wait_seconds=1,
                )
            )
    bodies = [str(number) for number in range(100)]
    with consuming(*consumers):
        producer.publish_batch(topic, bodies)
        wait_until(lambda: all(seen[group].total() >= 100 for group in ("mail", "stock")))
    assert seen == {"mail": Counter(bodies), "stock": Counter(bodies)}
    for group in ("mail", "stock"):
        counts = client.show_subscription(topic, group)["counts"]
        assert (counts["active"], counts["inactive"]) == (0, 0)


@pytest.mark.usefixtures("either_consumer")
def test_an_ordered_subscription_keeps_the_order_of_its_groups(
    client: Client, producer: Producer, topic: str, wait_until: Wait
) -> None:
    retry: RetryInput = {"policy": "ordered", "interval_seconds": 0.05}
    client.create_subscription(
        topic, "ledger", {"protocol": "pull", "ordered": True, "retry": retry}
    )
    done: defaultdict[str, list[int]] = defaultdict(list)

    def handle(message: Received) -> Retry | None:
        if hash(message.text) % 5 == 0 and not message.redeliveries:
            return Retry()
        done[message.group or ""].append(int(message.text))
        return None

    for number in range(10):
        batch = [Message(str(number), group=f"g{group}") for group in range(5)]
        producer.publish_batch(topic, batch)
    source = Subscription(topic, "ledger")
    members = [Consumer(source, handle, client=client, wait_seconds=1) for _ in range(3)]
    with consuming(*members):
        wait_until(lambda: sum(map(len, done.values())) >= 50, seconds=30)
    assert done == {f"g{group}": list(range(10)) for group in range(5)}
