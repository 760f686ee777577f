"""Working side by side: what producers and consumers need of threads, or of asyncio's tasks.

Their methods are written once (`steps`). A lock guards what threads share. Between two steps of a
task no other one runs, so for tasks it does nothing.
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
    """Threads or tasks. What is said to be a step blocks, or is awaited."""

    @property
    def cancelled(self) -> tuple[type[BaseException], ...]:
        """What is raised at a step that is not to be waited for any more."""
        ...

    def run(self, steps: Steps[Any]) -> Any:
        """The driver of steps."""
        ...

    def condition(self, lock: Any = None) -> Any:
        """A condition whose `wait(seconds)` is a step; it holds a lock, which it may share."""
        ...

    def event(self) -> Any:
        """An event whose `wait(seconds)` is a step."""
        ...

    def spawn(
        self, name: str, work: Callable[[], Any], died: Callable[[BaseException], None]
    ) -> Any:
        """A worker that does this step, from now on. If that raises, `died` gets the exception."""
        ...

    def watch(self, due: Callable[[], float], tell: Callable[[str], None]) -> Callable[[], None]:
        """Have `tell` told of what blocks all workers when something is due: see `LoopWatch`.

        Returns what ends it.
        """
        ...

    def is_one_of(self, workers: Sequence[Any]) -> bool:
        """Whether the caller is one of the workers."""
        ...

    def place(self) -> object:
        """The event loop, or None: workers of one place may work for each other."""
        ...

    def join(self, workers: Sequence[Any], seconds: float | None = None) -> Any:
        """A step: wait for the workers' ends; False where the time ended before."""
        ...

    def abandon(self, workers: Sequence[Any]) -> Sequence[Any]:
        """Have the workers end, whatever they do; those that can be made to."""
        ...

    def wait(self, futures: Collection[Future[Any]], seconds: float | None) -> Any:
        """A step: wait until all are done; False where the time ended before."""
        ...

    def at_exit(self, work: Work) -> None:
        """Do this when the process ends."""
        ...

    def not_at_exit(self, work: Work) -> None:
        """As if `at_exit` had not been called."""
        ...


class Threads:
    """Daemon threads: the end of the program ends them."""

    cancelled: tuple[type[BaseException], ...] = ()
    run = staticmethod(run)
    condition = staticmethod(threading.Condition)
    event = staticmethod(threading.Event)

    def spawn(
        self, name: str, work: Callable[[], Any], died: Callable[[BaseException], None]
    ) -> threading.Thread:
        """A started thread."""
        thread = threading.Thread(target=_guarded, args=(work, died), name=name, daemon=True)
        thread.start()
        return thread

    def watch(self, due: Callable[[], float], tell: Callable[[str], None]) -> Callable[[], None]:
        """Nothing: no thread blocks another one."""
        return _nothing

    def is_one_of(self, workers: Sequence[threading.Thread]) -> bool:
        """Whether the caller is one of the threads."""
        return threading.current_thread() in workers

    def place(self) -> None:
        """None: all threads are in one place."""

    def join(self, workers: Sequence[threading.Thread], seconds: float | None = None) -> bool:
        """Wait for other threads."""
        ends = None if seconds is None else time.monotonic() + seconds
        for thread in workers:
            if thread is not threading.current_thread():
                thread.join(None if ends is None else max(0.0, ends - time.monotonic()))
        return not any(thread.is_alive() for thread in workers)

    def abandon(self, workers: Sequence[threading.Thread]) -> Sequence[threading.Thread]:
        """Nothing ends a thread but the end of the program."""
        return ()

    def wait(self, futures: Collection[Future[Any]], seconds: float | None) -> bool:
        """Wait until all are done."""
        return not concurrent.futures.wait(futures, seconds).not_done

    def at_exit(self, work: Work) -> None:
        """Do this when the process ends."""
        ENDING.add(work)

    def not_at_exit(self, work: Work) -> None:
        """As if `at_exit` had not been called."""
        ENDING.discard(work)


def died_of(source: object, error: BaseException) -> CirrusMQError:
    """What a consumer raises when one of its workers ended by an error. The log has it, too."""
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
