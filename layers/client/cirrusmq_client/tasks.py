"""`concurrency` by the tasks of one event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from cirrusmq_client.ending import Work
from cirrusmq_client.loop_watch import LoopWatch
from cirrusmq_client.steps import run_async


class Condition:
    """As `threading.Condition`. It needs no lock, so `with` does nothing."""

    def __init__(self, lock: object = None) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    def __enter__(self) -> bool:
        return True

    def __exit__(self, *raised: object) -> None:
        pass

    def notify(self) -> None:
        """Wakes one waiter."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def notify_all(self) -> None:
        """Wakes all present waiters."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()

    async def wait(self, seconds: float | None = None) -> bool:
        """Waits until woken. Returns False if the time ends before."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            done, _ = await asyncio.wait((waiter,), timeout=seconds)
        except asyncio.CancelledError:
            if waiter.done():
                self.notify()  # wakes another waiter instead
            raise
        finally:
            waiter.cancel()
            if waiter in self._waiting:
                self._waiting.remove(waiter)
        return bool(done)


class Event:
    """As `threading.Event`."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.set = self._event.set
        self.is_set = self._event.is_set

    async def wait(self, seconds: float | None = None) -> bool:
        """Waits until it is set. Returns False if the time ends before."""
        try:
            async with asyncio.timeout(seconds):
                return await self._event.wait()
        except TimeoutError:
            return False


class Tasks:
    """Tasks of one event loop, which end with it."""

    cancelled: tuple[type[BaseException], ...] = (asyncio.CancelledError,)
    run = staticmethod(run_async)
    condition = staticmethod(Condition)
    event = staticmethod(Event)

    def spawn(
        self, name: str, work: Callable[[], Any], died: Callable[[BaseException], None]
    ) -> asyncio.Task[Any]:
        """Starts a task. Returns it; keep the reference. A cancellation calls `died`, too."""
        task = asyncio.create_task(_guarded(work, died), name=name)
        task.add_done_callback(partial(_tell_cancelled, died))
        return task

    def watch(self, due: Callable[[], float], tell: Callable[[str], None]) -> Callable[[], None]:
        """Watches the loop from a thread beside it."""
        return LoopWatch(due, tell).stop

    def is_one_of(self, workers: Sequence[asyncio.Task[Any]]) -> bool:
        """Returns True if the caller is one of the tasks."""
        return asyncio.current_task() in workers

    def place(self) -> asyncio.AbstractEventLoop:
        """The running loop: conditions and futures of another one are out of reach."""
        return asyncio.get_running_loop()

    async def join(
        self, workers: Sequence[asyncio.Task[Any]], seconds: float | None = None
    ) -> bool:
        """Waits for other tasks. Returns False if the time ends before."""
        others = [task for task in workers if task is not asyncio.current_task()]
        return not others or not (await asyncio.wait(others, timeout=seconds))[1]

    def abandon(self, workers: Sequence[asyncio.Task[Any]]) -> Sequence[asyncio.Task[Any]]:
        """Cancels the tasks. Returns them."""
        for task in workers:
            task.cancel()
        return workers

    async def wait(self, futures: Collection[Future[Any]], seconds: float | None) -> bool:
        """Waits until all are done, which tasks of this loop do. Returns False if the time ends."""
        left = {future for future in futures if not future.done()}
        changed = Condition()

        def end(future: Future[Any]) -> None:
            left.discard(future)
            if not left:
                changed.notify_all()

        for future in tuple(left):
            future.add_done_callback(end)
        return not left or await changed.wait(seconds)

    def at_exit(self, work: Work) -> None:
        """Does nothing: a loop and its tasks end before Python does."""

    def not_at_exit(self, work: Work) -> None:
        """Does nothing."""


async def _guarded(work: Callable[[], Any], died: Callable[[BaseException], None]) -> None:
    """Does the work. Catches also `SystemExit`, which would end the loop."""
    try:
        await work()
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:
        died(error)


def _tell_cancelled(died: Callable[[BaseException], None], task: asyncio.Task[Any]) -> None:
    # Not in the task: a task that is cancelled before its start never runs.
    if task.cancelled():
        died(asyncio.CancelledError(f"{task.get_name()} was cancelled"))


TASKS = Tasks()
