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
        """Wake one that waits."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def notify_all(self) -> None:
        """Wake all that wait now."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait to be woken; False where the time ended before."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            done, _ = await asyncio.wait((waiter,), timeout=seconds)
        except asyncio.CancelledError:
            if waiter.done():
                self.notify()  # another one's turn
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
        """Wait until it is set; False where the time ended before."""
        try:
            async with asyncio.timeout(seconds):
                return await self._event.wait()
        except TimeoutError:
            return False


class Tasks:
    """Tasks, which are cancelled with their loop."""

    cancelled: tuple[type[BaseException], ...] = (asyncio.CancelledError,)
    run = staticmethod(run_async)
    condition = staticmethod(Condition)
    event = staticmethod(Event)

    def spawn(
        self, name: str, work: Callable[[], Any], died: Callable[[BaseException], None]
    ) -> asyncio.Task[Any]:
        """A task; nobody else refers to it. Its cancellation too is told to `died`."""
        task = asyncio.create_task(_guarded(work, died), name=name)
        task.add_done_callback(partial(_tell_cancelled, died))
        return task

    def watch(self, due: Callable[[], float], tell: Callable[[str], None]) -> Callable[[], None]:
        """Watch the loop from a thread beside it."""
        return LoopWatch(due, tell).stop

    def is_one_of(self, workers: Sequence[asyncio.Task[Any]]) -> bool:
        """Whether the caller is one of the tasks."""
        return asyncio.current_task() in workers

    def place(self) -> asyncio.AbstractEventLoop:
        """The running loop: conditions and futures of another one are out of reach."""
        return asyncio.get_running_loop()

    async def join(
        self, workers: Sequence[asyncio.Task[Any]], seconds: float | None = None
    ) -> bool:
        """Wait for other tasks."""
        others = [task for task in workers if task is not asyncio.current_task()]
        return not others or not (await asyncio.wait(others, timeout=seconds))[1]

    def abandon(self, workers: Sequence[asyncio.Task[Any]]) -> Sequence[asyncio.Task[Any]]:
        """Cancel them."""
        for task in workers:
            task.cancel()
        return workers

    async def wait(self, futures: Collection[Future[Any]], seconds: float | None) -> bool:
        """Wait until all are done; they are set by tasks of this loop."""
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
        """A loop ends before Python does, and its tasks with it."""

    def not_at_exit(self, work: Work) -> None:
        """Nothing."""


async def _guarded(work: Callable[[], Any], died: Callable[[BaseException], None]) -> None:
    """Do the work. Not even `SystemExit` comes out, which would end the loop."""
    try:
        await work()
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:
        died(error)


def _tell_cancelled(died: Callable[[BaseException], None], task: asyncio.Task[Any]) -> None:
    # Not in the task: one that is cancelled before it begins never runs.
    if task.cancelled():
        died(asyncio.CancelledError(f"{task.get_name()} was cancelled"))


TASKS = Tasks()
