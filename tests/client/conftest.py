"""A service on one machine, started as its users start it, and clients of it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from cirrusmq_client import Backoff, Client, Connection, Producer

COMMAND = Path(sys.executable).with_name("cirrusmq")
START_SECONDS = 60


class Stack:
    """A running `cirrusmq up`."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._process = subprocess.Popen(
            [COMMAND, "up", "--port", "0", "--data", data],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._output: IO[str] = self._process.stdout  # type: ignore[assignment]
        impatience = threading.Timer(START_SECONDS, self._process.kill)
        impatience.start()
        lines = iter(self._output.readline, "")
        ready = next((line for line in lines if line.startswith("ready ")), None)
        impatience.cancel()
        assert ready is not None, "the service did not start"
        # What it prints from here on must not fill the pipe.
        threading.Thread(target=self._output.read, daemon=True).start()
        held = json.loads((data / "connection.json").read_text())
        self.connection = Connection(
            url=held["url"], access_key_id=held["access_key_id"], secret=held["secret"]
        )
        self.environment = {
            "CIRRUSMQ_URL": held["url"],
            "CIRRUSMQ_ACCESS_KEY_ID": held["access_key_id"],
            "CIRRUSMQ_SECRET": held["secret"],
        }

    def stop(self) -> None:
        """End it as its users do."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One service for all tests of a process; each makes queues of its own."""
    running = Stack(tmp_path_factory.mktemp("stack"))
    yield running
    running.stop()


@pytest.fixture
def client(stack: Stack) -> Iterator[Client]:
    with Client(stack.connection) as made:
        yield made


@pytest.fixture
def producer(client: Client) -> Producer:
    return Producer(client)


@pytest.fixture
def new_client(stack: Stack) -> Iterator[Callable[..., Client]]:
    """More clients: `new_client()`, `new_client(url=…, backoff=…)`."""
    made: list[Client] = []

    def make(url: str | None = None, backoff: Backoff | None = None) -> Client:
        held = stack.connection
        connection = Connection(
            url=url or held.url, access_key_id=held.access_key_id, secret=held.secret
        )
        made.append(Client(connection, retry=backoff))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def new_queue(client: Client) -> Callable[..., str]:
    """A queue that no other test has: `new_queue(ordered=True)`."""

    def make(**attributes: Any) -> str:
        name = f"q-{uuid.uuid4().hex[:20]}"
        client.create_queue(name, attributes)
        return name

    return make


Wait = Callable[..., None]


@pytest.fixture
def wait_until() -> Wait:
    """Wait for what threads or the service do: `wait_until(lambda: …, seconds=10)`."""

    def wait(holds: Callable[[], object], seconds: float = 20.0) -> None:
        ends = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < ends, "it did not come about in time"
            time.sleep(0.02)

    return wait


@pytest.fixture
def run_command(stack: Stack, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command line against the service: `run_command("queue", "list")`."""

    def run(*arguments: str, text: str = "", **variables: str) -> Any:
        environment = {name: held for name, held in os.environ.items() if "CIRRUSMQ" not in name}
        return subprocess.run(
            [COMMAND, *arguments],
            env=environment | {"COLUMNS": "140", "NO_COLOR": "1"} | stack.environment | variables,
            cwd=tmp_path,
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port
