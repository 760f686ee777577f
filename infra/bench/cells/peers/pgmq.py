"""pgmq, whose functions in SQL its client's package has, by psycopg."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from ...rivals.postgres import Cluster
from .. import QUEUE, Peer, Place, Terms
from ..program import durable_cluster, package

POLL_SECONDS = 0.02


def _url(port: int) -> str:
    return f"postgresql://test@127.0.0.1:{port}/postgres"


class Queue:
    """One connection; each call is one transaction."""

    def __init__(self, place: Place, terms: Terms) -> None:
        self._url, self._terms = _url(place.port), terms
        self._connection = psycopg.connect(self._url, autocommit=True, connect_timeout=10)

    def send(self, body: str) -> None:
        """Makes one send."""
        self._call("SELECT pgmq.send(%s, %s::jsonb)", QUEUE, json.dumps({"body": body}))

    def work(self, handle: Callable[[str], bool]) -> None:
        """Polls again and again."""
        while True:
            found = self._read(1)
            for message_id, body in found:
                if handle(body):
                    self._call("SELECT pgmq.delete(%s, %s::bigint)", QUEUE, message_id)
                else:
                    wait = self._terms.retry_seconds
                    self._call(
                        "SELECT pgmq.set_vt(%s, %s::bigint, %s::int)", QUEUE, message_id, wait
                    )
            if not found:
                time.sleep(POLL_SECONDS)

    def hold(self, count: int, wait: Callable[[], None]) -> list[str]:
        """Reads in one call, and keeps a transaction open that sees the table."""
        held = self._read(count)
        with psycopg.connect(self._url) as idle:
            idle.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            idle.execute("SELECT count(*) FROM pgmq.q_cells")
            wait()
        for message_id, _ in held:
            self._call("SELECT pgmq.delete(%s, %s::bigint)", QUEUE, message_id)
        return [body for _, body in held]

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def _read(self, count: int) -> list[tuple[int, str]]:
        lease = self._terms.lease_seconds
        asked = "SELECT msg_id, message->>'body' FROM pgmq.read(%s, %s::int, %s::int)"
        return self._connection.execute(asked, (QUEUE, lease, count)).fetchall()

    def _call(self, statement: str, *given: object) -> None:
        self._connection.execute(statement.encode(), given)


def _functions() -> Path:
    return Path(str(package("pgmq").__file__)).parent / "sql" / "pgmq.sql"


def _server(folder: Path) -> Cluster:
    _functions()
    return durable_cluster(folder)


def _create(place: Place, terms: Terms) -> None:
    with psycopg.connect(_url(place.port), autocommit=True) as connection:
        connection.execute(_functions().read_bytes())
        connection.execute("SELECT pgmq.create(%s)", [QUEUE])


PEER = Peer(
    name="pgmq",
    durable="PostgreSQL, fsync before each answer",
    server=_server,
    create=_create,
    client=Queue,
)
