"""pgqueuer: a message is a job; its worker listens, and takes jobs whose worker is silent.

The connection is asyncpg's, which its manual has first. Its driver for psycopg holds the
connection's lock for up to a second while it listens, and statements wait: only a notice ends that
early, and a retry makes none.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any

from ...rivals.postgres import Cluster
from .. import QUEUE, Peer, Place, Terms
from ..program import durable_cluster, package

BATCH = 10
"""Jobs of one fetch, and completions of one write: the library's default."""
MAX_PICKED = 2 * BATCH
"""Jobs that one worker has picked: the fewest that the library allows. By default all there are."""


class Jobs:
    """One connection, with its own event loop of the kind that `pgq run` uses."""

    def __init__(self, place: Place, terms: Terms) -> None:
        self._library: Any = package("pgqueuer")
        self._url = f"postgresql://test@127.0.0.1:{place.port}/postgres"
        self._terms = terms
        self._handle: Callable[[str], bool] = lambda body: True
        self._one = asyncio.Lock()
        self._runner = asyncio.Runner(loop_factory=package("uvloop").new_event_loop)
        self._connection: Any = self._runner.run(self._connect())
        self._driver = package("pgqueuer.db").AsyncpgDriver(self._connection)
        self._queries = self._library.Queries(self._driver)

    def install(self) -> None:
        """Makes the tables."""
        self._run(self._queries.install())

    def send(self, body: str) -> None:
        """Enqueues a job."""
        self._run(self._queries.enqueue(QUEUE, body.encode()))

    def work(self, handle: Callable[[str], bool]) -> None:
        """Runs the library's worker."""
        self._handle = handle
        self._run(self._work())

    def hold(self, count: int, wait: Callable[[], None]) -> list[str]:
        """Picks jobs in one call."""
        return self._runner.run(self._hold(count, wait))

    def close(self) -> None:
        """Ends the connection and the loop."""
        self._connection.terminate()
        self._runner.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> None:
        self._runner.run(work)

    async def _connect(self) -> Any:
        return await package("asyncpg").connect(self._url, timeout=10)

    async def _take(self, job: Any) -> None:
        # In a thread, as its manual has it: the loop can store earlier completions beside it.
        async with self._one:
            handled = await asyncio.to_thread(self._handle, _body(job))
        if not handled:
            delay = timedelta(seconds=self._terms.retry_seconds)
            raise self._library.RetryRequested(delay=delay)

    async def _work(self) -> None:
        worker = self._library.PgQueuer(self._driver)
        worker.entrypoint(QUEUE)(self._take)
        await worker.run(
            batch_size=BATCH,
            max_concurrent_tasks=MAX_PICKED,
            dequeue_timeout=timedelta(seconds=1),
            heartbeat_timeout=timedelta(seconds=self._terms.lease_seconds),
            shutdown_on_listener_failure=True,
        )

    async def _hold(self, count: int, wait: Callable[[], None]) -> list[str]:
        no_limit = package("pgqueuer.ports.repository").EntrypointExecutionParameter(0)
        held = await self._queries.dequeue(
            batch_size=count,
            entrypoints={QUEUE: no_limit},
            queue_manager_id=uuid.uuid4(),
            global_concurrency_limit=None,
            heartbeat_timeout=timedelta(seconds=self._terms.lease_seconds),
        )
        wait()
        await self._queries.log_jobs([(job, "successful", None) for job in held])
        return [_body(job) for job in held]


def _body(job: Any) -> str:
    return bytes(job.payload).decode()


def _server(folder: Path) -> Cluster:
    package("pgqueuer")
    package("asyncpg")
    return durable_cluster(folder)


def _create(place: Place, terms: Terms) -> None:
    jobs = Jobs(place, terms)
    jobs.install()
    jobs.close()


PEER = Peer(
    name="pgqueuer",
    durable="PostgreSQL, fsync before each answer",
    server=_server,
    create=_create,
    client=Jobs,
)
