"""Effects that happen once: repeated sends, handlers that crash, leases that run out."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from sqlalchemy import Connection, Engine, create_engine, text
from tests.client.conftest import NewQueue
from tests.client.taking import consuming, left

from bench.rivals.postgres import find_programs, run_postgres
from cirrusmq_client import (
    Ack,
    Batches,
    BatchResult,
    Client,
    Consumer,
    DeadLetter,
    DynamoDBTransactions,
    ExactlyOnce,
    HandlerResult,
    Message,
    Producer,
    Received,
    Retry,
    SqlTransactions,
)
from cirrusmq_client.effect_keys import key_of
from cirrusmq_client.messages import DEDUPLICATION_ATTRIBUTE
from cirrusmq_client.sql_transactions import CONSUMED
from cirrusmq_local.engine import Engine as Store
from cirrusmq_local.engine import TableSpec, attach

HERE = Path(__file__).parent
ORDERS = 40
SEED = 1
"""By which both kinds of trouble come with the first four calls of a handler."""
SENT = "2026-11-25T08:00:00.000Z"


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: no initdb in /usr/lib/postgresql or PATH")
    with run_postgres(programs, durable=False) as dsn:
        yield dsn.replace("postgresql:", "postgresql+psycopg:")


DATABASES = ["sqlite", "postgresql"]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """A database with the table of records and one of effects."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'shop.db'}"
    else:
        url = request.getfixturevalue("postgres_url")
    made = create_engine(url)
    CONSUMED.metadata.drop_all(made)
    SqlTransactions(made).create_table()
    SqlTransactions(made).create_table()
    with made.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS effects"))
        connection.execute(text("CREATE TABLE effects (body VARCHAR(100))"))
    yield made
    made.dispose()


def effects(engine: Engine) -> Counter[str]:
    with engine.connect() as connection:
        return Counter(connection.execute(text("SELECT body FROM effects")).scalars())


def write(message: Received, connection: Connection) -> None:
    connection.execute(text("INSERT INTO effects VALUES (:body)"), {"body": message.text})


def received(message_id: str = "Msg-1", **fields: Any) -> Received:
    return Received({"id": message_id, "body": "order", **fields})


def send_twice(client: Client, queue: str, count: int) -> None:
    """A producer that sends each message twice: the service's own memory of 5 minutes is over."""
    orders = [
        Message(str(number), attributes={DEDUPLICATION_ATTRIBUTE: f"order-{number}"})
        for number in range(count)
    ]
    for first in range(0, count, 8):
        for _ in range(2):
            client.send(queue, orders[first : first + 8])


class CrashesAfterCommit:
    """A store whose caller dies, now and then, when everything is written."""

    def __init__(self, store: Any, chance: random.Random) -> None:
        self._store, self._chance, self.crashes = store, chance, 0

    def run(self, key: str, group: str, work: Callable[[Any], object]) -> object:
        result = self._store.run(key, group, work)
        self._die_now_and_then()
        return result

    def run_together(self, keys: Any, group: str, work: Any) -> object:
        result = self._store.run_together(keys, group, work)
        self._die_now_and_then()
        return result

    def _die_now_and_then(self) -> None:
        # The first time for certain: of batches there are few.
        if self.crashes == 0 or self._chance.random() < 0.2:
            self.crashes += 1
            raise RuntimeError("dead before the delete")


def consume_with_trouble(
    client: Client,
    queue: str,
    store: Any,
    write: Callable[[Received, Any], None],
    *,
    each: bool = False,
    **options: Any,
) -> tuple[int, set[int]]:
    """Three members until the queue is empty; how many troubles they had, and sizes of batches."""
    troubled, chance = CrashesAfterCommit(store, random.Random(11)), random.Random(SEED)
    troubles: Counter[str] = Counter()
    sizes: set[int] = set()
    lock = threading.Lock()

    def handle(given: Any, tools: Any) -> None:
        messages = given if isinstance(given, list) else [given]
        with lock:
            luck = chance.random()
            sizes.add(len(messages))
        if luck < 0.15:
            troubles["lost lease"] += 1
            # Another consumer receives it while this handler works.
            client.change_visibility(queue, {messages[0].receipt: 0})
            time.sleep(0.05)
        for message in messages:
            write(message, tools)
        if luck > 0.8:
            troubles["crash before the commit"] += 1
            raise RuntimeError("dead before the commit")

    once = ExactlyOnce(troubled, "shop", each=each)
    members = [
        Consumer(queue, once(handle), client=client, wait_seconds=0.5, **options) for _ in range(3)
    ]
    ends = time.monotonic() + 90
    with consuming(*members):
        while left(client, queue) and time.monotonic() < ends:
            time.sleep(0.1)
    assert not left(client, queue)
    assert len(troubles) == 2
    assert troubled.crashes
    return sum(troubles.values()) + troubled.crashes, sizes


