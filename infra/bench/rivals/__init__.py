"""The queues that are measured side by side, each over its own protocol.

All have a message on disk, with fsync, when they answer its send. They keep it until its consumer
deletes it, and give it to another one when a lease (or, with procrastinate, a worker) ends before
that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol


class NotInstalled(Exception):
    """A server's package is missing on this machine."""


class Queue(Protocol):
    """One client's view of one queue."""

    def create(self) -> None:
        """Make the queue."""
        ...

    def send(self, bodies: Sequence[str]) -> None:
        """Send messages in one call."""
        ...

    def take(self, most: int) -> int:
        """Receive up to so many messages in one call and delete them in another; how many."""
        ...

    def consume(self, count: int, handle: Callable[[str], None]) -> None:
        """Wait for so many messages one by one, hand over each body, delete each."""
        ...

    def close(self) -> None:
        """End the connections."""
        ...


@dataclass(frozen=True, kw_only=True)
class Service:
    """A kind of queue."""

    name: str
    send_batch: int
    """Messages that one call sends at most; 1: there are no batches."""
    take_batch: int
    """Messages that one call receives at most; 1: there are no batches."""
    running: Callable[[], AbstractContextManager[Any]]
    """Starts the server; yields the argument of `queue`. Raises NotInstalled."""
    queue: Callable[[Any, str], Queue]
    """A client's queue by its name."""
    settle: Callable[[Any], None] = lambda place: None
    """Work that the server would do by itself within a minute of a change of load."""


def all_services() -> list[Service]:
    """Ours first."""
    from . import beanstalkd, ours, procrastinate_jobs, skip_locked

    modules = (ours, skip_locked, procrastinate_jobs, beanstalkd)
    return [module.SERVICE for module in modules]
