"""Objects of asyncio, used as blocking ones: the same tests hold for both."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from cirrusmq_client import AsyncClient, AsyncConsumer, Client, Connection


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="loop")
        self._thread.start()

    def run(self, work: Callable[[], Any]) -> Any:
        """The result of a call that is made in the loop, awaited where it can be."""

        async def do() -> Any:
            result = work()
            if inspect.isasyncgen(result):
                return [entry async for entry in result]
            if inspect.iscoroutine(result):
                result = await result
            return _as_blocking(result) if isinstance(result, asyncio.Future) else result

        return asyncio.run_coroutine_threadsafe(do(), self.loop).result()

    def stop(self) -> None:
        """End it; nothing may be left that runs."""
        left = self.run(lambda: [task for task in asyncio.all_tasks() if not _is_current(task)])
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
        assert left == []


class Awaited:
    """Calls of an object's methods, each awaited: `Awaited(loop, AsyncClient).show_queue("a")`."""

    def __init__(self, loop: Loop, make: Callable[[], Any]) -> None:
        self._loop = loop
        self._made = self.itself = loop.run(make)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._made, name)
        if not callable(found):
            return found
        return lambda *arguments, **named: self._loop.run(lambda: found(*arguments, **named))

    def __enter__(self) -> Awaited:
        self._loop.run(self._made.__aenter__)
        return self

    def __exit__(self, *raised: object) -> None:
        self._loop.run(lambda: self._made.__aexit__(*raised))


class AwaitedConsumer(Awaited):
    """An AsyncConsumer in a loop of its own, with the arguments of a Consumer and its results."""

    def __init__(
        self, source: Any, handler: Callable[[Any], object], *, client: Client, **options: Any
    ) -> None:
        own = Loop()

        async def handle(given: Any) -> Any:
            return await asyncio.to_thread(handler, given)

        key = client._transport._http.headers["authorization"].removeprefix("Bearer ")
        key_id, _, secret = key.partition(":")
        connection = Connection(url=client.url, access_key_id=key_id, secret=secret)

        def make() -> AsyncConsumer:
            self._client = AsyncClient(connection, retry=client._transport._retry)
            return AsyncConsumer(source, handle, client=self._client, **options)

        try:
            super().__init__(own, make)
        except (TypeError, ValueError):
            own.stop()
            raise

    def join(self) -> None:
        try:
            self._loop.run(self._made.join)
        finally:
            self._end()

    def run(self) -> None:
        try:
            self._loop.run(self._made.run)
        finally:
            self._end()

    def __exit__(self, *raised: object) -> None:
        self.stop()
        self.join()

    def _end(self) -> None:
        self._loop.run(self._client.close)
        self._loop.stop()


def _as_blocking(future: asyncio.Future[Any]) -> Future[Any]:
    """A future for other threads; it is cancelled in the loop."""
    blocking = _Future(future)
    future.add_done_callback(blocking.copy)
    return blocking


class _Future(Future[Any]):
    def __init__(self, future: asyncio.Future[Any]) -> None:
        super().__init__()
        self._future = future

    def copy(self, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            super().cancel()
            self.set_running_or_notify_cancel()
        elif (error := done.exception()) is not None:
            self.set_exception(error)
        else:
            self.set_result(done.result())

    def cancel(self) -> bool:
        async def cancel() -> bool:
            return self._future.cancel()

        loop = self._future.get_loop()
        return asyncio.run_coroutine_threadsafe(cancel(), loop).result()


def _is_current(task: asyncio.Task[Any]) -> bool:
    return task is asyncio.current_task()
