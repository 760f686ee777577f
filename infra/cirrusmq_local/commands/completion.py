"""Completes names in a shell from the service; no names if it does not answer at once."""

from __future__ import annotations

from typing import Any

import httpx
import typer

from cirrusmq_client import CirrusMQError, find_connection
from cirrusmq_client.connection import DATA
from cirrusmq_client.sources import part, queue_path, topic_path

SECONDS = 1.0
"""Timeout of each step: a shell that hangs is worse than a shell that completes nothing."""
NAMES = 100


def queues(context: typer.Context, incomplete: str) -> list[str]:
    """Names of queues."""
    return _names(context, "/queues", "queues", incomplete)


def topics(context: typer.Context, incomplete: str) -> list[str]:
    """Names of topics."""
    return _names(context, "/topics", "topics", incomplete)


def subscriptions(context: typer.Context, incomplete: str) -> list[str]:
    """Names of subscriptions of the topic that the command names."""
    topic = context.params.get("topic") or context.params.get("name")
    if not topic:
        return []
    return _names(context, f"{topic_path(topic)}/subscriptions", "subscriptions", incomplete)


def receivers(context: typer.Context, incomplete: str) -> list[str]:
    """Names of independent receivers of the queue that the command names."""
    queue = context.params.get("source") or context.params.get("name")
    if not queue or "/" in queue:
        return []
    return _names(context, f"{queue_path(queue)}/receivers", "receivers", incomplete)


def sources(context: typer.Context, incomplete: str) -> list[str]:
    """Names of queues, and of topics with a slash; after a slash, names of the topic's groups."""
    topic, slash, begun = incomplete.partition("/")
    if slash:
        path = f"{topic_path(topic)}/subscriptions"
        return [f"{topic}/{name}" for name in _names(context, path, "subscriptions", begun)]
    return queues(context, incomplete) + [f"{name}/" for name in topics(context, incomplete)]


def logs(context: typer.Context, incomplete: str) -> list[str]:
    """Names as from `sources`, and names of topics without a slash."""
    found = sources(context, incomplete)
    return sorted({*found, *(name.removesuffix("/") for name in found)})


def keys(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of access keys."""
    return _names(context, "/keys", "keys", incomplete, "access_key_id")


def accounts(context: typer.Context, incomplete: str) -> list[str]:
    """Accounts that have a grant on the queue or topic that the command names."""
    name = context.params.get("name")
    group = context.parent.info_name if context.parent else None
    if not name or group not in ("queue", "topic"):
        return []
    return _names(context, f"/{group}s/{part(name)}/grants", "grants", incomplete, "account")


def _names(
    context: typer.Context, path: str, entries: str, begun: str, field: str = "name"
) -> list[str]:
    """Return a page of names with this prefix. Hides errors, because the user is typing."""
    try:
        connection = find_connection(context.params.get("data") or DATA)
        answer = httpx.get(
            connection.url.rstrip("/") + path,
            params={"limit": NAMES, **({"prefix": begun} if begun else {})},
            headers={"authorization": connection.authorization},
            timeout=SECONDS,
            trust_env=False,
        )
        answer.raise_for_status()
        found: list[dict[str, Any]] = answer.json()[entries]
        return [name for name in (str(each[field]) for each in found) if name.startswith(begun)]
    except (CirrusMQError, httpx.HTTPError, httpx.InvalidURL, ValueError, LookupError, TypeError):
        return []
