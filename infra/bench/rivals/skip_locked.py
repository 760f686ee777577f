"""A queue in a PostgreSQL table: a lease column and FOR UPDATE SKIP LOCKED."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence

import psycopg

from . import NotInstalled, Service
from .postgres import find_programs, run_postgres

POLL_SECONDS = 0.02
_CREATE = """
CREATE TABLE {queue} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    visible_at timestamptz NOT NULL DEFAULT now(),
    receives int NOT NULL DEFAULT 0,
    body text NOT NULL
);
CREATE INDEX ON {queue} (visible_at)
"""
_SEND = "INSERT INTO {queue} (body) SELECT unnest(%s::text[])"
_RECEIVE = """
UPDATE {queue} SET visible_at = now() + interval '30 seconds', receives = receives + 1
WHERE id IN (
    SELECT id FROM {queue} WHERE visible_at <= now() ORDER BY visible_at LIMIT %s
    FOR UPDATE SKIP LOCKED
)
RETURNING id, body
"""
_DELETE = "DELETE FROM {queue} WHERE id = ANY(%s)"


class SqlQueue:
    """A queue in one table; each call is one transaction."""

    def __init__(self, url: str, name: str) -> None:
        self._name = name
        self._connection = psycopg.connect(url, autocommit=True)

    def create(self) -> None:
        """Makes the table."""
        self._connection.execute(self._for_queue(_CREATE))

    def send(self, bodies: Sequence[str]) -> None:
        """Makes one INSERT, without NOTIFY, which takes a lock that all commits share."""
        self._connection.execute(self._for_queue(_SEND), [list(bodies)])

    def take(self, limit: int) -> int:
        """Makes one UPDATE for the lease, and one DELETE."""
        held = self._receive(limit)
        self._delete(held)
        return len(held)

    def consume(self, count: int, handle: Callable[[str], None]) -> None:
        """Polls again and again."""
        while count:
            held = self._receive(1)
            for _, body in held:
                handle(body)
                count -= 1
            self._delete(held)
            if not held:
                time.sleep(POLL_SECONDS)

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def _receive(self, limit: int) -> list[tuple[int, str]]:
        return self._connection.execute(self._for_queue(_RECEIVE), [limit]).fetchall()

    def _delete(self, held: Sequence[tuple[int, str]]) -> None:
        if held:
            ids = [message_id for message_id, _ in held]
            self._connection.execute(self._for_queue(_DELETE), [ids])

    def _for_queue(self, statement: str) -> bytes:
        return statement.format(queue=self._name).encode()


@contextlib.contextmanager
def durable_postgres() -> Iterator[str]:
    """Yields the URL of a server that answers a commit when it is on disk."""
    programs = find_programs()
    if programs is None:
        raise NotInstalled("PostgreSQL (Debian: postgresql)")
    with run_postgres(programs, durable=True) as url:
        yield url


def analyze(url: str) -> None:
    """Updates statistics, as autovacuum would later: the plans depend on them."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")


SERVICE = Service(
    name="SKIP LOCKED",
    send_batch=16,
    take_batch=16,
    running=durable_postgres,
    queue=SqlQueue,
    settle=analyze,
)
