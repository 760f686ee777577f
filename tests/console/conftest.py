"""The console on the running stack, in a browser."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, TypeAlias

import httpx
import pytest
from playwright.sync_api import Browser
from tests.console.browsing import Console, launched
from tests.stack import Stack

Open: TypeAlias = Callable[..., Console]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all tests of a process."""
    with launched() as browser:
        yield browser


@pytest.fixture(scope="session")
def service(shared_stack: Stack) -> httpx.Client:
    """The API, with the key of the account."""
    return shared_stack.client()


@pytest.fixture
def open_console(browser: Browser, shared_stack: Stack) -> Iterator[Open]:
    """Open the console, signed in unless `key` is None; what goes wrong in it fails the test."""
    opened: list[Console] = []
    own_key = shared_stack.connection()

    def open_it(
        key: dict[str, Any] | None = own_key, url: str = shared_stack.url, **options: Any
    ) -> Console:
        opened.append(Console(browser, url, key, **options))
        return opened[-1]

    yield open_it
    for console in opened:
        console.close()


@pytest.fixture
def console(open_console: Open) -> Console:
    """A tab that is signed in."""
    return open_console()


@pytest.fixture
def name() -> str:
    """A name that no other test of the stack has."""
    return f"n{uuid.uuid4().hex[:10]}"


@pytest.fixture
def queue(service: httpx.Client, name: str) -> str:
    """A queue of this name, with the defaults."""
    assert service.put(f"/queues/{name}", json={}).status_code == 201
    return name


@pytest.fixture
def topic(service: httpx.Client, name: str) -> str:
    """A topic of this name, with the defaults."""
    assert service.put(f"/topics/{name}", json={}).status_code == 201
    return name


class _Refusing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b"<b>no room</b> in table orders"
        self.send_response(503)
        self.send_header("X-Request-Id", "r-7")
        self.send_header("Set-Cookie", "id=hidden")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def url() -> Iterator[str]:
    """It answers 503 to each post."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    thread.join()
    server.server_close()
