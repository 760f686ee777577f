"""The measured queues, each over its own protocol, and services that answer the SDK of SQS.

The queues have a message on disk, with fsync, when they answer its send. They keep it until its
consumer deletes it, and deliver it to another consumer if a lease ends before that (procrastinate:
if a worker ends).
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
        """Makes the queue."""
        ...

    def send(self, bodies: Sequence[str]) -> None:
        """Sends messages in one call."""
        ...

    def take(self, limit: int) -> int:
        """Receives up to `limit` messages in a call, deletes them in another. Returns how many."""
        ...

    def consume(self, count: int, handle: Callable[[str], None]) -> None:
        """Waits for `count` messages one by one, passes each body to `handle`, deletes each."""
        ...

    def close(self) -> None:
        """Ends the connections."""
        ...


@dataclass(frozen=True, kw_only=True)
class Service:
    """A kind of queue."""

    name: str
    send_batch: int
    """Maximum messages of a send; 1 for a service without batches."""
    take_batch: int
    """Maximum messages of a receive; 1 for a service without batches."""
    running: Callable[[], AbstractContextManager[Any]]
    """Starts the server; yields the argument of `queue`. Raises NotInstalled."""
    queue: Callable[[Any, str], Queue]
    """Returns a client's queue by its name."""
    settle: Callable[[Any], None] = lambda place: None
    """Does work that the server would do within a minute after a change of load."""
    durable: bool = True
    """True if an answered send is on disk."""


def all_services() -> list[Service]:
    """Returns all services, ours first."""
    from . import beanstalkd, ours, procrastinate_jobs, skip_locked

    modules = (ours, skip_locked, procrastinate_jobs, beanstalkd)
    return [module.SERVICE for module in modules]


def sdk_services() -> list[Service]:
    """Returns the services that answer the SDK of SQS, ours first."""
    from . import sqs_sdk

    return list(sqs_sdk.SERVICES)
