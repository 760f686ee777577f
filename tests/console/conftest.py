"""The console on the running stack, in a browser."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
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
