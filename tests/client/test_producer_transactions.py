"""Publishes that take place together with a local transaction, or not at all."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, create_engine, text
from tests.awaited import Awaited, Loop
from tests.client.conftest import Service, Wait
from tests.client.taking import unused

from cirrusmq_client import (
    AsyncClient,
    AsyncProducer,
    CirrusMQError,
    Client,
    Message,
    Producer,
    SqlDecisions,
    Subscription,
    TakenOver,
)
from cirrusmq_client.errors import Conflict, MessageNotFound
from cirrusmq_client.sql_decisions import DECIDED

EXAMPLE = Path(__file__).parent / "examples" / "publish_with_sql.py"


class Shop:
    """A database with orders, and a topic that tells of them."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client = client
        self.topic = unused("t")
        client.create_topic(self.topic)
        client.create_subscription(self.topic, "group", {"protocol": "pull"})
        self.engine: Engine = create_engine(f"sqlite:///{folder / 'shop.db'}")
        self.store = SqlDecisions(self.engine)
        self.store.create_table()
        with self.engine.begin() as connection:
            connection.execute(text("CREATE TABLE orders (what TEXT NOT NULL)"))
        self.told: list[str] = []

    def write(self, what: str | None) -> Callable[[Connection], str]:
        """The work of a transaction; without an order one that fails."""

        def work(connection: Connection) -> str:
            values = {"what": what}
            connection.execute(text("INSERT INTO orders VALUES (:what)"), values)
            return f"wrote {what}"

        return work

    def prepare(self, what: str, group: str = "default") -> str:
        """A half message that a producer left, for a check after a second."""
        return self.client.prepare(self.topic, [Message(what)], group=group, check_after_seconds=1)

    def orders(self) -> list[str]:
        with self.engine.connect() as connection:
            return sorted(connection.execute(text("SELECT what FROM orders")).scalars())

    def published(self) -> list[str]:
        """All that was published so far."""
        source = Subscription(self.topic, "group")
        while some := self.client.receive(source, 16, wait_seconds=1):
            self.told += [message.text for message in some]
            self.client.delete(source, [message.receipt for message in some])
        return sorted(self.told)


