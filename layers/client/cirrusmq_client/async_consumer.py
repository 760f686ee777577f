"""`AsyncConsumer`: a handler for the messages of a source, for asyncio."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any, Self, Unpack, overload

from cirrusmq_client.async_client import AsyncClient
from cirrusmq_client.consumer import make_mode, seek
from cirrusmq_client.errors import CirrusMQError
from cirrusmq_client.handling import AsyncBatchHandler, AsyncHandler, Raised, check_handler
from cirrusmq_client.options import Batches, ConsumerOptions, Options
from cirrusmq_client.progress import Progress
from cirrusmq_client.results import Ack, Retry
from cirrusmq_client.signals import stop_on_signals
from cirrusmq_client.sources import Source
from cirrusmq_client.tasks import TASKS


class AsyncConsumer:
    """`Consumer` for asyncio: handlers are coroutine functions, in tasks of one event loop.

        async def handle(message):
            print(message.text)

        async with AsyncClient() as client:
            await AsyncConsumer("orders", handle, client=client).run()

    Results, sources and options are the same as for `Consumer`, with tasks instead of threads:
    `workers` is the number of handlers that run in parallel. Progress of broadcasting is saved in
    the loop's thread.

    A cancellation ends it as `stop` does: unstarted messages are given back, handlers end within
    the grace time, and their results are settled; then the cancellation continues. A second
    cancellation ends the grace time. Handlers that still run at its end are cancelled, and their
    messages given back.
    """

    @overload
    def __init__(
        self,
        source: str | Source,
        handler: AsyncHandler,
        *,
        client: AsyncClient,
        batches: None = None,
        broadcasting: Progress | None = None,
        none_means_retry: bool = False,
        **options: Unpack[ConsumerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        source: str | Source,
        handler: AsyncBatchHandler,
        *,
        client: AsyncClient,
        batches: Batches,
        broadcasting: Progress | None = None,
        none_means_retry: bool = False,
        **options: Unpack[ConsumerOptions],
    ) -> None: ...

    def __init__(
        self,
        source: str | Source,
        handler: Callable[[Any], object],
        *,
        client: AsyncClient,
        batches: Batches | None = None,
        broadcasting: Progress | None = None,
        none_means_retry: bool = False,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        check_handler(handler, awaited=True)
        chosen = Options(batches=batches, **options)
        none = Retry() if none_means_retry else Ack()
        self.client = client
        self._mode = make_mode(
            *(client, source, handler, none, chosen, broadcasting, TASKS), _attempt
        )

    async def run(self) -> None:
        """Consumes until SIGTERM, Ctrl-C, `stop` or a cancellation; then ends as `join` does."""
        loop = asyncio.get_running_loop()

        def stop() -> None:
            loop.call_soon_threadsafe(self.stop)

        with stop_on_signals(stop):
            await self.start()
            await self.join()

    async def start(self) -> None:
        """Starts the consumer's tasks. A consumer runs once."""
        await self._mode.start()

    def stop(self) -> None:
        """Stops receiving; returns at once. Call it in the loop's thread."""
        self._mode.stopping.set()

    def seek(self, to: datetime | str) -> None:
        """As `Consumer.seek`. Call it in the loop's thread."""
        seek(self._mode, to)

    async def join(self) -> None:
        """Waits for `stop`, then gives unstarted messages back, and lets handlers end.

        Raises the error that made receiving impossible, such as QueueNotFound or Unauthenticated.
        """
        try:
            await self._mode.stopping.wait()
        except asyncio.CancelledError:
            self.stop()
            with suppress(CirrusMQError):
                await self._finish()
            raise
        await self._finish()

    async def _finish(self) -> None:
        finishing = asyncio.create_task(self._mode.finish(), name="cirrusmq-finish")
        try:
            await asyncio.shield(finishing)
        except asyncio.CancelledError:
            self._mode.hurry()
            with suppress(CirrusMQError):
                await asyncio.shield(finishing)
            raise

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        self.stop()
        await self.join()


async def _attempt(handler: Callable[[Any], object], given: Any) -> object:
    """As `attempt`, awaited. Raises only an exception that ends the task from outside."""
    own = asyncio.current_task()
    try:
        result = handler(given)
        return await result if inspect.isawaitable(result) else result
    except asyncio.CancelledError as error:
        if own is not None and own.cancelling():
            raise
        return Raised(error)
    except GeneratorExit as error:
        if not _runs(own):
            raise  # the task is discarded: it may not await any more
        return Raised(error)
    except BaseException as error:
        return Raised(error)


def _runs(task: asyncio.Task[Any] | None) -> bool:
    """Returns True if the task runs at the moment."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False
