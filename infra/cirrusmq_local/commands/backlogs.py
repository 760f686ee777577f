"""Backlogs for a listing of queues, which has no counts itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cirrusmq_client import Client
from cirrusmq_client.errors import QueueNotFound
from cirrusmq_local.commands.console import tell

MAX = 100
"""Maximum number of queues with counts: each count is a call, which may read 40 units."""
_AT_ONCE = 8
_COUNTED = ("name", "active", "inactive", "delayed", "oldest_active_age_seconds")


def with_counts(client: Client, queues: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the queues, the first ones with `counts`. A queue that was just deleted has none."""

    def ask(queue: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return {**client.show_queue(queue["name"])}
        except QueueNotFound:
            return dict(queue)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        counted = list(pool.map(ask, queues[:MAX]))
    if len(queues) > MAX:
        tell(f"counts of the first {MAX} of {len(queues)} queues: choose others by --prefix")
    return counted + [dict(queue) for queue in queues[MAX:]]


def counted_columns(rows: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """Columns of a listing with counts; with `approximate` if some counts are approximate."""
    approximate = any(row.get("approximate") for row in rows)
    return (*_COUNTED, "approximate") if approximate else _COUNTED
