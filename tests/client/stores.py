"""A store in memory for effects that happen once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cirrusmq_client import DeadLetter, Retry
from cirrusmq_client.exactly_once import AlreadyConsumed


class Store:
    """Writes of a handler and the record of its message: both or neither."""

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.written: list[str] = []

    def run(self, key: str, group: str, work: Callable[[list[str]], object]) -> object:
        return self.run_together([key], group, lambda _, tools: work(tools))

    def run_together(self, keys: Any, group: str, work: Any) -> object:
        new = frozenset(keys) - self.keys
        if not new:
            raise AlreadyConsumed
        writes: list[str] = []
        result = work(new, writes)
        results = result if isinstance(result, list) else [result]
        if not any(isinstance(each, Retry | DeadLetter) for each in results):
            self.keys |= new
            self.written += writes
        return result
