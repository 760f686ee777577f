"""A receive carries the deletes of what was handled since the last one."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from tests.client.conftest import NewQueue, Wait
from tests.client.taking import left

from cirrusmq_client import Batches, Client, Consumer, Message, Producer, Queue, errors
from cirrusmq_client.leases import Held, Leases
from cirrusmq_client.messages import Received
from cirrusmq_client.options import Options
from cirrusmq_client.outcomes import Failed, Outcome
from cirrusmq_client.settling import Settler
from cirrusmq_client.upkeep import Upkeep


def receipts(messages: Sequence[Received]) -> list[str]:
    return [message.receipt for message in messages]


def calls(proxy: Any) -> Counter[str]:
    """Calls on messages, by the ends of their paths."""
    return Counter(path.rpartition("/")[2] for path in proxy.paths if "/messages/" in path)


def test_a_receive_deletes_and_tells_the_result_for_each_receipt(
    client: Client, queue: str
) -> None:
    client.send(queue, [Message("a"), Message("b")])
    first = client.receive(queue, 16, wait_seconds=5)
    client.delete(queue, receipts(first)[1:])
    client.send(queue, [Message("c")])

    exchanged = client.delete_and_receive(queue, receipts(first), 16, wait_seconds=5)

    assert exchanged.error is None
    assert [message.text for message in exchanged.messages] == ["c"]
    assert exchanged.deleted.done == {first[0].receipt: None}
    assert [failed.code for failed in exchanged.deleted.failed] == ["ReceiptExpired"]


def test_after_a_lost_answer_the_same_messages_come_and_the_deletes_count_as_done(
    proxy: Any, lossy: Client, client: Client, queue: str
) -> None:
    client.send(queue, [Message("a")])
    first = client.receive(queue, 16, wait_seconds=5)
    client.send(queue, [Message("b")])
    proxy.lose("/receive")

    exchanged = lossy.delete_and_receive(queue, receipts(first), 16, wait_seconds=5)

    assert proxy.lost == 1
    assert [(each.text, each.receive_count) for each in exchanged.messages] == [("b", 1)]
    assert exchanged.deleted.done.keys() == set(receipts(first))
    assert exchanged.deleted.failed == []


def test_an_error_after_the_deletes_comes_beside_their_results(client: Client, queue: str) -> None:
    client.send(queue, [Message("a")])
    first = client.receive(queue, 16, wait_seconds=5)
    deletion = threading.Timer(0.5, client.delete_queue, (queue,))
    deletion.start()

    exchanged = client.delete_and_receive(queue, receipts(first), wait_seconds=20)
    deletion.join()

    assert exchanged.deleted.done.keys() == set(receipts(first))
    assert exchanged.messages == []
    assert isinstance(exchanged.error, errors.QueueNotFound)


@pytest.mark.usefixtures("both_consumers")
def test_a_consumer_of_quick_handlers_makes_one_call_a_message(
    proxy: Any, lossy: Client, client: Client, queue: str, wait_until: Wait
) -> None:
    for number in range(30):
        client.send(queue, [Message(str(number))])
    handled: list[str] = []
    consumer = Consumer(
        *(queue, lambda message: handled.append(message.text)),
        client=lossy,
        workers=1,
        prefetch=0,
        wait_seconds=1,
    )

    with consumer:
        wait_until(lambda: len(handled) == 30)
        wait_until(lambda: left(client, queue) == 0)

    made = calls(proxy)
    assert sorted(map(int, handled)) == list(range(30))
    assert made["delete"] <= 3
    assert made["receive"] <= 36


def test_a_consumer_of_batches_makes_one_call_for_sixteen(
    proxy: Any, lossy: Client, client: Client, new_queue: NewQueue, wait_until: Wait
) -> None:
    name = new_queue(partitions=1)
    for _ in range(10):
        client.send(name, [Message("x")] * 16)
    handled: list[int] = []
    consumer = Consumer(
        *(name, lambda messages: handled.append(len(messages))),
        client=lossy,
        batches=Batches(max_batch=16),
        workers=1,
        prefetch=0,
        wait_seconds=1,
    )

    with consumer:
        wait_until(lambda: sum(handled) == 160)
        wait_until(lambda: left(client, name) == 0)

    made = calls(proxy)
    assert made["delete"] <= 3
    assert made["receive"] + made["delete"] <= 20


@pytest.mark.usefixtures("either_consumer")
def test_a_delete_does_not_wait_for_the_end_of_a_long_receive(
    client: Client, queue: str, wait_until: Wait
) -> None:
    client.send(queue, [Message("a")])

    with Consumer(queue, lambda _: time.sleep(0.3), client=client, wait_seconds=20):
        begun = time.monotonic()
        wait_until(lambda: left(client, queue) == 0, seconds=10)
        assert time.monotonic() - begun < 10
        client.send(queue, [Message("end")])  # so that the receive ends, and the consumer with it


@pytest.mark.usefixtures("either_consumer")
@pytest.mark.parametrize("ordered", [False, True])
def test_a_stopping_consumer_deletes_its_handled_messages(
    client: Client, producer: Producer, new_queue: NewQueue, wait_until: Wait, ordered: bool
) -> None:
    name = new_queue(ordered=ordered)
    producer.send_batch(name, [Message(str(n), group=str(n % 7)) for n in range(200)])
    handled: list[str] = []
    consumer = Consumer(
        name, lambda message: handled.append(message.text), client=client, wait_seconds=1
    )

    consumer.start()
    wait_until(lambda: len(handled) > 60)
    consumer.stop()
    consumer.join()

    assert left(client, name) == 200 - len(handled)


@pytest.mark.usefixtures("either_consumer")
def test_messages_are_handled_once_though_answers_are_lost(
    proxy: Any,
    lossy: Client,
    client: Client,
    queue: str,
    wait_until: Wait,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for number in range(40):
        client.send(queue, [Message(str(number))])
    for _ in range(5):
        proxy.lose("/receive")
    handled: list[str] = []

    with Consumer(
        queue, lambda message: handled.append(message.text), client=lossy, wait_seconds=1
    ):
        wait_until(lambda: len(handled) >= 40)
        wait_until(lambda: left(client, queue) == 0)

    assert proxy.lost == 5
    assert sorted(map(int, handled)) == list(range(40))
    assert [line for line in caplog.messages if "not settled" in line] == []


class Deletes:
    """The part of a client that a settler needs."""

    server_seconds = 0.0

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def delete(self, _: object, asked: Sequence[str]) -> Outcome:
        self.asked.append(list(asked))
        expired = [Failed(asked[0], "ReceiptExpired", "gone")]
        return Outcome(dict.fromkeys(asked[1:]), expired)


@pytest.fixture
def service() -> Deletes:
    return Deletes()


@pytest.fixture
def settler(service: Any) -> Settler:
    source = Queue("q")
    upkeep = Upkeep(service, source, Options())
    return Settler(service, source, Leases(service, source), upkeep)


def some(count: int) -> list[Held]:
    return [Held(Received({"id": str(n), "receipt": str(n)}), 30.0, 1.0) for n in range(count)]


def test_a_delete_refused_by_the_store_gets_a_call_of_its_own(
    service: Deletes, settler: Settler, caplog: pytest.LogCaptureFixture
) -> None:
    taken = some(4)
    stale, refused, refused_too = (
        Failed("1", "ReceiptExpired", "stale"),
        Failed("2", "Unavailable", "later"),
        Failed("3", "Unavailable", "later"),
    )

    with caplog.at_level(logging.WARNING):
        settler.note_deletes(taken, Outcome({"0": None}, [stale, refused, refused_too]))

    assert [sorted(asked) for asked in service.asked] == [["2", "3"]]
    assert caplog.messages == ["1 of queue q not settled: ReceiptExpired: stale"]


def test_a_receipt_deleted_by_an_unanswered_receive_is_no_failure(
    service: Deletes, settler: Settler, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        settler.delete_after_all(some(2))

    assert service.asked == [["0", "1"]]
    assert caplog.messages == []


def test_a_lease_ending_with_a_receive_is_not_extended_meanwhile() -> None:
    leases = Leases(Deletes(), Queue("q"))  # type: ignore[arg-type]
    (held,) = some(1)
    before = held.renew

    leases.end([held])

    assert held.renew - before > 10
    assert held.renew < held.ends
