"""A queue of procrastinate, a library for jobs on PostgreSQL: a message is a job.

A send defers jobs. A take makes its worker's calls for each job: fetch, then finish and delete; it
fetches jobs one by one. Its own worker waits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence

from procrastinate import App, PsycopgConnector
from procrastinate.jobs import DeleteJobCondition, Status
from procrastinate.types import JSONValue

from . import Service
from .skip_locked import analyze, durable_postgres

TASK = "take"


class ProcrastinateQueue:
    """A queue over one connection, with its own event loop."""

    def __init__(self, url: str, name: str) -> None:
        self._name = name
        self._app = App(connector=PsycopgConnector(conninfo=url, min_size=1, max_size=2))
        self._handle: Callable[[str], None] = lambda body: None
        self._app.task(name=TASK, queue=name)(self._run)
        self._runner = asyncio.Runner()
        self._runner.run(self._open())
        self._jobs = self._app.job_manager
        self._worker: int | None = None

    def create(self) -> None:
        """Does nothing: queues need not be made."""

    def send(self, bodies: Sequence[str]) -> None:
        """Defers all messages in one statement."""
        task = self._app.tasks[TASK]
        jobs: list[dict[str, JSONValue]] = [{"body": body} for body in bodies]
        self._runner.run(task.batch_defer_async(*jobs))

    def take(self, limit: int) -> int:
        """Takes one job."""
        return self._runner.run(self._take())

    def consume(self, count: int, handle: Callable[[str], None]) -> None:
        """Runs the library's worker, which listens."""
        self._runner.run(self._work(count, handle))

    def close(self) -> None:
        """Ends the connections and the loop."""
        self._runner.run(self._app.close_async())
        self._runner.close()

    async def _open(self) -> None:
        await self._app.open_async()

    async def _take(self) -> int:
        if self._worker is None:
            self._worker = await self._jobs.register_worker()
        job = await self._jobs.fetch_job([self._name], self._worker)
        if job is None:
            return 0
        await self._jobs.finish_job(job, Status.SUCCEEDED, delete_job=True)
        return 1

    async def _work(self, count: int, handle: Callable[[str], None]) -> None:
        done = asyncio.Event()
        left = [count]

        def count_down(body: str) -> None:
            handle(body)
            left[0] -= 1
            if not left[0]:
                done.set()

        self._handle = count_down
        working = asyncio.create_task(
            self._app.run_worker_async(
                queues=[self._name],
                install_signal_handlers=False,
                delete_jobs=DeleteJobCondition.ALWAYS,
            )
        )
        await done.wait()
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working

    async def _run(self, body: str) -> None:
        self._handle(body)


@contextlib.contextmanager
def _with_schema() -> Iterator[str]:
    with durable_postgres() as url:
        app = App(connector=PsycopgConnector(conninfo=url))

        async def apply() -> None:
            async with app.open_async():
                await app.schema_manager.apply_schema_async()

        asyncio.run(apply())
        yield url


SERVICE = Service(
    name="procrastinate",
    send_batch=16,
    take_batch=1,
    running=_with_schema,
    queue=ProcrastinateQueue,
    settle=analyze,
)