@pytest.mark.parametrize("engine", DATABASES, indirect=True)
def test_rows_are_written_once_whatever_happens(
    client: Client, new_queue: NewQueue, engine: Engine
) -> None:
    name = new_queue(visibility_timeout_seconds=5)
    send_twice(client, name, ORDERS)
    assert consume_with_trouble(client, name, SqlTransactions(engine), write)[0] > 10
    assert effects(engine) == Counter(map(str, range(ORDERS)))


def test_rows_are_written_once_though_processes_die(
    stack: Any, client: Client, producer: Producer, new_queue: NewQueue, engine: Engine
) -> None:
    name = new_queue(visibility_timeout_seconds=1)
    producer.send_batch(name, map(str, range(ORDERS // 2)))
    url = engine.url.render_as_string(hide_password=False)
    ends = []
    for seed in range(60):
        process = subprocess.run(
            [sys.executable, HERE / "crashing_consumer.py", name, url, str(seed)],
            env=os.environ | stack.environment,
            timeout=60,
            check=False,
        )
        ends.append(process.returncode)
        if process.returncode != 9:
            break
    assert ends[-1] == 0
    assert len(ends) > 1, "no process died"
    assert effects(engine) == Counter(map(str, range(ORDERS // 2)))


def write_all(messages: list[Received], connection: Connection) -> None:
    for message in messages:
        write(message, connection)


@pytest.mark.parametrize("each", [False, True], ids=["together", "each"])
def test_batches_are_written_once_whatever_happens(
    client: Client, new_queue: NewQueue, engine: Engine, each: bool
) -> None:
    name = new_queue(visibility_timeout_seconds=5)
    send_twice(client, name, ORDERS)
    batches = Batches(max_batch=8, max_await=0.1)

    _, sizes = consume_with_trouble(
        client, name, SqlTransactions(engine), write, each=each, batches=batches
    )

    assert effects(engine) == Counter(map(str, range(ORDERS)))
    assert (max(sizes) > 1) != each


def some(*ids: str, **fields: Any) -> list[Received]:
    return [Received({"id": each, "body": each, **fields}) for each in ids]


def test_a_batch_leaves_out_messages_handled_before(engine: Engine) -> None:
    once = ExactlyOnce(SqlTransactions(engine), "shop")
    seen: list[list[str]] = []

    def handle(messages: list[Received], connection: Connection) -> None:
        seen.append([message.id for message in messages])
        write_all(messages, connection)

    assert once.handle_together(some("a", "b"), handle) == [None, None]
    assert once.handle_together(some("b", "c", "a"), handle) == [Ack(), None, Ack()]
    assert once.handle_together(some("a", "c"), handle) == [Ack(), Ack()]
    assert seen == [["a", "b"], ["c"]]
    assert effects(engine) == {"a": 1, "b": 1, "c": 1}


def test_a_message_twice_in_a_batch_has_one_effect_and_one_result(engine: Engine) -> None:
    once = ExactlyOnce(SqlTransactions(engine), "shop")
    noted = {"attributes": {DEDUPLICATION_ATTRIBUTE: "order-7"}, "sent_at": SENT}
    results: list[HandlerResult] = [Retry(after=3), None]

    def handle(messages: list[Received], connection: Connection) -> BatchResult:
        assert [message.id for message in messages] == ["a"]
        write_all(messages, connection)
        return [results.pop(0)]

    assert once.handle_together(some("a", "b", **noted), handle) == [Retry(3), Retry(3)]
    assert effects(engine) == {}
    assert once.handle_together(some("a", "b", **noted), handle) == [None, None]
    assert effects(engine) == {"a": 1}


def test_one_refused_message_undoes_its_batch_and_the_others_come_again_at_once(
    engine: Engine,
) -> None:
    once = ExactlyOnce(SqlTransactions(engine), "shop")

    def handle(messages: list[Received], connection: Connection) -> BatchResult:
        write_all(messages, connection)
        return [Retry() if message.id == "b" else None for message in messages]

    assert once.handle_together(some("a", "b", "c"), handle) == [Retry(0), Retry(), Retry(0)]
    assert effects(engine) == {}
    assert once.handle_together(some("a", "c"), handle) == [None, None]
    assert effects(engine) == {"a": 1, "c": 1}
    with pytest.raises(ValueError, match="2 results for 1 messages"):
        once.handle_together(some("d"), lambda messages, _: [None, None])
    assert effects(engine) == {"a": 1, "c": 1}


def test_with_a_transaction_for_each_a_failure_is_one_messages_alone(engine: Engine) -> None:
    def handle(messages: list[Received], connection: Connection) -> BatchResult:
        write_all(messages, connection)
        if messages[0].id == "b":
            raise RuntimeError("a bug")
        return DeadLetter("no") if messages[0].id == "c" else [None]

    each = ExactlyOnce(SqlTransactions(engine), "shop", each=True)(handle)
    assert each(some("a", "b", "c", "d")) == [None, Retry(), DeadLetter("no"), None]
    assert each(some("a", "d")) == [Ack(), Ack()]
    assert effects(engine) == {"a": 1, "d": 1}


def at_once(one: Callable[[Any], object], other: Callable[[Any], object]) -> list[str]:
    """The results of two calls with a handler, of which the other begins while one handles."""
    entered = threading.Event()
    results: list[object] = []

    def slow(given: Any, connection: Connection) -> None:
        entered.set()
        time.sleep(0.3)
        write_all(given if isinstance(given, list) else [given], connection)

    def call_other() -> None:
        entered.wait()
        results.append(other(slow))

    thread = threading.Thread(target=call_other)
    thread.start()
    results.append(one(slow))
    thread.join()
    return sorted(map(str, results))


def test_batches_with_shared_messages_write_each_once(engine: Engine) -> None:
    handle = ExactlyOnce(SqlTransactions(engine), "shop").handle_together
    one, other = some("a", "b", "c"), some("d", "c", "b")

    results = at_once(lambda slow: handle(one, slow), lambda slow: handle(other, slow))

    assert results == ["[None, Ack(), Ack()]", "[None, None, None]"]
    assert effects(engine) == dict.fromkeys("abcd", 1)


@pytest.mark.parametrize("engine", DATABASES, indirect=True)
def test_two_at_once_write_once(engine: Engine) -> None:
    handle = ExactlyOnce(SqlTransactions(engine), "shop").handle

    results = at_once(*[lambda slow: handle(received(), slow)] * 2)

    assert results == ["Ack()", "None"]
    assert effects(engine) == {"order": 1}


def test_a_refused_message_leaves_neither_effect_nor_record(engine: Engine) -> None:
    once = ExactlyOnce(SqlTransactions(engine), "shop")

    def refuse(result: Retry | DeadLetter) -> Callable[[Received, Connection], HandlerResult]:
        def handle(message: Received, connection: Connection) -> HandlerResult:
            write(message, connection)
            return result

        return handle

    assert once.handle(received(), refuse(Retry(5))) == Retry(5)
    assert once.handle(received(), refuse(DeadLetter("no"))) == DeadLetter("no")
    assert effects(engine) == {}
    once.handle(received(), write)
    assert effects(engine) == {"order": 1}


def test_records_are_kept_for_three_days_at_least(engine: Engine) -> None:
    with pytest.raises(ValueError, match="259,200"):
        SqlTransactions(engine, keep_seconds=259_199)
    store = SqlTransactions(engine, keep_seconds=259_200)
    ExactlyOnce(store, "shop").handle(received("Msg-new"), write)
    now = int(time.time())
    with engine.begin() as connection:
        for message_id, age in [("Msg-old", 259_300), ("Msg-young", 259_100)]:
            row = {"message": message_id, "consumer_group": "shop", "consumed_at": now - age}
            connection.execute(CONSUMED.insert().values(row))
    assert store.remove_old() == 1
    with engine.connect() as connection:
        kept = set(connection.execute(CONSUMED.select()).scalars())
    assert kept == {key_of(received("Msg-new"), "shop"), "Msg-young"}


class OneByOne:
    """moto's transactions do not isolate threads from each other."""

    def __init__(self, client: Any) -> None:
        self._client, self._lock = client, threading.Lock()

    def transact_write_items(self, **request: Any) -> Any:
        with self._lock:
            return self._client.transact_write_items(**request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


# The embedded one is compared with moto in tests/engines.
@pytest.fixture(params=["embedded", pytest.param("moto", marks=pytest.mark.long)])
def dynamodb(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A DynamoDB client, and a table `effects` whose items count how often they were written."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    if request.param == "moto":
        with mock_aws():
            made = boto3.client("dynamodb", region_name="us-east-1")
            DynamoDBTransactions(made).create_table()
            DynamoDBTransactions(made).create_table()
            made.create_table(
                TableName="effects",
                AttributeDefinitions=[{"AttributeName": "body", "AttributeType": "S"}],
                KeySchema=[{"AttributeName": "body", "KeyType": "HASH"}],
                BillingMode="PAY_PER_REQUEST",
            )
            yield OneByOne(made)
        return
    tables = [
        TableSpec("cirrusmq_consumed", partition_key="message", sort_key="consumer_group"),
        TableSpec("effects", partition_key="body", sort_key=None),
    ]
    store = Store(None, tables, now_ms=lambda: int(time.time() * 1000))
    made = boto3.client("dynamodb", region_name="us-east-1")
    detach = attach(store, made)
    yield made
    detach()
    store.close()


def count_effect(message: Received, writes: list[dict[str, Any]]) -> None:
    writes.append(
        {
            "Update": {
                "TableName": "effects",
                "Key": {"body": {"S": message.text}},
                "UpdateExpression": "ADD times :one",
                "ExpressionAttributeValues": {":one": {"N": "1"}},
            }
        }
    )


def counted(dynamodb: Any) -> dict[str, int]:
    pages = dynamodb.get_paginator("scan").paginate(TableName="effects")
    items = [item for page in pages for item in page["Items"]]
    return {item["body"]["S"]: int(item["times"]["N"]) for item in items}


@pytest.mark.long
def test_items_are_written_once_whatever_happens(
    client: Client, new_queue: NewQueue, dynamodb: Any
) -> None:
    name = new_queue(visibility_timeout_seconds=5)
    send_twice(client, name, ORDERS // 2)
    store = DynamoDBTransactions(dynamodb)
    assert consume_with_trouble(client, name, store, count_effect)[0] > 5
    assert counted(dynamodb) == {str(number): 1 for number in range(ORDERS // 2)}


def test_a_refused_message_writes_no_items(dynamodb: Any) -> None:
    once = ExactlyOnce(DynamoDBTransactions(dynamodb), "shop")

    def refuse(message: Received, writes: list[dict[str, Any]]) -> Retry:
        count_effect(message, writes)
        return Retry()

    assert once.handle(received(), refuse) == Retry()
    assert once.handle(received(), count_effect) is None
    assert once.handle(received(), count_effect) == Ack()
    assert counted(dynamodb) == {"order": 1}


def test_a_failed_condition_of_the_consumer_is_its_own_error(dynamodb: Any) -> None:
    once = ExactlyOnce(DynamoDBTransactions(dynamodb), "shop")

    def conditional(message: Received, writes: list[dict[str, Any]]) -> None:
        count_effect(message, writes)
        writes[-1]["Update"]["ConditionExpression"] = "attribute_exists(body)"

    with pytest.raises(dynamodb.exceptions.TransactionCanceledException):
        once.handle(received(), conditional)
    once.handle(received(), count_effect)
    assert counted(dynamodb) == {"order": 1}


def count_effects(messages: list[Received], writes: list[dict[str, Any]]) -> None:
    for message in messages:
        count_effect(message, writes)


def test_a_batch_of_items_leaves_out_messages_handled_before(dynamodb: Any) -> None:
    once = ExactlyOnce(DynamoDBTransactions(dynamodb), "shop")
    assert once.handle_together(some("a", "b"), count_effects) == [None, None]
    assert once.handle_together(some("c", "b", "d", "a"), count_effects) == [
        None,
        Ack(),
        None,
        Ack(),
    ]
    assert once.handle_together(some("a", "c"), count_effects) == [Ack(), Ack()]
    refused = once.handle_together(some("e", "f"), lambda messages, _: [Retry(5), None])
    assert refused == [Retry(5), Retry(0)]
    assert counted(dynamodb) == dict.fromkeys("abcd", 1)


def test_a_batch_too_large_for_a_transaction_says_so(dynamodb: Any) -> None:
    once = ExactlyOnce(DynamoDBTransactions(dynamodb), "shop")
    with pytest.raises(ValueError, match="at most 100 items, not 51 records and 51 writes"):
        once.handle_together(some(*map(str, range(51))), count_effects)
    assert counted(dynamodb) == {}
    assert once.handle_together(some(*map(str, range(50))), count_effects) == [None] * 50
    assert len(counted(dynamodb)) == 50
