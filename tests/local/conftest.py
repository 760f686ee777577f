"""A clock to set, and a gateway on a free port over handlers that a test writes."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.commands import SECONDS
from tests.local.scripted_service import (
    QUEUE,
    SUBSCRIPTION,
    Run,
    Service,
    connect_to,
    run_command,
)

from cirrusmq.base.errors import CirrusMQError
from cirrusmq_local.cloud.clock import ScaledClock
from cirrusmq_local.cloud.functions import Functions
from cirrusmq_local.cloud.invocation import Handler
from cirrusmq_local.cloud.permissions import Permissions
from cirrusmq_local.cloud.routing import Router
from cirrusmq_local.cloud.template import Function, Route
from cirrusmq_local.stack.gateway import Gateway
from cirrusmq_local.stack.server import Server
from cirrusmq_local.testing import Subscriber

STARTED_MS = 1_795_160_000_000


class HandTime:
    """Real time, as far as a clock sees it: it passes when a test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def system_ms(self) -> int:
        return STARTED_MS + int(self.seconds * 1_000)


@pytest.fixture
def hand_time() -> HandTime:
    return HandTime()


def open_clock(folder: Path, hand_time: HandTime, scale: float = 1.0) -> ScaledClock:
    return ScaledClock(
        folder / "clock.json",
        scale,
        system_ms=hand_time.system_ms,
        monotonic=hand_time.monotonic,
    )


@pytest.fixture
def clock(tmp_path: Path, hand_time: HandTime) -> ScaledClock:
    return open_clock(tmp_path, hand_time)


def function(name: str, folder: Path = Path()) -> Function:
    return Function(
        name=name,
        folder=folder,
        handler="app.handler",
        timeout_seconds=29,
        memory_mb=128,
        environment={},
    )


def run_with(permissions: Permissions, handler: Callable[[], Any]) -> Any:
    """What a handler answers in a function that has these permissions."""
    caller = replace(function("caller"), permissions=permissions)
    functions = Functions({"caller": (caller, lambda event, context: handler())})
    try:
        return functions.run("caller", {})
    finally:
        functions.stop()


def tell_problem(error: CirrusMQError, request_id: str) -> dict[str, Any]:
    statuses = {"RequestTooLarge": 413, "Unavailable": 503, "MalformedRequest": 400}
    return {
        "statusCode": statuses[error.code],
        "headers": {"content-type": "application/problem+json"},
        "body": json.dumps({"code": error.code, "detail": error.detail, "id": request_id}),
    }


class RunningGateway:
    """A gateway that answers on a port."""

    def __init__(self, server: Server, functions: Functions, clock: ScaledClock) -> None:
        self.port = server.port
        self._server = server
        self.client = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}", trust_env=False, verify=False
        )
        self._ends = [
            self.client.close,
            server.refuse,
            clock.stop,
            server.stop,
            functions.stop,
        ]

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self._server.busy

    @property
    def connected(self) -> int:
        """How many clients are connected."""
        return self._server.connected

    def stop(self) -> None:
        for end in self._ends:
            end()


Serve = Callable[..., RunningGateway]


@pytest.fixture
def serve(clock: ScaledClock) -> Iterator[Serve]:
    """Serve handlers by route key (`POST /queues/{queue}`): `serve({key: handler}, **limits)`."""
    running: list[RunningGateway] = []

    def start(handlers: dict[str, Handler], **limits: Any) -> RunningGateway:
        functions = Functions({key: (function(key), held) for key, held in handlers.items()})
        routes = []
        for key in handlers:
            method, _, path = key.partition(" ")
            routes.append(Route(function=key, method=method if path else "", path=path))
        gateway = Gateway(Router(routes), functions, clock, tell_problem, **limits)
        server = Server(gateway, "127.0.0.1", 0)
        server.start()
        running.append(RunningGateway(server, functions, clock))
        return running[-1]

    yield start
    for gateway in running:
        gateway.stop()


def answer(value: Any, status: int = 200) -> dict[str, Any]:
    return {
        "statusCode": status,
        "headers": {"content-type": "application/json"},
        "body": json.dumps(value),
    }


@pytest.fixture
def echo() -> Handler:
    """A handler that answers the event it got."""
    return lambda event, context: answer(event)


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


@pytest.fixture
def connect() -> Iterator[Callable[[int], socket.socket]]:
    """A connection to a port: `connect(gateway.port)`."""
    with contextlib.ExitStack() as stack:

        def to(port: int) -> socket.socket:
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return client

        yield to


@pytest.fixture
def subscriber() -> Iterator[Subscriber]:
    with Subscriber() as listening:
        yield listening


@pytest.fixture
def service() -> Service:
    """Answers what a test writes."""
    return Service()


@pytest.fixture
def run(serve: Any, service: Service, tmp_path: Path) -> Run:
    """The command line against that service, whose data folder it names: `run("queue", "list")`."""
    keys = [
        "GET /queues",
        *(f"{method} {QUEUE}" for method in ("PUT", "GET", "DELETE")),
        *(f"POST {QUEUE}/{work}" for work in ("purge", "rewind", "redrive")),
        *(f"{method} {SUBSCRIPTION}" for method in ("GET", "DELETE")),
        "GET /operations",
        "GET /operations/{id}",
        "GET /audit",
        f"POST {QUEUE}/messages",
        f"POST {QUEUE}/messages/receive",
        f"POST {QUEUE}/messages/delete",
    ]
    port = serve(dict.fromkeys(keys, service.handle)).port
    connect_to(tmp_path, port)

    def start(
        *arguments: str, text: str = "", terminal: int | None = None, **variables: str
    ) -> Any:
        named = () if "--data" in arguments else ("--data", str(tmp_path))
        # Behind two dashes are names.
        end = arguments.index("--") if "--" in arguments else len(arguments)
        return run_command(
            *(*arguments[:end], *named, *arguments[end:]),
            folder=tmp_path,
            text=text,
            terminal=terminal,
            seconds=SECONDS,
            **variables,
        )

    return start
