"""The library after a connection that is cut when the service has acted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, func, select, text
from tests.awaited import Awaited, Loop
from tests.client.conftest import NewQueue
from tests.client.taking import drain, left

from cirrusmq_client import (
    AsyncClient,
    Backoff,
    Client,
    ExactlyOnce,
    Message,
    Producer,
    Received,
    SqlTransactions,
    errors,
)


@pytest.fixture(params=["blocking", "asyncio"])
def lossy(
    request: pytest.FixtureRequest, proxy: Any, lossy: Client, stack: Any, loop: Loop
) -> Iterator[Any]:
    """A client behind the proxy: either kind, used as a blocking one."""
    if request.param == "blocking":
        yield lossy
        return
    retry = Backoff(first_seconds=0.01)
    with Awaited(loop, lambda: AsyncClient(stack.behind(proxy.url), retry=retry)) as client:
        yield client


@pytest.mark.parametrize("messages", [1, 16])
def test_a_repeated_send_stores_its_messages_once(
    proxy: Any, lossy: Client, client: Client, queue: str, messages: int
) -> None:
    proxy.lose("/messages")
    proxy.lose("/messages")
    sent = lossy.send(queue, [Message(str(number)) for number in range(messages)])
    assert proxy.lost == 2
    assert left(client, queue) == messages
    received = client.receive(queue, 16, wait_seconds=5)
    assert [message.id for message in received] == [each.id for each in sent]


def test_a_long_batch_with_losses_arrives_once_and_in_order(
    proxy: Any, lossy: Client, client: Client, new_queue: NewQueue
) -> None:
    name = new_queue(ordered=True)
    for _ in range(3):
        proxy.lose("/messages")
    bodies = [Message(str(number), group="g") for number in range(40)]
    assert len({sent.id for sent in Producer(lossy).send_batch(name, bodies)}) == 40
    assert proxy.lost == 3
    assert drain(client, name) == [str(number) for number in range(40)]
    assert left(client, name) == 0


def test_a_repeated_receive_gets_the_same_messages_and_receipts(
    proxy: Any, lossy: Client, client: Client, queue: str
) -> None:
    sent = client.send(queue, [Message(str(number)) for number in range(10)])
    proxy.lose("/receive")
    received = lossy.receive(queue, 16, wait_seconds=5)
    assert proxy.lost == 1
    assert {message.id for message in received} == {each.id for each in sent}
    assert {message.receive_count for message in received} == {1}
    assert len(lossy.delete(queue, [message.receipt for message in received]).done) == 10
    assert left(client, queue) == 0


def test_a_repeated_delete_finds_the_messages_gone_and_succeeds(
    proxy: Any, lossy: Client, client: Client, queue: str
) -> None:
    client.send(queue, [Message("a"), Message("b")])
    receipts = [message.receipt for message in client.receive(queue, 16, wait_seconds=5)]
    proxy.lose("/delete")
    outcome = lossy.delete(queue, receipts)
    assert outcome.done.keys() == set(receipts)
    assert outcome.failed == []
    assert [each.code for each in lossy.delete(queue, receipts).failed] == ["ReceiptExpired"] * 2


def test_a_queue_with_an_unanswered_deletion_is_deleted(
    proxy: Any, lossy: Client, queue: str
) -> None:
    proxy.lose(queue)
    lossy.delete_queue(queue)
    with pytest.raises(errors.QueueNotFound):
        lossy.delete_queue(queue)


def test_an_unanswered_purge_is_not_repeated(proxy: Any, lossy: Client, queue: str) -> None:
    proxy.lose("/purge")
    with pytest.raises(errors.NoAnswer) as caught:
        lossy.purge_queue(queue)
    assert caught.value.uncertain
    assert sum(body == b"" or body == b"{}" for body in proxy.bodies) == 1


def test_a_message_consumed_before_the_repeat_comes_again_under_its_id_and_has_no_second_effect(
    proxy: Any, lossy: Client, client: Client, queue: str, tmp_path: Path
) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    store = SqlTransactions(engine)
    store.create_table()
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE orders (body TEXT)"))
    ids: list[str] = []

    def write(message: Received, connection: Any) -> None:
        connection.execute(text("INSERT INTO orders VALUES (:body)"), {"body": message.text})

    def consume() -> None:
        message = client.receive(queue, wait_seconds=5)[0]
        ids.append(message.id)
        ExactlyOnce(store, "shop").handle(message, write)
        client.delete(queue, [message.receipt])

    proxy.lose("/messages", meanwhile=consume)
    sent = Producer(lossy).send(queue, "one order")
    consume()
    assert ids == [sent.id, sent.id]
    with engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(text("orders"))).scalar() == 1
    engine.dispose()
