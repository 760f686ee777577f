"""dramatiq on Redis, which appends each write to a file and syncs it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...rivals.servers import free_port
from .. import QUEUE, Peer, Place, Terms
from ..program import Program, find, package

MAINTENANCE_CHANCE = 1_000_000
"""All commands look for dead workers. By default 1,000 of a million: an idle worker makes few."""


class Failed(Exception):
    """An attempt of a handler failed."""


class Actor:
    """A broker with one actor."""

    def __init__(self, place: Place, terms: Terms) -> None:
        self._dramatiq: Any = package("dramatiq")
        redis: Any = package("dramatiq.brokers.redis")
        wait = terms.retry_seconds * 1_000
        retries = package("dramatiq.middleware").Retries(
            max_retries=20, min_backoff=wait, max_backoff=wait
        )
        self._broker = redis.RedisBroker(
            url=f"redis://127.0.0.1:{place.port}",
            middleware=[retries],
            heartbeat_timeout=terms.lease_seconds * 1_000,
            maintenance_chance=MAINTENANCE_CHANCE,
        )
        self._handle: Callable[[str], bool] = lambda body: True
        self._actor = self._dramatiq.actor(
            self._run, actor_name="take", queue_name=QUEUE, broker=self._broker
        )

    def send(self, body: str) -> None:
        """Enqueues a message."""
        self._actor.send(body)

    def work(self, handle: Callable[[str], bool]) -> None:
        """Runs the library's worker with one thread; the library reconnects."""
        self._handle = handle
        self._dramatiq.Worker(self._broker, worker_threads=1).start()
        while True:
            time.sleep(60)

    def hold(self, count: int, wait: Callable[[], None]) -> list[str]:
        """Consumes with a prefetch, without acknowledging."""
        consumer = self._broker.consume(QUEUE, prefetch=count, timeout=1_000)
        held: list[Any] = []
        while len(held) < count:
            message = next(consumer)
            held += [] if message is None else [message]
        wait()
        for message in held:
            consumer.ack(message)
        return [str(message.args[0]) for message in held]

    def close(self) -> None:
        """Ends the connections."""
        self._broker.close()

    def _run(self, body: str) -> None:
        if not self._handle(body):
            raise Failed


def _server(folder: Path) -> Program:
    package("dramatiq.brokers.redis")
    port = free_port()
    kept = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
    command = [find("redis-server", "redis-server"), "--port", str(port), "--bind", "127.0.0.1"]
    return Program([*command, "--dir", str(folder), *kept], port, folder.parent / "server.log")


def _create(place: Place, terms: Terms) -> None:
    """Does nothing: queues need not be made."""


PEER = Peer(
    name="dramatiq on Redis",
    durable="append-only file, fsync before each answer",
    server=_server,
    create=_create,
    client=Actor,
)
