"""Objects of asyncio, used as blocking ones: the same tests hold for both."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


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
