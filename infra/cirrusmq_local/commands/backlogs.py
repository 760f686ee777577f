"""Counts of the queues in a listing, which has none itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cirrusmq_client import Client
from cirrusmq_client.errors import QueueNotFound
from cirrusmq_local.commands.console import tell

MAX = 100
"""A count is a call that may read 40 units."""
_AT_ONCE = 8
_COUNTED = ("name", "active", "inactive", "delayed", "oldest_active_age_seconds")


def with_counts(client: Client, queues: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The queues, the first of them with `counts`; one that is deleted meanwhile has none."""

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
    """The columns of a listing with counts; `approximate` if some of the counts are."""
    approximate = any(row.get("approximate") for row in rows)
    return (*_COUNTED, "approximate") if approximate else _COUNTED
