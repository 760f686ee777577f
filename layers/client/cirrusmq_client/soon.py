"""The futures of `send_soon`, and how many of them failed without anybody looking."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from cirrusmq_client.forking import renew_in_children

T = TypeVar("T")


class Failures:
    """Counts the errors of futures that nobody has seen."""

    def __init__(self) -> None:
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """In a forked child: none, and a lock that no thread of the parent holds."""
        self._lock = threading.Lock()
        self._count = 0
        self._last: BaseException | None = None

    def fail(self, future: Soon[Any], error: BaseException) -> None:
        """A future failed."""
        with self._lock:
            if not future.seen:
                future.counted = True
                self._count += 1
                self._last = error

    def see(self, future: Soon[Any]) -> None:
        """Somebody looks at a future, now or at its end."""
        with self._lock:
            future.seen = True
            if future.counted:
                future.counted = False
                self._count = max(0, self._count - 1)

    def take(self) -> tuple[int, BaseException | None]:
        """How many there were since the last time, and the last of them."""
        with self._lock:
            taken = self._count, self._last
            self._count, self._last = 0, None
            return taken


class Soon(Future[T]):
    """A future that knows whether its error was seen: asked for, or given to a callback."""

    def __init__(self, failures: Failures) -> None:
        super().__init__()
        self._failures = failures
        self.seen = self.counted = False

    def set_exception(self, exception: BaseException | None) -> None:
        """Fail."""
        super().set_exception(exception)
        if exception is not None:
            self._failures.fail(self, exception)

    def result(self, timeout: float | None = None) -> T:
        """The answer, or its error."""
        try:
            return super().result(timeout)
        except (CancelledError, TimeoutError):
            raise
        except BaseException:
            self._failures.see(self)
            raise

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error."""
        found = super().exception(timeout)
        if found is not None:
            self._failures.see(self)
        return found

    def add_done_callback(self, fn: Callable[[Future[T]], Any]) -> None:
        """Call `fn` with the future at its end."""
        self._failures.see(self)
        super().add_done_callback(fn)
