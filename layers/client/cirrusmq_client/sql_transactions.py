"""Exactly-once effects in a relational database, by SQLAlchemy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    MetaData,
    String,
    Table,
    delete,
    select,
)
from sqlalchemy.exc import IntegrityError

from cirrusmq_client.effect_keys import EffectKey, former_names
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
"""`message` is the name of the record, by `effect_keys`: a digest, so that in every collation only
equal names are equal. `consumed_at` is in seconds since the epoch.

Earlier releases named records by the deduplication id or the id.
"""


TIDY_SECONDS = 3_600.0


class SqlRecords:
    """Records in one table, whose column `written_at` has seconds since the epoch."""

    def __init__(
        self, engine: Engine, table: Table, written_at: Column[int], keep_seconds: int
    ) -> None:
        self._engine, self._table, self._written_at = engine, table, written_at
        self._keep_seconds = keep_seconds
        self._tidy_at = time.monotonic() + TIDY_SECONDS
        self._lock = threading.Lock()

    def create_table(self) -> None:
        """Creates the table if it does not exist."""
        self._table.metadata.create_all(self._engine)

    def remove_old(self) -> int:
        """Removes records after `keep_seconds`. Returns their number. Runs hourly automatically."""
        before = int(time.time()) - self._keep_seconds
        old = delete(self._table).where(self._written_at < before)
        with self._engine.begin() as connection:
            return connection.execute(old).rowcount

    def _clean(self) -> None:
        with self._lock:
            if time.monotonic() < self._tidy_at:
                return
            self._tidy_at = time.monotonic() + TIDY_SECONDS
        self.remove_old()


class SqlTransactions(SqlRecords):
    """Keeps records in the table `cirrusmq_consumed`; handlers get the transaction's connection.

    The record is written first: a second consumer of the same message waits at the unique key
    until the first one has committed, and then finds the record.

    `keep_seconds`: life of a record, at least the longest time over which a message may be
    delivered again.
    """

    def __init__(self, engine: Engine, keep_seconds: int = KEEP_SECONDS) -> None:
        keep_seconds = check_keep_seconds(keep_seconds)
        super().__init__(engine, CONSUMED, CONSUMED.c.consumed_at, keep_seconds)

    def run(self, key: str, group: str, work: Callable[[Connection], object]) -> object:
        """Does the work and writes the record in one transaction; see `Transactions`."""
        return self._run([key], group, work)

    def run_together(
        self,
        keys: Sequence[str],
        group: str,
        work: Callable[[frozenset[str], Connection], object],
    ) -> object:
        """Does the work and writes the records in one transaction; see `Transactions`.

        two batches share a message   records written, waits at the key ── refused: rolled back
                                      the other's are read, and left out ── records, work, commit
        """
        new = frozenset(keys)
        while True:
            try:
                # Always in the same order, so that no two batches wait for each other.
                return self._run(sorted(new), group, partial(work, new))
            except AlreadyConsumed as refused:
                names = {key: [key] for key in new} | former_names(new)
                with self._engine.connect() as connection:
                    known = self._known(connection, names, group)
                if not known and refused.__cause__ is not None:
                    raise refused.__cause__ from None  # another fault of a record
                new -= known
                if not new:
                    raise

    def _run(self, keys: Sequence[str], group: str, work: Callable[[Connection], object]) -> object:
        now = int(time.time())
        records = [{"message": key, "consumer_group": group, "consumed_at": now} for key in keys]
        with self._engine.connect() as connection, connection.begin() as transaction:
            try:
                connection.execute(CONSUMED.insert(), records)
            except IntegrityError as error:
                transaction.rollback()
                raise AlreadyConsumed from error
            # After the insert: a read before it would fix the snapshot that the handler sees, while
            # another consumer of the message may still write.
            if self._known(connection, former_names(keys), group):
                raise AlreadyConsumed
            result = work(connection)
            if writes_nothing(result):
                transaction.rollback()
        self._clean()
        return result

    def _known(
        self, connection: Connection, names: Mapping[str, Sequence[str]], group: str
    ) -> frozenset[str]:
        """Returns the keys with a record under one of their names."""
        if not names:
            return frozenset()
        wanted = CONSUMED.c.message.in_(sorted(names)) & (CONSUMED.c.consumer_group == group)
        found = connection.execute(select(CONSUMED.c.message, CONSUMED.c.consumed_at).where(wanted))
        return frozenset(
            key
            for name, consumed_at in found
            for key in names.get(name, ())  # none if the text differs by its case
            if key == name or (isinstance(key, EffectKey) and key.is_of(name, consumed_at))
        )
