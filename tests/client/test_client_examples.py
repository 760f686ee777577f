"""The examples of the manual do what they say."""

from __future__ import annotations

import os
import re
import runpy
import signal
import sqlite3
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.server import ThreadedMotoServer
from tests.client.conftest import Wait, connection_by
from tests.stack import Stack

from cirrusmq_client import Client, Producer

EXAMPLES = Path(__file__).with_name("examples")


class Example:
    """A running example and its output so far."""

    def __init__(self, name: str, environment: dict[str, str], folder: Path) -> None:
        self.output = folder / f"{name}-{time.monotonic_ns()}.out"
        with self.output.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, EXAMPLES / f"{name}.py"],
                env=os.environ | environment,
                cwd=folder,
                stdout=file,
            )

    @property
    def lines(self) -> list[str]:
        # The last one may still be in the writing.
        return [line for line in self.output.read_text().split("\n")[:-1] if line]

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0


Start = Callable[[str], Example]


@pytest.fixture
def orders(client: Client) -> Iterator[str]:
    client.create_queue("orders")
    yield "orders"
    client.delete_queue("orders")


@pytest.fixture
def start(stack: Any, tmp_path: Path, orders: str) -> Iterator[Start]:
    # Examples end before their queue does: a consumer waits for a queue that is not there.
    running: list[Example] = []

    def run(name: str) -> Example:
        running.append(Example(name, stack.environment, tmp_path))
        return running[-1]

    yield run
    for example in running:
        if example.process.poll() is None:
            example.end()


def test_a_request_has_its_reply(start: Start, wait_until: Wait) -> None:
    asked = start("request_reply")
    wait_until(lambda: asked.lines == ["4"])
    assert asked.process.wait(30) == 0


def test_a_first_program_sends_and_handles(start: Start, wait_until: Wait) -> None:
    hello = start("hello")
    wait_until(lambda: hello.lines == ["hello"])
    hello.end()


def test_messages_sent_soon_are_sent(start: Start, client: Client) -> None:
    producing = start("produce_soon")
    assert producing.process.wait(30) == 0
    assert producing.lines == ["1000"]
    assert client.show_queue("orders")["counts"]["active"] == 1_000


@pytest.mark.long
def test_a_message_is_sent_and_handled_in_one_trace(start: Start, wait_until: Wait) -> None:
    traced = start("traced")
    wait_until(lambda: any("delete orders" in line for line in traced.lines))
    traced.end()

    names = defaultdict(set)
    for line in traced.lines:
        trace_id, name = line.split(" ", 1)
        names[trace_id].add(name)
    assert {"order", "send orders", "process orders", "invoice"} in names.values()


@pytest.mark.long
def test_several_consumers_share_the_produced_orders(start: Start, wait_until: Wait) -> None:
    producing = start("produce")
    assert producing.process.wait(30) == 0
    assert producing.lines[0].startswith("Msg-")
    workers = [start("consume"), start("consume")]

    def printed() -> list[str]:
        # Threads print at once: a line and its end may be apart.
        return re.findall(r"order \d+", " ".join(worker.output.read_text() for worker in workers))

    wait_until(lambda: len(printed()) == 100)
    assert sorted(printed()) == sorted(f"order {number}" for number in range(100))
    for worker in workers:
        worker.end()


def test_an_asyncio_program_sends_and_consumes(
    start: Start, client: Client, wait_until: Wait
) -> None:
    worker = start("consume_async")
    wait_until(lambda: len(worker.lines) == 100)
    assert sorted(worker.lines) == sorted(f"order {number}" for number in range(100))
    worker.end()
    counts = client.show_queue("orders")["counts"]
    assert counts["active"] + counts["inactive"] == 0


def test_batches_are_consumed(start: Start, wait_until: Wait) -> None:
    assert start("produce").process.wait(30) == 0
    worker = start("consume_batches")
    wait_until(lambda: sum(int(line.split()[0]) for line in worker.lines) == 100)
    assert sum(int(line.split()[1]) for line in worker.lines) == 790


def test_each_customers_order_is_kept(start: Start, client: Client, wait_until: Wait) -> None:
    worker = start("consume_in_order")

    def printed() -> list[tuple[str, str]]:
        return re.findall(r"(customer-\d) ([a-z]+?)(?=customer|\s)", worker.output.read_text())

    wait_until(lambda: len(printed()) == 20)
    steps = defaultdict(list)
    for customer, step in printed():
        steps[customer].append(step)
    assert list(steps.values()) == [["open", "deposit", "withdraw", "close"]] * 5
    worker.end()
    client.delete_queue("accounts")


