"""RabbitMQ: a durable queue, persistent messages and publisher confirms, by pika."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...rivals.servers import free_port
from .. import QUEUE, Peer, Place, Terms
from ..program import Program, find, package

PREFETCH = 10
_SETTINGS = """\
listeners.tcp.default = 127.0.0.1:{port}
disk_free_limit.absolute = 1MB
vm_memory_high_watermark.relative = 0.6
"""
"""Below its limit of free disk, 50 MB by default, it lets producers wait: a cell fills the disk."""


class Channel:
    """One connection with one channel."""

    def __init__(self, place: Place, terms: Terms) -> None:
        self._pika: Any = package("pika")
        where = self._pika.ConnectionParameters(
            "127.0.0.1", place.port, connection_attempts=1, socket_timeout=10
        )
        self._connection = self._pika.BlockingConnection(where)
        self._channel = self._connection.channel()
        self._channel.confirm_delivery()
        self._kept = self._pika.BasicProperties(delivery_mode=2)

    def send(self, body: str) -> None:
        """Publishes, and waits for the confirm."""
        self._channel.basic_publish("", QUEUE, body.encode(), self._kept, mandatory=True)

    def work(self, handle: Callable[[str], bool]) -> None:
        """Consumes with a prefetch. A message that is given back has no wait."""
        self._channel.basic_qos(prefetch_count=PREFETCH)
        for method, _, body in self._channel.consume(QUEUE):
            if handle(body.decode()):
                self._channel.basic_ack(method.delivery_tag)
            else:
                self._channel.basic_nack(method.delivery_tag, requeue=True)

    def hold(self, count: int, wait: Callable[[], None]) -> list[str]:
        """Gets messages one by one, without acknowledging."""
        held: list[tuple[int, str]] = []
        while len(held) < count:
            method, _, body = self._channel.basic_get(QUEUE)
            held += [] if method is None else [(method.delivery_tag, body.decode())]
        wait()
        for tag, _ in held:
            self._channel.basic_ack(tag)
        return [body for _, body in held]

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()


class Broker:
    """A node, and the port mapper that it asks for, which is ours too."""

    def __init__(self, folder: Path) -> None:
        package("pika")
        home = folder.parent
        self.port, names, peers = free_port(), free_port(), free_port()
        settings = home / "rabbitmq.conf"
        settings.write_text(_SETTINGS.format(port=self.port))
        environment = {
            "HOME": str(home),
            "RABBITMQ_NODENAME": f"cells{self.port}@localhost",
            "RABBITMQ_MNESIA_BASE": str(folder),
            "RABBITMQ_LOG_BASE": str(home / "rabbit-log"),
            "RABBITMQ_CONFIG_FILE": str(settings),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "no-plugins"),
            "RABBITMQ_DIST_PORT": str(peers),
            "ERL_EPMD_PORT": str(names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
        log = home / "server.log"
        epmd = [find("epmd", "erlang-base"), "-port", str(names), "-address", "127.0.0.1"]
        self._names = Program(epmd, names, log)
        program = "/usr/lib/rabbitmq/bin/rabbitmq-server"
        if not os.path.exists(program):
            program = find("rabbitmq-server", "rabbitmq-server")
        self._node = Program([program], self.port, log, environment=environment)

    def start(self) -> None:
        """Starts both if they do not run."""
        if not self._names.alive():
            self._names.start()
        self._node.start()

    def kill(self) -> None:
        """Kills both: a mapper that lives longer knows the node's name still."""
        self._node.kill()
        self._names.kill()

    def alive(self) -> bool:
        """Returns False if the node ended."""
        return self._node.alive()


def _create(place: Place, terms: Terms) -> None:
    made = Channel(place, terms)
    made._channel.queue_declare(QUEUE, durable=True)
    made.close()


PEER = Peer(
    name="RabbitMQ",
    durable="durable classic queue, persistent messages, confirms after fsync",
    server=Broker,
    create=_create,
    client=Channel,
)
