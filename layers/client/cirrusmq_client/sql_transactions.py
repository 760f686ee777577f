"""Exactly-once effects in a relational database, by SQLAlchemy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sqlalchemy import BigInteger, Column, Connection, Engine, MetaData, String, Table, delete
from sqlalchemy.exc import IntegrityError

from cirrusmq_client.exactly_once import (
    KEEP_SECONDS,
    AlreadyConsumed,
    check_keep_seconds,
    writes_nothing,
)

CONSUMED = Table(
    "cirrusmq_consumed",
    MetaData(),
    Column("message", String(255), primary_key=True),
    Column("consumer_group", String(255), primary_key=True),
    Column("consumed_at", BigInteger, nullable=False, index=True),
)
"""`message` is the deduplication id or the id; `consumed_at` is in seconds since the epoch."""

TIDY_SECONDS = 3_600.0


class SqlTransactions:
    """Records in the table `cirrusmq_consumed`; handlers get the transaction's connection.

    The record is written first: a second consumer of the same message waits at the unique key
    until the first one has committed, and then finds the record. `keep_seconds` must not be below
    the longest time over which a message may be delivered again.
    """

    def __init__(self, engine: Engine, keep_seconds: int = KEEP_SECONDS) -> None:
        self._engine = engine
        self._keep_seconds = check_keep_seconds(keep_seconds)
        self._tidy_at = time.monotonic() + TIDY_SECONDS
        self._lock = threading.Lock()

    def create_table(self) -> None:
        """Make the table where it is not there."""
        CONSUMED.metadata.create_all(self._engine)

    def run(self, key: str, group: str, work: Callable[[Connection], object]) -> object:
        """Do the work and write the record in one transaction; see `Transactions`."""
        record = {"message": key, "consumer_group": group, "consumed_at": int(time.time())}
        with self._engine.connect() as connection, connection.begin() as transaction:
            try:
                connection.execute(CONSUMED.insert().values(record))
            except IntegrityError as error:
                transaction.rollback()
                raise AlreadyConsumed from error
            result = work(connection)
            if writes_nothing(result):
                transaction.rollback()
        self._tidy()
        return result

    def remove_old(self) -> int:
        """Remove records older than `keep_seconds`; how many. Done once an hour by itself."""
        before = int(time.time()) - self._keep_seconds
        with self._engine.begin() as connection:
            return connection.execute(
                delete(CONSUMED).where(CONSUMED.c.consumed_at < before)
            ).rowcount

    def _tidy(self) -> None:
        with self._lock:
            if time.monotonic() < self._tidy_at:
                return
            self._tidy_at = time.monotonic() + TIDY_SECONDS
        self.remove_old()
