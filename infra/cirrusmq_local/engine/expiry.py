"""Time to live: items whose time is over are removed, free of charge."""

from __future__ import annotations

from functools import partial

from cirrusmq_local.engine.changes import forget_changes
from cirrusmq_local.engine.core import Core
from cirrusmq_local.engine.schema import Table
from cirrusmq_local.engine.store import Transaction
from cirrusmq_local.engine.writes import Outcome, Write, do

# DynamoDB leaves older times alone: they are taken for a mistake.
OLDEST_EXPIRY_SECONDS = 5 * 365 * 24 * 60 * 60


def remove_expired(core: Core, limit: int) -> int:
    """Remove up to `limit` items whose expiry is before now; how many were removed.

    Changes that no reader or export can ask for any more are deleted, too.
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
