"""Many calls in one thread, each in a greenlet that gives way to the others while it waits.

A switch of greenlets costs a hundredth of a switch of threads, and the writes of all greenlets that
ran in one turn of the loop share a commit.

    events ─ greenlet a ─ greenlet b ─ … ─ what they gathered, at once ─ events ─ …

A greenlet that blocks in another way holds up all others of its hub: such work goes `aside`. A
greenlet must hold no lock while it waits, because the next greenlet may want it.
"""

from __future__ import annotations

import contextlib
import contextvars
import heapq
import itertools
import logging
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from greenlet import getcurrent, greenlet

A = TypeVar("A")
T = TypeVar("T")

CHECK_SECONDS = 0.25
"""Seconds between two checks for expired waits."""
GATHER_SECONDS = 0.005
"""Maximum time that the first gathered item waits for further ones."""
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE

_log = logging.getLogger(__name__)
_here = threading.local()
caller: contextvars.ContextVar[Channel | None] = contextvars.ContextVar("caller", default=None)
"""The client's channel, if the work in this context ends when the client goes, else None."""


class _Wait:
    """A waiting greenlet; `greenlet` is None after it was woken."""

    __slots__ = ("greenlet", "until")

    def __init__(self, until: float = float("inf")) -> None:
        self.greenlet: greenlet | None = getcurrent()
        self.until = until


class Channel:
    """A socket that a hub watches."""

    def __init__(self, watched: socket.socket) -> None:
        watched.setblocking(False)
        self.socket = watched
        self._events = 0
        self._wait: _Wait | None = None
        self.ended = False
        """True if the other side has ended, as seen while no greenlet waited for the socket."""

    def look(self) -> None:
        """Notes if the other side has ended. No greenlet may wait for the socket."""
        try:
            self.ended = not self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            pass
        except OSError:
            self.ended = True


class Task(Generic[T]):
    """Work that runs beside a greenlet."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._done = False
        self._result: T | None = None
        self._error: BaseException | None = None
        self._wait: _Wait | None = None

    def wait(self, until: float = float("inf")) -> bool:
        """Waits until a moment of the monotonic clock. Returns False if the work has not ended."""
        if not self._done:
            self._wait = _Wait(until)
            self._hub._suspend(self._wait)
        return self._done

    def give_up(self) -> None:
        """Wakes the waiter before the work has ended."""
        if self._wait is not None:
            self._hub._wake(self._wait, False)

    def outcome(self) -> T:
        """Returns the work's result, or raises its error. The work must have ended."""
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]

    def _run(self, work: Callable[[], T]) -> None:
        try:
            self._result = work()
        except BaseException as error:
            self._error = error

    def _end(self) -> None:
        self._done = True
        self.give_up()


