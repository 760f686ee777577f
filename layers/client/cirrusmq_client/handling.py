"""Calling handlers: their return value or exception becomes a result for each message."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from cirrusmq_client.messages import Received
from cirrusmq_client.results import Result, Retry, read_result, read_results
from cirrusmq_client.steps import Steps

logger = logging.getLogger("cirrusmq_client")
Handle: TypeAlias = Callable[[Sequence[Received]], Steps[list[Result]]]


def one_by_one(handler: Callable[[Received], object], none: Result, source: object) -> Handle:
    """A handler of single messages; an exception is a `Retry`. Log lines name the source."""

    def handle(messages: Sequence[Received]) -> Steps[list[Result]]:
        results: list[Result] = []
        for message in messages:
            results.append((yield from _call(message)))
        return results

    def _call(message: Received) -> Steps[Result]:
        try:
            return read_result((yield partial(handler, message)), none)
        except Exception:
            line = "%s of %s comes again: its handler failed"
            logger.warning(line, message.id, source, exc_info=True)
            return Retry()

    return handle


def together(handler: Callable[[list[Received]], object], none: Result, source: object) -> Handle:
    """A handler of batches; an exception is a `Retry` of every message."""

    def handle(messages: Sequence[Received]) -> Steps[list[Result]]:
        try:
            return read_results((yield partial(handler, list(messages))), len(messages), none)
        except Exception:
            count = len(messages)
            ids = ", ".join(message.id for message in messages)
            line = "%d messages of %s come again: their handler failed: %s"
            logger.warning(line, count, source, ids, exc_info=True)
            return [Retry()] * count

    return handle