def test_a_subscription_ships_the_paid_orders(
    start: Start, client: Client, wait_until: Wait
) -> None:
    worker = start("consume_topic")
    wait_until(lambda: worker.lines)
    assert worker.lines == ["ship a teapot"]
    worker.end()
    client.delete_topic("sales")


@pytest.mark.long
def test_caches_follow_and_go_on_after_a_pause(
    start: Start, client: Client, producer: Producer, tmp_path: Path, wait_until: Wait
) -> None:
    client.create_topic("prices")
    caches: Any = {"protocol": "pull", "mode": "broadcasting"}
    client.create_subscription("prices", "caches", caches)
    cache = start("broadcast")

    def follows() -> bool:
        # Without progress a member starts at the latest message: this one, or the next.
        producer.publish("prices", "tea=3")
        return bool(cache.lines)

    wait_until(follows)
    wait_until((tmp_path / "cache.progress").exists)
    assert cache.lines[0] == "{'tea': '3'}"
    cache.end()
    producer.publish("prices", "milk=1")
    again = start("broadcast")
    wait_until(lambda: any("milk" in line for line in again.lines))
    again.end()
    client.delete_topic("prices")


@pytest.mark.long
def test_rows_are_sold_once(
    start: Start, client: Client, producer: Producer, orders: str, tmp_path: Path, wait_until: Wait
) -> None:
    producer.send_batch(orders, ["tea", "milk"])
    worker = start("exactly_once_sql")
    wait_until(lambda: _sold(tmp_path) == ["milk", "tea"])
    worker.end()


def _sold(folder: Path) -> list[str]:
    path = folder / "shop.db"
    if not path.exists():
        return []
    connection = sqlite3.connect(path)
    try:
        return sorted(row[0] for row in connection.execute("SELECT what FROM sold"))
    except sqlite3.OperationalError:
        return []
    finally:
        connection.close()


def test_a_function_sells_each_order_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        dynamodb = boto3.client("dynamodb")
        _make_tables(dynamodb)
        module = runpy.run_path(str(EXAMPLES / "lambda_consumer.py"))
        event = {"messages": [{"id": "Msg-1", "body": "tea"}, {"id": "Msg-2", "body": "milk"}]}
        for _ in range(2):
            assert module["handler"](event, None) == {"batchItemFailures": []}
        assert len(dynamodb.scan(TableName="sold")["Items"]) == 2


def test_a_function_is_called_with_the_sent_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_until: Wait
) -> None:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_DYNAMODB": f"http://{host}:{port}",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(EXAMPLES)
    dynamodb = boto3.client("dynamodb")
    _make_tables(dynamodb)
    stack = Stack(tmp_path / "data", "--function", "shop=lambda_consumer:handler")
    try:
        held = stack.connection()
        with Client(connection_by(held["url"], held)) as client:
            client.create_queue("orders", {"invoke": {"function": "shop"}})
            producer = Producer(client)
            producer.send_batch("orders", ["tea", "milk", "bread"])
            producer.send("orders", "honey", delay_seconds=2)

            def sold() -> list[str]:
                items = dynamodb.scan(TableName="sold")["Items"]
                return sorted(item["what"]["S"] for item in items)

            wait_until(lambda: sold() == ["bread", "honey", "milk", "tea"])
            wait_until(lambda: client.show_queue("orders")["counts"]["inactive"] == 0)
            assert client.show_queue("orders")["counts"]["active"] == 0
        code, _, errors = stack.end()
        assert (code, errors) == (0, "")
    finally:
        stack.clean_up()
        dynamodb.close()
        server.stop()


def _make_tables(dynamodb: Any) -> None:
    for table, keys in [("cirrusmq_consumed", ["message", "consumer_group"]), ("sold", ["order"])]:
        dynamodb.create_table(
            TableName=table,
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
            KeySchema=[
                {"AttributeName": key, "KeyType": kind}
                for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
            ],
            BillingMode="PAY_PER_REQUEST",
        )


def test_calls_in_process_use_the_url_of_a_service_without_named_tables(
    start: Start,
) -> None:
    example = start("in_process")
    assert (example.process.wait(60), example.lines) == (0, ["order 1"])