class Hub:
    """The greenlets of one thread, which calls `turn`. Only `post` may be called by other threads.

    `in_thread` runs work in another thread.
    """

    def __init__(self, in_thread: Callable[[Callable[[], None]], None]) -> None:
        self._in_thread = in_thread
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._selector.register(self._woken, READ)
        self._posted: deque[Callable[[], None]] = deque()
        self._ready: deque[tuple[greenlet, Any]] = deque()
        self._waits: set[_Wait] = set()
        """Waits with a deadline."""
        self._sleepers: list[tuple[float, int, _Wait]] = []
        self._number = itertools.count()
        self._gathered: dict[Callable[[list[Any]], None], list[tuple[Any, _Wait]]] = {}
        self._gathered_until = 0.0
        self._checked = time.monotonic()
        self._main: greenlet | None = None
        """The thread's own greenlet, during a turn."""

    def post(self, work: Callable[[], None]) -> None:
        """Runs short work in the hub's thread; for any thread."""
        self._posted.append(work)
        with contextlib.suppress(OSError):  # it is awake, or has ended
            self._waker.send(b"\0")

    def turn(self, seconds: float) -> None:
        """Waits for events, at most for `seconds`, and runs all greenlets that are ready.

        Nothing keeps the thread's own greenlet behind its end. At that end, greenlet drops one
        reference to it if the collector knows nobody who has one, and the collector does not look
        at frozen objects (`gc.freeze`), which a hub may be: it would drop ours.
        """
        self._main = getcurrent()
        try:
            self._turn(seconds)
        finally:
            self._main = None

    def _turn(self, seconds: float) -> None:
        gathered_before = bool(self._gathered)
        events = self._selector.select(self._pause(seconds))
        for key, _ in events:
            if key.data is None:
                self._woken.recv(4_096)
            else:
                self._note(key.data)
        while self._posted:
            self._posted.popleft()()
        self._look_at_the_time()
        _here.hub = self
        try:
            while self._ready:
                waiting, value = self._ready.popleft()
                waiting.switch(value)
        finally:
            _here.hub = None
        # Later items join the gathered ones, but delay them only for a limited time.
        all_came = gathered_before and not events
        if self._gathered and (all_came or time.monotonic() > self._gathered_until):
            gathered, self._gathered = self._gathered, {}
            for do, waits in gathered.items():
                self._do(do, waits)

    def close(self) -> None:
        """Closes the hub. No greenlet may wait any more."""
        for each in (self._selector, self._woken, self._waker):
            each.close()

    def start(self, work: Callable[[], T]) -> Task[T]:
        """Starts work in a new greenlet, in the caller's context."""
        task: Task[T] = Task(self)

        def run(_: None) -> None:
            task._run(work)
            task._end()

        started = greenlet(run, self._main or getcurrent())
        started.gr_context = contextvars.copy_context()
        self._ready.append((started, None))
        return task

    def start_aside(self, work: Callable[[], T]) -> Task[T]:
        """Starts work in a thread, in the caller's context."""
        task: Task[T] = Task(self)
        context = contextvars.copy_context()

        def run() -> None:
            context.run(task._run, work)
            self.post(task._end)

        self._in_thread(run)
        return task

    def aside(self, work: Callable[[], T]) -> T:
        """Runs work in a thread, and waits for its result."""
        task = self.start_aside(work)
        task.wait()
        return task.outcome()

    def together(self, call: Callable[[A], T], values: Iterable[A]) -> list[T]:
        """Returns the results of calls that run in parallel, or raises the first call's error."""

        def calling(value: A) -> Callable[[], T]:
            return lambda: call(value)

        tasks = [self.start(calling(value)) for value in values]
        for task in tasks:
            task.wait()
        return [task.outcome() for task in tasks]

    def gather(self, do: Callable[[list[Any]], None], item: Any) -> None:
        """Waits until `do` has processed this item, with all items gathered for it in a turn."""
        wait = _Wait()
        if not self._gathered:
            self._gathered_until = time.monotonic() + GATHER_SECONDS
        self._gathered.setdefault(do, []).append((item, wait))
        error = self._suspend(wait)
        if error is not None:
            raise error

    def sleep(self, seconds: float, ended: Callable[[], bool]) -> None:
        """Sleeps for a time, or until `ended` returns True when the sleepers are woken."""
        until = time.monotonic() + seconds
        while not ended() and time.monotonic() < until:
            wait = _Wait()
            heapq.heappush(self._sleepers, (until, next(self._number), wait))
            self._suspend(wait)

    def wake_sleepers(self) -> None:
        """Wakes all sleepers, so that each checks if its sleep has ended."""
        sleepers, self._sleepers = self._sleepers, []
        for _, _, wait in sleepers:
            self._wake(wait, None)

    def wait_for(self, channel: Channel, event: int, until: float) -> bool:
        """Waits for an event of a socket. Returns False if none came until the deadline."""
        wait = channel._wait = _Wait(until)
        if channel._events != event:
            change = self._selector.modify if channel._events else self._selector.register
            change(channel.socket, event, channel)
            channel._events = event
        woken: bool = self._suspend(wait)
        channel._wait = None
        return woken

    def watch(self, channel: Channel) -> None:
        """Notes in `channel.ended` if the other side ends while no greenlet waits for it."""
        if not channel._events:
            self._selector.register(channel.socket, READ, channel)
            channel._events = READ
        channel.look()

    def leave(self, channel: Channel) -> None:
        """Wakes the waiter of a socket, as if its deadline had passed."""
        if channel._wait is not None:
            self._wake(channel._wait, False)

    def forget(self, channel: Channel) -> None:
        """Ends the watch of a socket; call it before the socket is closed."""
        if channel._events:
            self._selector.unregister(channel.socket)
            channel._events = 0

    def _suspend(self, wait: _Wait) -> Any:
        timed = wait.until != float("inf")
        if timed:
            self._waits.add(wait)
        assert self._main is not None
        value = self._main.switch()
        if timed:
            self._waits.discard(wait)
        return value

    def _wake(self, wait: _Wait, value: Any) -> None:
        """Makes the waiting greenlet ready, once only."""
        woken, wait.greenlet = wait.greenlet, None
        if woken is not None:
            self._ready.append((woken, value))

    def _note(self, channel: Channel) -> None:
        if channel._wait is None:
            channel.look()
            # Otherwise each turn would get the same event.
            self.forget(channel)
        else:
            self._wake(channel._wait, True)

    def _pause(self, seconds: float) -> float:
        if self._ready or self._posted or self._gathered:
            return 0.0
        if self._sleepers:
            seconds = min(seconds, self._sleepers[0][0] - time.monotonic())
        return max(0.0, min(seconds, CHECK_SECONDS))

    def _look_at_the_time(self) -> None:
        now = time.monotonic()
        while self._sleepers and self._sleepers[0][0] <= now:
            self._wake(heapq.heappop(self._sleepers)[2], None)
        if now - self._checked >= CHECK_SECONDS:
            self._checked = now
            for wait in [each for each in self._waits if each.until < now]:
                self._wake(wait, False)

    def _do(self, do: Callable[[list[Any]], None], waits: list[tuple[Any, _Wait]]) -> None:
        failure: BaseException | None = None
        try:
            do([item for item, _ in waits])
        except Exception as error:
            _log.exception("what greenlets gathered was not done")
            failure = error
        for _, wait in waits:
            self._wake(wait, failure)


def current() -> Hub | None:
    """Returns the calling greenlet's hub, or None outside of a hub."""
    return getattr(_here, "hub", None)
