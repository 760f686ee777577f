"""A running service, for the tests that look at it from outside."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stack import Stack, Start


def pytest_configure() -> None:
    """Let Ctrl-C end what tests start: background jobs of a shell ignore it, as do their own."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


ALONE = ("client", "local")
"""The folders that `make test` looks into for tests that run alone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test that nothing would run."""
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder not in ALONE and item.get_closest_marker("alone"):
            raise pytest.UsageError(f"{item.nodeid}: alone is of tests in {' and '.join(ALONE)}")


def pytest_collection_finish() -> None:
    """Leave what was collected to no garbage collection: each would go through all of it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One service for all tests of a process that neither end it nor mind what others make."""
    running = Stack(tmp_path_factory.mktemp("stack"))
    yield running
    running.end()
    running.clean_up()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start `cirrusmq up`, always on the same data."""
    started: list[Stack] = []

    def run(*arguments: str) -> Stack:
        started.append(Stack(tmp_path / "data", *arguments))
        return started[-1]

    yield run
    for stack in started:
        stack.clean_up()
