"""The core on both engines, the embedded one and moto's DynamoDB: alone, and with 8 threads."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest
from botocore.session import get_session
from moto import mock_aws
from msgspec.structs import replace

from cirrusmq.access.keys import Caller
from cirrusmq.base import ulid
from cirrusmq.base.errors import CirrusMQError
from cirrusmq.model.source import Source, queue_source
from cirrusmq.queues.queues import get_queue
from cirrusmq.queues.receivers import source_with_id
from cirrusmq.receiving.receive import receive
from cirrusmq.receiving.receive_request import ReceiveRequest
from cirrusmq.runtime.clock import SystemClock
from cirrusmq.runtime.store import Store
from cirrusmq.sending.send import send
from cirrusmq.sending.send_request import SendMessage, SendRequest
from cirrusmq.settlement.delete import DeleteRequest, delete
from cirrusmq.settlement.visibility import GiveBackRequest, give_back
from cirrusmq.wiring.bootstrap import make_dynamodb
from cirrusmq_local.testing import Client, World

CALLER = Caller(account="alice", key_id="key", admin=False)


class LockedClient:
    """One call at a time: moto's DynamoDB is not made for threads."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._calls = threading.Lock()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda **request: self._call(name, request)

    def _call(self, name: str, request: dict[str, Any]) -> Any:
        with self._calls:
            return getattr(self._client, name)(**request)


def create_tables(world: World) -> None:
    client = boto3.client("dynamodb", region_name="us-east-1")
    for name in (world.tables.directory, world.tables.messages, world.tables.usage):
        client.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")
            ],
        )


