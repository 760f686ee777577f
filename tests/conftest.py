"""A running service, for the tests that look at it from outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stack import Stack, Start


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
