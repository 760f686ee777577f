"""The futures of `send_soon`, and the number of failures that nobody has seen."""

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
        """Makes an empty count and a new lock in a forked child."""
        self._lock = threading.Lock()
        self._count = 0
        self._last: BaseException | None = None

    def fail(self, future: Soon[Any], error: BaseException) -> None:
        """Counts a failed future."""
        with self._lock:
            if not future.seen:
                future.counted = True
                self._count += 1
                self._last = error

    def see(self, future: Soon[Any]) -> None:
        """Notes that somebody looks at a future, now or at its end."""
        with self._lock:
            future.seen = True
            if future.counted:
                future.counted = False
                self._count = max(0, self._count - 1)

    def take(self) -> tuple[int, BaseException | None]:
        """Returns the number of unseen errors since the last call, and the last error."""
        with self._lock:
            taken = self._count, self._last
            self._count, self._last = 0, None
            return taken


class Soon(Future[T]):
    """A future that notes if its error was seen: read, or passed to a callback."""

    def __init__(self, failures: Failures) -> None:
        super().__init__()
        self._failures = failures
        self.seen = self.counted = False

    def set_exception(self, exception: BaseException | None) -> None:
        """Fails the future."""
        super().set_exception(exception)
        if exception is not None:
            self._failures.fail(self, exception)

    def result(self, timeout: float | None = None) -> T:
        """Returns the answer, or raises its error."""
        try:
            return super().result(timeout)
        except (CancelledError, TimeoutError):
            raise
        except BaseException:
            self._failures.see(self)
            raise

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Returns the error, or None."""
        found = super().exception(timeout)
        if found is not None:
            self._failures.see(self)
        return found

    def add_done_callback(self, fn: Callable[[Future[T]], Any]) -> None:
        """Calls `fn` with the future at its end."""
        self._failures.see(self)
        super().add_done_callback(fn)
