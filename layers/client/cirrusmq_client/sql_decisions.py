"""Local transactions in a relational database, by SQLAlchemy, with a record of each handle."""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    MetaData,
    String,
    Table,
    select,
)
from sqlalchemy.exc import IntegrityError

from cirrusmq_client.sql_transactions import SqlRecords
from cirrusmq_client.transactions import TakenOver

DECIDED = Table(
    "cirrusmq_transactions",
    MetaData(),
    Column("handle", String(64), primary_key=True),
    Column("took_place", Boolean, nullable=False),
    Column("decided_at", BigInteger, nullable=False, index=True),
)
"""`decided_at` is in seconds since the epoch."""
KEEP_SECONDS = 259_200
"""Life of a record; a handle can be decided for a day, and is not asked for later."""


class SqlDecisions(SqlRecords):
    """Keeps records in the table `cirrusmq_transactions`; `work` gets a transaction's connection.

    The record is written first, under a unique key. A check that writes the same record waits until
    the local transaction has ended. Then it finds the record, or writes it first, so that the
    transaction can never commit.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, DECIDED, DECIDED.c.decided_at, KEEP_SECONDS)

    def run(self, handle: str, work: Callable[[Connection], object]) -> object:
        """Does the work and records the handle in one transaction; see `LocalTransactions`."""
        with self._engine.begin() as connection:
            try:
                connection.execute(DECIDED.insert().values(_record(handle, took_place=True)))
            except IntegrityError as error:
                raise TakenOver(handle) from error
            result = work(connection)
        self._clean()
        return result

    def took_place(self, handle: str) -> bool:
        """Returns True if the handle's transaction took place; if not, it never will."""
        try:
            with self._engine.begin() as connection:
                connection.execute(DECIDED.insert().values(_record(handle, took_place=False)))
        except IntegrityError:
            wanted = select(DECIDED.c.took_place).where(DECIDED.c.handle == handle)
            with self._engine.connect() as connection:
                return bool(connection.execute(wanted).scalar_one())
        return False


def _record(handle: str, *, took_place: bool) -> dict[str, object]:
    return {"handle": handle, "took_place": took_place, "decided_at": int(time.time())}
