"""NATS JetStream: a stream in files and a durable pull consumer, by nats-py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...rivals.servers import free_port
from .. import QUEUE, Peer, Place, Terms
from ..actors import key_of
from ..program import Program, find, package

UNACKNOWLEDGED = 20_000
"""By default a consumer stops at 1,000."""


class Stream:
    """One connection, with its own event loop."""

    def __init__(self, place: Place, terms: Terms) -> None:
        self._nats: Any = package("nats")
        self._terms = terms
        self._runner = asyncio.Runner()
        self._connection = self._runner.run(self._connect(place.port))
        self._stream = self._connection.jetstream(timeout=5)

    async def _connect(self, port: int) -> Any:
        url = f"nats://127.0.0.1:{port}"
        again = {"max_reconnect_attempts": -1, "reconnect_time_wait": 0.2}
        return await self._nats.connect(url, connect_timeout=5, **again)

    def send(self, body: str) -> None:
        """Publishes with an id, by which the stream drops a repeated one for two minutes."""
        headers = {"Nats-Msg-Id": key_of(body)}
        self._runner.run(self._stream.publish(QUEUE, body.encode(), headers=headers))

    def work(self, handle: Callable[[str], bool]) -> None:
        """Fetches one by one."""
        self._runner.run(self._work(handle))

    def hold(self, count: int, wait: Callable[[], None]) -> list[str]:
        """Fetches in batches, without acknowledging."""
        return self._runner.run(self._hold(count, wait))

    def close(self) -> None:
        """Ends the connection and the loop."""
        self._runner.run(self._connection.close())
        self._runner.close()

    async def make(self) -> None:
        """Makes the stream and its consumer."""
        js = self._nats.js.api
        await self._stream.add_stream(
            name=QUEUE, subjects=[QUEUE], storage=js.StorageType.FILE, retention="workqueue"
        )
        consumer = js.ConsumerConfig(
            durable_name=QUEUE,
            ack_policy=js.AckPolicy.EXPLICIT,
            ack_wait=self._terms.lease_seconds,
            max_deliver=-1,
            max_ack_pending=UNACKNOWLEDGED,
        )
        await self._stream.add_consumer(QUEUE, consumer)

    async def _work(self, handle: Callable[[str], bool]) -> None:
        pull = await self._stream.pull_subscribe_bind(QUEUE, QUEUE)
        while True:
            for message in await self._fetch(pull, 1):
                if handle(message.data.decode()):
                    await message.ack()
                else:
                    await message.nak(delay=self._terms.retry_seconds)

    async def _hold(self, count: int, wait: Callable[[], None]) -> list[str]:
        pull = await self._stream.pull_subscribe_bind(QUEUE, QUEUE)
        held: list[Any] = []
        while len(held) < count:
            held += await self._fetch(pull, min(100, count - len(held)))
        wait()
        for message in held:
            await message.ack()
        await self._connection.flush()
        return [message.data.decode() for message in held]

    async def _fetch(self, pull: Any, count: int) -> list[Any]:
        try:
            found: list[Any] = await pull.fetch(count, timeout=1)
        except TimeoutError:
            return []
        return found


def _server(folder: Path) -> Program:
    package("nats")
    port, home = free_port(), folder.parent
    settings = home / "nats.conf"
    settings.write_text(
        f'listen: "127.0.0.1:{port}"\njetstream {{ store_dir: "{folder}", max_file_store: 4GB }}\n'
    )
    command = [find("nats-server", "nats-server"), "-c", str(settings)]
    return Program(command, port, home / "server.log")


def _create(place: Place, terms: Terms) -> None:
    stream = Stream(place, terms)
    stream._runner.run(stream.make())
    stream.close()


PEER = Peer(
    name="NATS JetStream",
    durable="files; Debian's 2.9 has no fsync for each write",
    server=_server,
    create=_create,
    client=Stream,
)
