"""Which messages are one for exactly-once effects: those that the service stores once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from sqlalchemy import Engine, create_engine, text
from tests.client.conftest import NewQueue

from cirrusmq_client import (
    Ack,
    Client,
    DynamoDBTransactions,
    ExactlyOnce,
    Message,
    Producer,
    Queue,
    Received,
    Retry,
    SqlTransactions,
    Subscription,
)
from cirrusmq_client.messages import DEDUPLICATION_ATTRIBUTE
from cirrusmq_client.sources import Source
from cirrusmq_local.engine import Engine as Store
from cirrusmq_local.engine import TableSpec, attach

FOLDED = """CREATE TABLE cirrusmq_consumed (
    message VARCHAR(255) COLLATE NOCASE NOT NULL,
    consumer_group VARCHAR(255) COLLATE NOCASE NOT NULL,
    consumed_at BIGINT NOT NULL,
    PRIMARY KEY (message, consumer_group))"""
"""A table as MySQL and SQL Server make it by default: texts are equal without their case."""
Handle = Callable[[Sequence[Received]], list[bool]]
"""Handles messages one by one, or in one batch. Returns whether each had its effect now."""


class Stores:
    """A table in each kind of store, made by a release before this one."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        if kind == "dynamodb":
            tables = [TableSpec("cirrusmq_consumed", "message", "consumer_group")]
            self._tables = Store(None, tables, now_ms=lambda: int(time.time() * 1000))
            self._boto = boto3.client("dynamodb", region_name="us-east-1")
            self._detach = attach(self._tables, self._boto)
            return
        self._engine: Engine = create_engine("sqlite://")
        with self._engine.begin() as connection:
            if kind == "folded":
                connection.execute(text(FOLDED))
        SqlTransactions(self._engine).create_table()

    def close(self) -> None:
        if self.kind == "dynamodb":
            self._detach()
            self._tables.close()
        else:
            self._engine.dispose()

    def transactions(self) -> Any:
        if self.kind == "dynamodb":
            return DynamoDBTransactions(self._boto)
        return SqlTransactions(self._engine)

    def write_former(self, name: str, group: str, consumed_at: float) -> None:
        """Write the record that a release before this one wrote."""
        if self.kind == "dynamodb":
            item = {
                "message": {"S": name},
                "consumer_group": {"S": group},
                "expires_at": {"N": str(int(consumed_at) + 1_296_000)},
            }
            self._boto.put_item(TableName="cirrusmq_consumed", Item=item)
            return
        with self._engine.begin() as connection:
            connection.execute(
                text("INSERT INTO cirrusmq_consumed VALUES (:name, :group, :at)"),
                {"name": name, "group": group, "at": int(consumed_at)},
            )


@pytest.fixture(params=["sqlite", "folded", "dynamodb"])
def stores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stores]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    made = Stores(request.param)
    yield made
    made.close()


def _nothing(message: Received, tools: Any) -> None: ...


def _one_by_one(store: Any, messages: Sequence[Received], group: str = "shop") -> list[bool]:
    once = ExactlyOnce(store, group)
    return [once.handle(message, _nothing) is None for message in messages]


def _together(store: Any, messages: Sequence[Received], group: str = "shop") -> list[bool]:
    called: list[Received] = []

    def handle(batch: list[Received], _: Any) -> None:
        called[:] = batch

    results = ExactlyOnce(store, group).handle_together(messages, handle)
    return [
        result is None and any(each is message for each in called)
        for message, result in zip(messages, results, strict=True)
    ]


@pytest.fixture(params=[_one_by_one, _together], ids=["one by one", "together"])
def handle(request: pytest.FixtureRequest, stores: Stores) -> Any:
    return partial(request.param, stores.transactions())


def received(
    number: str,
    key: str | None = None,
    sent_at: str | None = "2026-11-25T08:00:00.000Z",
    source: str | Source = "orders",
    **fields: Any,
) -> Received:
    shown: dict[str, Any] = {"id": f"Msg-{number}", "body": number, **fields}
    if key is not None:
        shown["attributes"] = {DEDUPLICATION_ATTRIBUTE: key}
    if sent_at is not None:
        shown["sent_at"] = sent_at
    return Received(shown, str(Queue(source) if isinstance(source, str) else source))