@pytest.fixture(params=["embedded", "moto"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(by_sdk=True)
    if request.param == "embedded":
        yield made
    else:
        with mock_aws():
            create_tables(made)
            client = LockedClient(make_dynamodb(get_session(), "us-east-1"))
            store = Store(client, made.random, made.clock.sleep)
            made.core = replace(made.core, store=store)
            yield made
    made.engine.close()


@pytest.fixture
def alice(world: World) -> Client:
    return world.client("alice", admin=True)


def bodies(messages: list[dict[str, Any]]) -> list[str]:
    return sorted(message["body"] for message in messages)


def act(client: Client, verb: str, messages: list[dict[str, Any]], **fields: Any) -> Any:
    receipts = [message["receipt"] for message in messages]
    reply = client.post(f"/queues/orders/messages/{verb}", {"receipts": receipts, **fields})
    assert reply.status == 200, reply.text
    return reply.json


def test_messages_are_sent_received_and_deleted(alice: Client) -> None:
    alice.put("/queues/orders")
    alice.send("orders", "a", "b" * 5_000, attributes={"x": {"base64": "/w=="}}, tags=["t"])

    held = alice.receive("orders")

    assert bodies(held) == ["a", "b" * 5_000]
    assert all(message["attributes"] == {"x": {"base64": "/w=="}} for message in held)
    assert alice.receive("orders") == []
    assert act(alice, "delete", held[:1])["failed"] == []
    assert len(act(alice, "delete", held)["failed"]) == 1
    assert alice.get("/queues/orders").json["counts"]["active"] == 0


def test_a_stale_receipt_changes_nothing(world: World, alice: Client) -> None:
    alice.put("/queues/orders")
    alice.send("orders", "a", "b")
    old = alice.receive("orders")
    world.clock.pass_seconds(30)
    new = alice.receive("orders")

    for verb in ("delete", "give-back", "dead-letter"):
        codes = {failed["code"] for failed in act(alice, verb, old)["failed"]}
        assert codes == {"ReceiptExpired"}

    assert act(alice, "delete", new)["failed"] == []


@pytest.mark.few(2)
@pytest.mark.parametrize("seconds", [10, 1_000])
def test_given_back_messages_come_again(world: World, alice: Client, seconds: int) -> None:
    alice.put("/queues/orders")
    alice.send("orders", "a", "b")
    act(alice, "give-back", alice.receive("orders"), delay_seconds=seconds)

    assert alice.receive("orders") == []
    world.clock.pass_seconds(seconds)
    assert bodies(alice.receive("orders") + alice.receive("orders")) == ["a", "b"]


def test_sends_are_repeated_and_deduplicated(world: World, alice: Client) -> None:
    alice.put("/queues/orders")
    token = ulid.encode(world.clock.now_ms(), bytes(10))
    request = {"messages": [{"body": "a"}, {"body": "b", "delay_seconds": 1}], "attempt": token}
    first = alice.post("/queues/orders/messages", request)
    assert alice.post("/queues/orders/messages", request).json == first.json
    one = alice.send("orders", "c", deduplication_id="k")
    assert alice.send("orders", "d", deduplication_id="k") == one
    world.clock.pass_seconds(1)

    received = [message for _ in range(4) for message in alice.receive("orders")]

    assert bodies(received) == ["a", "b", "c"]


def test_dead_letters_and_redrive(world: World, alice: Client) -> None:
    alice.put("/queues/dead")
    alice.put("/queues/orders", {"dead_letter": {"queue": "dead", "max_receives": 1}})
    alice.send("orders", "a", "b" * 5_000)
    alice.receive("orders")
    world.clock.pass_seconds(30)
    assert alice.receive("orders") == []

    alice.post("/queues/dead/redrive")
    world.settle()

    assert alice.receive("dead") == []
    received = alice.receive("orders") + alice.receive("orders")
    assert bodies(received) == ["a", "b" * 5_000]


def test_rewind_and_purge(world: World, alice: Client) -> None:
    alice.put("/queues/orders", {"rewind_seconds": 3_600})
    sent = alice.send("orders", "a", "b")
    held = alice.receive("orders")
    for message in held:
        act(alice, "delete", [message])
    world.clock.pass_seconds(1)

    alice.post("/queues/orders/rewind", {"to": sent[0]["sent_at"]})
    world.settle()

    assert bodies(alice.receive("orders")) == ["a", "b"]
    alice.post("/queues/orders/purge")
    world.settle()
    world.clock.pass_seconds(60)
    assert alice.receive("orders") == []


def test_an_ordered_queue_keeps_its_order(world: World, alice: Client) -> None:
    alice.put("/queues/orders", {"ordered": True})
    for number in range(5):
        alice.send("orders", f"{number}", group="g")
    first = alice.receive("orders", 2)
    assert [message["body"] for message in first] == ["0", "1"]
    assert alice.receive("orders") == []
    act(alice, "delete", first)
    assert [message["body"] for message in alice.receive("orders")] == ["2", "3", "4"]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("world", "total", "ordered"),
    [
        ("embedded", 320, False),
        ("embedded", 320, True),
        ("moto", 80, True),
        pytest.param("moto", 80, False, marks=pytest.mark.long),
        pytest.param("embedded", 4_000, False, marks=pytest.mark.long),
        pytest.param("embedded", 4_000, True, marks=pytest.mark.long),
    ],
    indirect=["world"],
)
def test_eight_threads_lose_nothing_and_never_hold_a_message_twice(
    world: World, alice: Client, total: int, ordered: bool
) -> None:
    """Each thread sends a share of the messages, and receives, gives back and deletes at random."""
    alice.put("/queues/orders", {"ordered": ordered, "visibility_timeout_seconds": 43_200})
    core = replace(world.core, clock=SystemClock())
    queue = get_queue(core, "alice", "orders")
    lock = threading.Lock()
    sent: set[str] = set()
    held: set[str] = set()
    deleted: set[str] = set()
    consumed: Counter[str] = Counter()

    def find() -> Source:
        return queue_source(queue, core.now_ms())

    def source_of(source_id: str) -> Any:
        return source_with_id(core, queue, source_id)

    def send_some(thread: int, first: int) -> None:
        group = f"g{thread}"
        messages = [SendMessage(body=f"{first + n}", group=group) for n in range(10)]
        results = send(core, queue, SendRequest(messages=messages), CALLER)
        with lock:
            for result in results:
                assert not isinstance(result, CirrusMQError)
                sent.add(result.id)

    def take_some(chance: random.Random) -> None:
        wanted = ReceiveRequest(max=chance.randrange(1, 17), wait_seconds=0)
        received = receive(core, find, CALLER, wanted, 20)
        ids = [message.parcel.message_id(message.index) for message in received]
        with lock:
            assert not held.intersection(ids), "held by two at once"
            assert not deleted.intersection(ids), "returned after its delete"
            held.update(ids)
            if ordered:
                ahead = Counter(consumed)
                for message in received:
                    group = message.message.group or ""
                    assert int(message.message.body) == ahead[group], "out of order"
                    ahead[group] += 1
        back = chance.random() < 0.1
        receipts = [message.receipt for message in received]
        if not receipts:
            return
        with lock:  # before the call: another thread may be faster than its answer
            held.difference_update(ids)
            if not back:
                deleted.update(ids)
                consumed.update(message.message.group or "" for message in received)
        if back:
            fates = give_back(core, GiveBackRequest(receipts=receipts), source_of)
        else:
            fates = delete(core, DeleteRequest(receipts=receipts), source_of)
        assert not [fate for fate in fates.values() if isinstance(fate, CirrusMQError)]

    def work(thread: int) -> None:
        chance = random.Random(thread)
        for first in range(0, total // 8, 10):
            send_some(thread, first)
            for _ in range(chance.randrange(3)):
                take_some(chance)
        while True:
            with lock:
                if len(deleted) >= total // 80 * 80:
                    return
            take_some(chance)

    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(work, thread) for thread in range(8)]:
            done.result(timeout=120)

    assert deleted == sent
    assert held == set()
    nothing = receive(core, find, CALLER, ReceiveRequest(), 1)
    assert nothing == []
