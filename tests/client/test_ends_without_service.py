"""The end of a consumer's process while the service is out of reach."""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.client.conftest import NewQueue, StartProcess

from cirrusmq_client import Producer

GRACE_SECONDS = 4


class Hole:
    """A way to the service at `url`, until `swallow`: from then on nothing comes through."""

    def __init__(self, url: str) -> None:
        to = urlsplit(url)
        self._to = (to.hostname, to.port)
        self._swallows = threading.Event()
        self._over = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._kept: list[socket.socket] = [self._listening]
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def swallow(self) -> None:
        """Connections are still taken, and no byte of them is passed on."""
        self._swallows.set()

    def close(self) -> None:
        """Close every connection."""
        self._over.set()
        for each in self._kept:
            each.close()

    def _serve(self) -> None:
        while not self._over.is_set():
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            self._kept.append(near)
            if self._swallows.is_set():
                continue
            far = socket.create_connection(self._to)
            self._kept.append(far)
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65_536):
                if self._swallows.is_set():
                    self._over.wait()
                    return
                other.sendall(data)
        except OSError:
            return


@pytest.fixture
def hole(stack: Any) -> Iterator[Hole]:
    made = Hole(stack.connection.url)
    yield made
    made.close()


@pytest.mark.alone
def test_on_sigterm_an_unanswered_consumer_ends_within_its_grace_time(
    start_process: StartProcess, producer: Producer, new_queue: NewQueue, hole: Hole
) -> None:
    """Handlers of 3 s run then, results and messages to give back wait for an answer."""
    name = new_queue(visibility_timeout_seconds=600)
    producer.send_batch(name, map(str, range(16)))
    script = Path(__file__).with_name("slow_consumer.py")
    process = start_process(sys.executable, script, name, GRACE_SECONDS, CIRRUSMQ_URL=hole.url)
    assert {process.stdout.readline().split()[0] for _ in range(2)} == {"started"}
    hole.swallow()

    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)

    # Beside the grace time, the interpreter's own end on a busy machine.
    assert time.monotonic() - began < GRACE_SECONDS + 4
