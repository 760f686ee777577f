"""Runs calls of the store in parallel on one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from cirrusmq.wiring.adapters import InParallel
from cirrusmq_local.bucket.attachment import Answering
from cirrusmq_local.hub import current

A = TypeVar("A")
B = TypeVar("B")


class Together:
    """Runs calls in greenlets, whose writes share a commit, or in threads outside of a hub."""

    def __init__(self) -> None:
        self._in_threads = InParallel()

    def __call__(self, call: Callable[[A], B], values: Iterable[A]) -> Iterable[B]:
        hub = current()
        return self._in_threads(call, values) if hub is None else hub.together(call, values)


class AsideBucket:
    """A bucket whose files are read and written in a thread, so that other greenlets go on."""

    def __init__(self, bucket: Answering) -> None:
        self._bucket = bucket

    def execute(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Does one operation."""
        work = partial(self._bucket.execute, operation, request)
        hub = current()
        return work() if hub is None else hub.aside(work)
