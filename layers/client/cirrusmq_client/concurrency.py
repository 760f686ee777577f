"""Concurrency for producers and consumers: threads, or asyncio's tasks.

Their methods are written once (`steps`). A lock guards the state that threads share. Between two
steps of a task no other task runs, so for tasks a lock does nothing.
"""

from __future__ import annotations

import concurrent.futures
import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from cirrusmq_client.ending import ENDING, Work
from cirrusmq_client.errors import CirrusMQError
from cirrusmq_client.steps import Steps, run

logger = logging.getLogger("cirrusmq_client")


class Concurrency(Protocol):
    """Threads or tasks. A step is a call that blocks, or is awaited."""

    @property
    def cancelled(self) -> tuple[type[BaseException], ...]:
        """Exceptions that a cancelled step raises."""
        ...

    def run(self, steps: Steps[Any]) -> Any:
        """Runs steps: the driver."""
        ...

    def condition(self, lock: Any = None) -> Any:
        """Returns a condition whose `wait(seconds)` is a step. `lock`: a shared lock, or None."""
        ...

    def event(self) -> Any:
        """Returns an event whose `wait(seconds)` is a step."""
        ...

    def spawn(
        self, name: str, work: Callable[[], Any], died: Callable[[BaseException], None]
    ) -> Any:
        """Starts a worker that does this step. If the step raises, `died` gets the exception."""
        ...

    def watch(self, due: Callable[[], float], tell: Callable[[str], None]) -> Callable[[], None]:
        """Calls `tell` if all workers are blocked when something is due: see `LoopWatch`.

        Returns a call that ends the watch.
        """
        ...

    def is_one_of(self, workers: Sequence[Any]) -> bool:
        """Returns True if the caller is one of the workers."""
        ...

    def place(self) -> object:
        """The event loop, or None: workers of one place may work for each other."""
        ...

    def join(self, workers: Sequence[Any], seconds: float | None = None) -> Any:
        """Waits, as a step, for the workers' ends. Returns False if the time ends before."""
        ...

    def abandon(self, workers: Sequence[Any]) -> Sequence[Any]:
        """Ends the workers if possible. Returns the workers that will end."""
        ...

    def wait(self, futures: Collection[Future[Any]], seconds: float | None) -> Any:
        """Waits, as a step, until all are done. Returns False if the time ends before."""
        ...

    def at_exit(self, work: Work) -> None:
        """Runs the work when the process ends."""
        ...

    def not_at_exit(self, work: Work) -> None:
        """As if `at_exit` had not been called."""
        ...


class Threads:
    """Daemon threads, which end with the program."""

    cancelled: tuple[type[BaseException], ...] = ()
    run = staticmethod(run)
    condition = staticmethod(threading.Condition)
    event = staticmethod(threading.Event)

    def spawn(
        self, name: str, work: Callable[[], Any], died: Callable[[BaseException], None]
    ) -> threading.Thread:
        """Starts a thread for the work. Returns it."""
        thread = threading.Thread(target=_guarded, args=(work, died), name=name, daemon=True)
        thread.start()
        return thread

    def watch(self, due: Callable[[], float], tell: Callable[[str], None]) -> Callable[[], None]:
        """Does nothing: no thread blocks another one."""
        return _nothing

    def is_one_of(self, workers: Sequence[threading.Thread]) -> bool:
        """Returns True if the caller is one of the threads."""
        return threading.current_thread() in workers

    def place(self) -> None:
        """None: all threads are in one place."""

    def join(self, workers: Sequence[threading.Thread], seconds: float | None = None) -> bool:
        """Waits for other threads. Returns False if the time ends before."""
        ends = None if seconds is None else time.monotonic() + seconds
        for thread in workers:
            if thread is not threading.current_thread():
                thread.join(None if ends is None else max(0.0, ends - time.monotonic()))
        return not any(thread.is_alive() for thread in workers)

    def abandon(self, workers: Sequence[threading.Thread]) -> Sequence[threading.Thread]:
        """Returns no worker: only the end of the program ends a thread."""
        return ()

    def wait(self, futures: Collection[Future[Any]], seconds: float | None) -> bool:
        """Waits until all are done. Returns False if the time ends before."""
        return not concurrent.futures.wait(futures, seconds).not_done

    def at_exit(self, work: Work) -> None:
        """Runs the work when the process ends."""
        ENDING.add(work)

    def not_at_exit(self, work: Work) -> None:
        """As if `at_exit` had not been called."""
        ENDING.discard(work)


def died_of(source: object, error: BaseException) -> CirrusMQError:
    """Logs the error that ended a consumer's worker. Returns the error to raise."""
    logger.error("the consumer of %s ends: %r", source, error, exc_info=error)
    death = CirrusMQError(f"the consumer of {source} ended: {error!r}")
    death.__cause__ = error
    return death


def _guarded(work: Callable[[], Any], died: Callable[[BaseException], None]) -> None:
    try:
        work()
    except BaseException as error:
        died(error)


def _nothing() -> None: ...


THREADS = Threads()