def test_within_the_services_window_an_id_has_one_effect_and_later_one_more(handle: Handle) -> None:
    monday = received("1", "report", "2026-11-23T08:00:00.000Z")
    again = received("2", "report", "2026-11-23T08:04:59.999Z")
    later = received("3", "report", "2026-11-23T08:05:00.000Z")
    tuesday = received("4", "report", "2026-11-24T08:00:00.000Z")
    assert handle([monday, again, later, tuesday]) == [True, False, True, True]
    assert handle([tuesday, later, again, monday]) == [False] * 4


SOURCES: list[Source] = [
    Queue("orders"),
    Queue("returns"),
    Queue("acme:orders"),
    Queue("orders", "audit"),
    Queue("orders", "billing"),
    Subscription("orders", "audit"),
    Subscription("orders", "billing"),
]


@pytest.mark.parametrize("key", [None, "order-17"], ids=["copies", "deduplication id"])
def test_each_source_has_its_own_effect(handle: Handle, key: str | None) -> None:
    messages = [received("1", key, source=source) for source in SOURCES]
    assert handle(messages) == [True] * len(SOURCES)
    assert handle(messages) == [False] * len(SOURCES)


@pytest.mark.parametrize(
    ("one", "other"),
    [("cart-a", "cart-A"), ("cart", "cart "), ("strasse", "straße"), ("e\u0301", "\u00e9")],
)
def test_ids_equal_in_a_collation_are_two(handle: Handle, one: str, other: str) -> None:
    assert handle([received("1", one), received("2", other)]) == [True, True]


def test_groups_equal_in_a_collation_are_two(stores: Stores) -> None:
    store = stores.transactions()
    for group in ("shop", "Shop"):
        assert _one_by_one(store, [received("1", "order-17")], group) == [True]


def test_messages_of_one_id_and_unknown_time_are_two(handle: Handle) -> None:
    messages = [received(number, "order-17", sent_at=None) for number in "12"]
    assert handle(messages) == [True, True]
    assert handle(messages) == [False, False]


@pytest.mark.parametrize(
    "note",
    [
        {"source_queue": "orders"},
        {"source_queue": "orders", "receiver": "audit"},
        {"source_queue": "orders", "subscription": "audit"},
    ],
)
def test_a_dead_letter_had_the_effect_of_its_source(handle: Handle, note: dict[str, Any]) -> None:
    origin: Source = Queue("orders", note.get("receiver"))
    if "subscription" in note:
        origin = Subscription("orders", "audit")
    assert handle([received("1", "order-17", source=origin)]) == [True]
    assert handle([received("1", "order-17", source="dead", dead_letter=note)]) == [False]
    assert handle([received("2", source="dead", dead_letter=note)]) == [True]
    assert handle([received("2", source=origin)]) == [False]


def test_records_of_earlier_releases_are_found(stores: Stores, handle: Handle) -> None:
    now = time.time()
    for name in ("Msg-1", "order-2", "report"):
        stores.write_former(name, "shop", now)
    stores.write_former("Msg-5", "other group", now)
    earlier, later = "2026-11-25T08:00:00.000Z", "2099-01-01T00:00:00.000Z"
    messages = [
        received("1"),
        received("2", "order-2", earlier),
        received("3", "report", later),  # sent behind that effect: another one
        received("4", "ORDER-2", earlier),
        received("5"),
    ]
    assert handle(messages) == [False, False, True, True, True]
    assert handle(messages) == [False] * 5


