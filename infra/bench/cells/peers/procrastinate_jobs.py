"""procrastinate: a message is a job; its worker listens, and looks for jobs of dead workers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from procrastinate import App, PsycopgConnector, RetryStrategy
from procrastinate.jobs import DeleteJobCondition, Job, Status

from .. import QUEUE, Peer, Place, Terms
from ..program import durable_cluster

TASK = "take"


class Failed(Exception):
    """An attempt of a handler failed."""


class Jobs:
    """An app over one or two connections, with its own event loop."""

    def __init__(self, place: Place, terms: Terms) -> None:
        url = f"postgresql://test@127.0.0.1:{place.port}/postgres"
        self._terms = terms
        self._app = App(connector=PsycopgConnector(conninfo=url, min_size=1, max_size=2))
        self._handle: Callable[[str], bool] = lambda body: True
        again = RetryStrategy(max_attempts=20, wait=terms.retry_seconds)
        self._app.task(name=TASK, queue=QUEUE, retry=again)(self._run)
        self._runner = asyncio.Runner()
        self._runner.run(self._open())

    def send(self, body: str) -> None:
        """Defers a job."""
        self._runner.run(self._app.tasks[TASK].defer_async(body=body))

    def work(self, handle: Callable[[str], bool]) -> None:
        """Runs the library's worker, beside what its manual has for stalled jobs."""
        self._handle = handle
        self._runner.run(self._work())

    def hold(self, count: int, wait: Callable[[], None]) -> list[str]:
        """Fetches jobs one by one."""
        return self._runner.run(self._hold(count, wait))

    def close(self) -> None:
        """Ends the connections and the loop."""
        self._runner.run(self._app.close_async())
        self._runner.close()

    async def _open(self) -> None:
        await self._app.open_async()

    async def _run(self, body: str) -> None:
        if not self._handle(body):
            raise Failed

    async def _work(self) -> None:
        rescuing = asyncio.create_task(self._rescue())
        try:
            await self._app.run_worker_async(
                queues=[QUEUE],
                install_signal_handlers=False,
                delete_jobs=DeleteJobCondition.SUCCESSFUL,
                fetch_job_polling_interval=1,
                update_heartbeat_interval=self._terms.lease_seconds / 3,
                stalled_worker_timeout=self._terms.lease_seconds,
            )
        finally:
            rescuing.cancel()

    async def _rescue(self) -> None:
        jobs = self._app.job_manager
        while True:
            await asyncio.sleep(1)
            with contextlib.suppress(Exception):
                since = self._terms.lease_seconds
                for job in await jobs.get_stalled_jobs(seconds_since_heartbeat=since):
                    await jobs.retry_job(job)

    async def _hold(self, count: int, wait: Callable[[], None]) -> list[str]:
        jobs = self._app.job_manager
        worker = await jobs.register_worker()
        held: list[Job] = []
        while len(held) < count:
            job = await jobs.fetch_job([QUEUE], worker)
            held += [] if job is None else [job]
        wait()
        for job in held:
            await jobs.finish_job(job, Status.SUCCEEDED, delete_job=True)
        return [str(job.task_kwargs["body"]) for job in held]


def _create(place: Place, terms: Terms) -> None:
    jobs = Jobs(place, terms)
    jobs._runner.run(jobs._app.schema_manager.apply_schema_async())
    jobs.close()


PEER = Peer(
    name="procrastinate",
    durable="PostgreSQL, fsync before each answer",
    server=durable_cluster,
    create=_create,
    client=Jobs,
)
