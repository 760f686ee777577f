"""A service on one machine, started as its users start it, and clients of it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests import commands
from tests.awaited import AwaitedConsumer, Loop
from tests.client.losing_proxy import LosingProxy
from tests.client.taking import unused
from tests.stack import Stack, environment

from cirrusmq_client import Backoff, Client, Connection, Producer, Subscription


class Service:
    """The connection data of a running service."""

    def __init__(self, stack: Stack) -> None:
        self.data = stack.folder
        held = stack.connection()
        self.connection = connection_by(held["url"], held)
        self.environment = variables_of(self.connection)

    def behind(self, url: str) -> Connection:
        """The same key, by another way to the service."""
        return replace(self.connection, url=url)


def connection_by(url: str, key: Mapping[str, Any]) -> Connection:
    """The connection by a key, as the service or a file shows it."""
    return Connection(url=url, access_key_id=key["access_key_id"], secret=key["secret"])


def variables_of(connection: Connection) -> dict[str, str]:
    """The environment of a program that finds the service by it."""
    return {
        "CIRRUSMQ_URL": connection.url,
        "CIRRUSMQ_ACCESS_KEY_ID": connection.access_key_id,
        "CIRRUSMQ_SECRET": connection.secret,
    }


@pytest.fixture(scope="session")
def stack(shared_stack: Stack) -> Service:
    """The service of all tests; each makes queues of its own."""
    return Service(shared_stack)


@pytest.fixture
def client(stack: Service) -> Iterator[Client]:
    with Client(stack.connection) as made:
        yield made


@pytest.fixture
def producer(client: Client) -> Producer:
    return Producer(client)


@pytest.fixture
def new_client(stack: Service) -> Iterator[Callable[..., Client]]:
    """More clients: `new_client()`, `new_client(url=…, backoff=…)`."""
    made: list[Client] = []

    def make(url: str | None = None, backoff: Backoff | None = None) -> Client:
        connection = stack.behind(url or stack.connection.url)
        made.append(Client(connection, retry=backoff))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(params=["blocking", pytest.param("asyncio", marks=pytest.mark.long)])
def either_consumer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test is made with a Consumer, and by the long tests with an AsyncConsumer in its place.

    They decide by the same code, and wait by threads or by tasks: see `both_consumers`.
    """
    _choose(request, monkeypatch)


@pytest.fixture(params=["blocking", "asyncio"])
def both_consumers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test is made with a Consumer, and with an AsyncConsumer in its place."""
    _choose(request, monkeypatch)


def _choose(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "asyncio":
        monkeypatch.setattr(request.module, "Consumer", AwaitedConsumer)


NewQueue = Callable[..., str]


@pytest.fixture
def new_queue(client: Client) -> NewQueue:
    """A queue that no other test has: `new_queue(ordered=True)`."""

    def make(**attributes: Any) -> str:
        name = unused("q")
        given: Any = attributes
        client.create_queue(name, given)
        return name

    return make


@pytest.fixture
def queue(new_queue: NewQueue) -> str:
    """A queue that no other test has, with the defaults."""
    return new_queue()


@pytest.fixture
def topic(client: Client) -> str:
    """A topic that no other test has."""
    name = unused("t")
    client.create_topic(name)
    return name


@pytest.fixture
def group(client: Client, topic: str) -> Subscription:
    """A subscription of the topic, from which consumers receive."""
    client.create_subscription(topic, "group", {"protocol": "pull"})
    return Subscription(topic, "group")


@pytest.fixture
def loop() -> Iterator[Loop]:
    """An event loop in a thread; nothing may run in it at the end."""
    made = Loop()
    yield made
    made.stop()


@pytest.fixture
def proxy(client: Client) -> Iterator[LosingProxy]:
    """A way to the service that loses answers, and notes the calls."""
    running = LosingProxy(client.url)
    yield running
    running.stop()


@pytest.fixture
def lossy(proxy: Any, new_client: Callable[..., Client]) -> Client:
    """A client behind the proxy."""
    return new_client(url=proxy.url, backoff=Backoff(first_seconds=0.01))


Wait = Callable[..., None]


@pytest.fixture
def wait_until() -> Wait:
    """Wait for threads or the service: `wait_until(lambda: …, seconds=10)`."""

    def wait(holds: Callable[[], object], seconds: float = 60.0) -> None:
        ends = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < ends, "it did not come about in time"
            time.sleep(0.02)

    return wait


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_command(stack: Service, tmp_path: Path) -> Run:
    """The command line against the service: `run_command("queue", "list")`."""

    def run(*arguments: str, text: str = "", **variables: str) -> Any:
        chosen = {"COLUMNS": "140", "NO_COLOR": "1"} | stack.environment | variables
        return commands.run_command(
            arguments, env=environment() | chosen, folder=tmp_path, text=text
        )

    return run


StartProcess = Callable[..., Any]


@pytest.fixture
def start_process(stack: Service) -> Iterator[StartProcess]:
    """A Popen that tells by pipes: `start_process(COMMAND, "tail", name)`; killed at the end."""
    started: list[subprocess.Popen[str]] = []

    def start(*command: object, **variables: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*map(str, command)],
            env=os.environ | stack.environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


RunJson = Callable[..., Any]


@pytest.fixture
def run_json(run_command: Run) -> RunJson:
    """What a command prints as JSON: `run_json("queue", "show", name)`."""

    def run(*arguments: str, **variables: str) -> Any:
        done = run_command(*arguments, "--json", **variables)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


Refuse = Callable[..., str]


@pytest.fixture
def refuse(run_command: Run) -> Refuse:
    """The standard error of a command that fails: `refuse("queue", "show", "none")`."""

    def run(*arguments: str, code: int = 1) -> str:
        done = run_command(*arguments)
        assert (done.returncode, done.stdout) == (code, "")
        assert "Traceback" not in done.stderr
        return done.stderr

    return run


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port