def test_a_write_only_role_goes_on(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if stores.kind != "dynamodb":
        pytest.skip("a role of AWS")
    store = stores.transactions()

    def refuse(**request: Any) -> None:
        answer: Any = {"Error": {"Code": "AccessDeniedException"}}
        raise ClientError(answer, "GetItem")

    monkeypatch.setattr(stores.transactions()._client, "get_item", refuse)
    assert _one_by_one(store, [received("1"), received("2"), received("1")]) == [True, True, False]
    (line,) = [each.getMessage() for each in caplog.records]
    assert line.startswith("records of earlier releases in cirrusmq_consumed are not looked for")


def test_a_refused_effect_leaves_no_record_beside_one_of_earlier_releases(
    stores: Stores,
) -> None:
    stores.write_former("Msg-1", "shop", time.time())
    once = ExactlyOnce(stores.transactions(), "shop")
    assert once.handle_together(
        [received("1"), received("2")], lambda messages, _: [Retry() for _ in messages]
    ) == [Ack(), Retry()]
    assert _together(stores.transactions(), [received("1"), received("2")]) == [False, True]


def test_a_dropped_message_is_told(handle: Handle, caplog: pytest.LogCaptureFixture) -> None:
    handle([received("1", "order-17")])
    assert not caplog.records
    with caplog.at_level(logging.INFO, "cirrusmq_client"):
        handle([received("2", "order-17")])
    (line,) = [each.getMessage() for each in caplog.records]
    assert line == "Msg-2 (deduplication id order-17) of queue orders had its effect before"


def test_the_service_and_its_consumers_agree(
    client: Client, producer: Producer, new_queue: NewQueue
) -> None:
    """Queues, a receiver and a dead-letter queue, one group for all of them."""
    dead = new_queue()
    names = [new_queue(dead_letter={"queue": dead, "max_receives": 5}) for _ in range(2)]
    client.create_receiver(names[0], "audit", {})
    sources = [Queue(names[0]), Queue(names[1]), Queue(names[0], "audit")]
    engine = create_engine("sqlite://")
    SqlTransactions(engine).create_table()
    handle = partial(_one_by_one, SqlTransactions(engine))
    for name in names:
        for _ in range(2):  # stored once
            producer.send(name, Message("x", deduplication_id="order-17"))

    for source in sources:
        messages = client.receive(source, 16, wait_seconds=5)
        assert handle(messages) == [True]
        assert [message.source for message in messages] == [str(source)]
        # Its delete is lost: somebody gives it up.
        client.dead_letter(source, [message.receipt for message in messages])
    letters: list[Received] = []
    while more := client.receive(dead, 16, wait_seconds=1):
        letters += more
    assert len(letters) == 3
    assert handle(letters) == [False] * 3


def _single(message: Received, connection: Any) -> None: ...
def _text(message: "Received", connection: Any) -> None: ...  # noqa: UP037
def _bare(message, connection): ...  # type: ignore[no-untyped-def]
def _lists(message: list[Received], connection: Any) -> None: ...
def _any(messages: Any, connection: Any) -> None: ...
def _sequence(message: Sequence[Received], connection: Any) -> None: ...


@pytest.mark.parametrize("handler", [_single, _text, _bare, lambda message, connection: None])
def test_with_each_a_handler_of_single_messages_is_refused(handler: Any) -> None:
    with pytest.raises(TypeError, match="gives the handler lists of one message: message"):
        ExactlyOnce(SqlTransactions(create_engine("sqlite://")), "shop", each=True)(handler)
    ExactlyOnce(SqlTransactions(create_engine("sqlite://")), "shop")(handler)


@pytest.mark.parametrize("handler", [_lists, _any, _sequence, lambda m, connection: None])
def test_a_handler_of_lists_is_taken(handler: Any) -> None:
    engine = create_engine("sqlite://")
    SqlTransactions(engine).create_table()
    each: Any = ExactlyOnce(SqlTransactions(engine), "shop", each=True)(handler)
    assert each([received("1")]) == [None]


def test_with_each_a_consumer_without_batches_gives_lists_too() -> None:
    engine = create_engine("sqlite://")
    SqlTransactions(engine).create_table()
    seen: list[list[Received]] = []

    def handle(messages: list[Received], connection: Any) -> None:
        seen.append(messages)

    each: Any = ExactlyOnce(SqlTransactions(engine), "shop", each=True)(handle)
    message = received("1")
    assert each(message) is None
    assert seen == [[message]]
