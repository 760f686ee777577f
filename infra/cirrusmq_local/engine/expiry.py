"""Time to live: removes expired items, free of charge."""

from __future__ import annotations

from functools import partial

from cirrusmq_local.engine.changes import forget_changes
from cirrusmq_local.engine.core import Core
from cirrusmq_local.engine.schema import Table
from cirrusmq_local.engine.store import Transaction
from cirrusmq_local.engine.writes import Outcome, Write, do

# DynamoDB does not expire items by older times: it takes them for a mistake.
OLDEST_EXPIRY_SECONDS = 5 * 365 * 24 * 60 * 60


def remove_expired(core: Core, limit: int) -> int:
    """Removes up to `limit` items whose expiry is before now. Returns their number.

    Deletes changes that no reader or export needs any more, too.
    """
    removed = 0
    for table in core.tables.values():
        removed += core.store.write(partial(_remove, table, limit - removed))
    return removed


def _remove(table: Table, limit: int, transaction: Transaction) -> int:
    forget_changes(transaction, table)
    now_seconds = transaction.now_ms // 1000
    rows = transaction.connection.execute(
        f"SELECT pk, sk, item FROM {table.items} WHERE expires < ? AND expires > ? "
        "ORDER BY expires LIMIT ?",
        (now_seconds, now_seconds - OLDEST_EXPIRY_SECONDS, limit),
    ).fetchall()
    for pk, sk, item in rows:
        write = Write(table, (pk, sk), lambda old: None, None, {})
        do(transaction, Outcome(write, item, None, 0.0), by_service=True)
    return len(rows)