@pytest.fixture
def shop(client: Client, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(client, tmp_path)
    yield made
    made.engine.dispose()


@pytest.fixture(params=["blocking", pytest.param("asyncio", marks=pytest.mark.long)])
def transact(
    request: pytest.FixtureRequest, stack: Service, client: Client, shop: Shop, loop: Loop
) -> Iterator[Any]:
    """A transaction of a Producer, and of an AsyncProducer in its place; it checks when asked."""
    terms: dict[str, Any] = {"check": shop.store, "check_after_seconds": 1, "max_checks": 2}
    if request.param == "blocking":
        yield Producer(client).transaction(shop.topic, **terms)
        return
    with Awaited(loop, lambda: AsyncClient(stack.connection)) as own:
        yield Awaited(loop, lambda: AsyncProducer(own.itself).transaction(shop.topic, **terms))


@pytest.mark.parametrize("transact", ["blocking", "asyncio"], indirect=True)
def test_both_take_place(shop: Shop, transact: Any) -> None:
    done = transact.run(["one", Message("two", tags=["t"])], shop.write("both"))

    assert done.result == "wrote both"
    assert [each.matched for each in done.published] == [1, 1]
    assert (shop.orders(), shop.published()) == (["both"], ["one", "two"])


def test_neither_takes_place_if_the_work_fails(shop: Shop, transact: Any) -> None:
    with pytest.raises(Exception, match="NOT NULL"):
        transact.run(["one"], shop.write(None))

    assert (shop.orders(), shop.published()) == ([], [])
    time.sleep(1.1)
    assert transact.check() == 0


def test_a_check_decides_abandoned_transactions(shop: Shop, transact: Any) -> None:
    """It died behind its local transaction, or before it."""
    there = shop.prepare("there")
    shop.store.run(there, shop.write("there"))
    lost = shop.prepare("lost")
    time.sleep(1.1)

    assert transact.check() == 2
    assert (shop.orders(), shop.published()) == (["there"], ["there"])
    with pytest.raises(Conflict):
        shop.client.commit(shop.topic, lost)
    assert len(shop.client.commit(shop.topic, there)) == 1


def test_a_local_transaction_taken_over_by_a_check_does_not_take_place(
    shop: Shop, transact: Any
) -> None:
    handle = shop.prepare("late")
    time.sleep(1.1)
    assert transact.check() == 1

    with pytest.raises(TakenOver):
        shop.store.run(handle, shop.write("late"))
    assert (shop.orders(), shop.published()) == ([], [])


class Slow:
    """A store whose transactions take so long that a check comes first; or whose answer is lost."""

    def __init__(self, store: SqlDecisions, trouble: str) -> None:
        self._store, self._trouble = store, trouble

    def run(self, handle: str, work: Callable[[Connection], object]) -> object:
        if self._trouble == "check first":
            assert not self._store.took_place(handle)
        result = self._store.run(handle, work)
        if self._trouble == "answer lost":
            raise ConnectionError("the database went away")
        return result

    def took_place(self, handle: str) -> bool:
        if self._trouble == "store gone":
            raise ConnectionError("the database is away")
        return self._store.took_place(handle)


@pytest.mark.parametrize(
    ("trouble", "raised", "there"),
    [("check first", TakenOver, False), ("answer lost", None, True)],
)
def test_trouble_in_the_store_leaves_both_or_neither(
    shop: Shop, trouble: str, raised: type[Exception] | None, there: bool
) -> None:
    store: Any = Slow(shop.store, trouble)
    transaction = Producer(shop.client).transaction(shop.topic, check=store)
    if raised is None:
        assert transaction.run(["x"], shop.write("x")).published
    else:
        with pytest.raises(raised):
            transaction.run(["x"], shop.write("x"))

    assert (shop.orders(), shop.published()) == ((["x"], ["x"]) if there else ([], []))


def test_an_error_of_unknown_outcome_is_left_to_a_check(shop: Shop) -> None:
    store: Any = Slow(shop.store, "store gone")
    failing = Producer(shop.client).transaction(shop.topic, check=store, check_after_seconds=1)
    with pytest.raises(Exception, match="NOT NULL"):
        failing.run(["x"], shop.write(None))
    time.sleep(1.1)
    assert failing.check() == 0
    assert shop.published() == []


def test_a_commit_without_an_answer_is_left_to_a_check(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def lost(topic: str, handle: str) -> Any:
        raise CirrusMQError("no answer")

    transaction = Producer(shop.client).transaction(
        shop.topic, check=shop.store, check_after_seconds=1
    )
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(shop.client, "commit", lost)
        assert transaction.run(["x"], shop.write("x")).published is None
    assert "is for a check to commit" in caplog.text
    time.sleep(1.1)
    assert transaction.check() == 1
    assert (shop.orders(), shop.published()) == (["x"], ["x"])


def test_a_late_local_transaction_is_a_conflict(shop: Shop) -> None:
    transaction = Producer(shop.client).transaction(shop.topic, check=shop.store)

    def work(connection: Connection) -> None:
        shop.write("late")(connection)
        handle = connection.execute(DECIDED.select()).mappings().one()["handle"]
        shop.client.roll_back(shop.topic, handle)

    with pytest.raises(Conflict, match="rolled back"):
        transaction.run(["late"], work)
    assert (shop.orders(), shop.published()) == (["late"], [])


def test_while_it_is_open_checks_are_made(shop: Shop, wait_until: Wait) -> None:
    handle = shop.prepare("left")
    shop.store.run(handle, shop.write("left"))
    with Producer(shop.client).transaction(shop.topic, check=shop.store, check_after_seconds=1):
        wait_until(lambda: shop.published() == ["left"])


def test_groups_of_producers_do_not_check_each_other(shop: Shop) -> None:
    handle = shop.prepare("theirs", group="theirs")
    time.sleep(1.1)
    mine = Producer(shop.client).transaction(shop.topic, check=shop.store, group="mine")

    assert mine.check() == 0
    assert shop.client.commit(shop.topic, handle)


def test_messages_are_those_of_one_call(shop: Shop, transact: Any) -> None:
    for bodies in ([], ["x"] * 17):
        with pytest.raises(ValueError, match="one call"):
            transact.run(bodies, shop.write("x"))
    assert shop.orders() == []


def test_old_records_are_removed(shop: Shop) -> None:
    shop.store.run("Half-old", shop.write("x"))
    shop.store.took_place("Half-new")
    with shop.engine.begin() as connection:
        old = DECIDED.update().where(DECIDED.c.handle == "Half-old")
        connection.execute(old.values(decided_at=int(time.time()) - 300_000))

    assert shop.store.remove_old() == 1
    assert not shop.store.took_place("Half-old")


def test_a_handle_of_nothing_is_told(shop: Shop) -> None:
    with pytest.raises(MessageNotFound):
        shop.client.commit(shop.topic, "Half-01M7XGA279E8FYRFWHK8M956SX")


def test_the_example_writes_and_publishes_each_order(
    stack: Service, client: Client, tmp_path: Path
) -> None:
    client.create_topic("orders")
    client.create_subscription("orders", "group", {"protocol": "pull"})
    subprocess.run(
        [sys.executable, EXAMPLE],
        env=os.environ | stack.environment,
        cwd=tmp_path,
        input="milk\ntea\n",
        text=True,
        check=True,
        timeout=120,
    )
    with sqlite3.connect(tmp_path / "orders.db") as connection:
        written = [row[0] for row in connection.execute("SELECT what FROM orders")]
    source = Subscription("orders", "group")
    received = [each.text for each in client.receive(source, 16, wait_seconds=20)]
    while len(received) < 2:
        received += [each.text for each in client.receive(source, 16, wait_seconds=20)]

    assert sorted(received) == sorted(written) == ["milk", "tea"]
    client.delete_topic("orders")
