"""Plays faults on our stack and on other queues with the same producers and workers.

history    the notes of producers and workers, and the judgement of them
actors     the processes: producer, worker, holder, and a proxy
field      one running server with its processes
plays      the eight cells
peers      the servers, and a client of each

    producer ──┐                         ┌── worker
               ├──> (proxy) ──> server ──┤
    producer ──┘                         └── worker
        │                                      │
        └── asked, sent, refused               └── started, failed, done      one file a process

A process is killed at any time, so each line is written by one call of the system. A killed process
loses no line, and neither does a server lose what it has written to the system's cache: a cell
shows what a crash of a process does, not a loss of power.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

QUEUE = "cells"


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Waits that a cell asks of a queue."""

    lease_seconds: int = 5
    """Until a message of a dead worker is delivered again, if the server cannot see it die."""
    retry_seconds: int = 1
    """Until a failed message is delivered again."""


@dataclass(frozen=True)
class Place:
    """A server as its clients reach it."""

    folder: Path
    """Its data."""
    port: int
    """Its own port, or a proxy's."""


class Server(Protocol):
    """A server that keeps its port and its data over a restart."""

    port: int

    def start(self) -> None:
        """Starts it, and returns when it answers."""
        ...

    def kill(self) -> None:
        """Kills its processes by SIGKILL."""
        ...

    def alive(self) -> bool:
        """Returns False if its process ended."""
        ...


class Client(Protocol):
    """A client of the queue, in a separate process."""

    def send(self, body: str) -> None:
        """Returns when the server has answered that the message is stored. Raises otherwise."""
        ...

    def work(self, handle: Callable[[str], bool]) -> None:
        """Receives forever, and raises if the library gives up. `handle` returns False to retry."""
        ...

    def hold(self, count: int, wait: Callable[[], None]) -> list[str]:
        """Receives `count` messages, calls `wait`, then completes them. Returns their bodies."""
        ...

    def close(self) -> None:
        """Ends the connections."""
        ...


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A kind of queue."""

    name: str
    durable: str
    """When it has a message on disk."""
    server: Callable[[Path], Server]
    """Prepares a server on an empty folder. Raises NotInstalled."""
    create: Callable[[Place, Terms], None]
    """Makes the queue."""
    client: Callable[[Place, Terms], Client]
    cannot: Mapping[str, str] = field(default_factory=dict)
    """The cells that it cannot play -> why."""


def all_peers() -> list[Peer]:
    """Returns all queues, ours first."""
    from .peers import (
        beanstalkd,
        dramatiq_redis,
        jetstream,
        ours,
        pgmq,
        pgqueuer_jobs,
        procrastinate_jobs,
        rabbit,
    )

    on_postgres = (procrastinate_jobs, pgqueuer_jobs, pgmq)
    modules = (ours, *on_postgres, rabbit, jetstream, dramatiq_redis, beanstalkd)
    return [module.PEER for module in modules]
