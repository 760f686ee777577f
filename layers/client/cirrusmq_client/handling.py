"""Calling handlers: their return value or exception becomes a result for each message."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from cirrusmq_client.messages import Received
from cirrusmq_client.results import (
    BatchResult,
    HandlerResult,
    Result,
    Retry,
    UnknownResult,
    for_each,
    read_result,
)
from cirrusmq_client.steps import Steps

logger = logging.getLogger("cirrusmq_client")
Handler: TypeAlias = Callable[[Received], HandlerResult]
BatchHandler: TypeAlias = Callable[[list[Received]], BatchResult]
AsyncHandler: TypeAlias = Callable[[Received], Awaitable[HandlerResult] | HandlerResult]
AsyncBatchHandler: TypeAlias = Callable[[list[Received]], Awaitable[BatchResult] | BatchResult]
Handle: TypeAlias = Callable[[Sequence[Received]], Steps[list[Result]]]
Attempt: TypeAlias = Callable[[Callable[[Any], object], Any], Any]
"""Calls a handler with what it gets: its return value, or what it raised as `Raised`."""


@dataclass(frozen=True, slots=True)
class Raised:
    """What a handler raised. As a value it passes steps, which not every exception does."""

    error: BaseException


def attempt(handler: Callable[[Any], object], given: Any) -> object:
    """Call a handler; whatever it raises is its failure, `sys.exit` too."""
    try:
        return handler(given)
    except BaseException as error:
        return Raised(error)


def one_by_one(
    handler: Callable[[Any], object], none: Result, source: object, call: Attempt = attempt
) -> Handle:
    """A handler of single messages; a failure is a `Retry`. Log lines name the source."""

    def handle(messages: Sequence[Received]) -> Steps[list[Result]]:
        results: list[Result] = []
        for message in messages:
            answer = yield partial(call, handler, message)
            results.append(_result_of(message, answer, none, source))
        return results

    return handle


def together(
    handler: Callable[[Any], object], none: Result, source: object, call: Attempt = attempt
) -> Handle:
    """A handler of batches; a failure is a `Retry` of every message."""

    def handle(messages: Sequence[Received]) -> Steps[list[Result]]:
        answer = yield partial(call, handler, list(messages))
        count = len(messages)
        try:
            values = for_each(_returned(answer), count)
        except UnknownResult as unknown:
            _warn(messages, str(unknown))
            return [Retry()] * count
        except BaseException as error:
            _warn(messages, "their handler failed", error)
            return [Retry()] * count
        return [
            _result_of(message, value, none, source)
            for message, value in zip(messages, values, strict=True)
        ]

    def _warn(messages: Sequence[Received], why: str, error: BaseException | None = None) -> None:
        ids = ", ".join(message.id for message in messages)
        line = "%d messages of %s come again: %s: %s"
        logger.warning(line, len(messages), source, why, ids, exc_info=error)

    return handle


def check_handler(handler: object, parameters: int = 1, *, awaited: bool = False) -> None:
    """Raise TypeError for a handler that cannot work, as far as can be seen before a call.

    `parameters`: how many values it gets. `awaited`: whether a coroutine function is one.
    """
    if not callable(handler) or isinstance(handler, type):
        raise TypeError(f"handler must be a function or an object that can be called: {handler!r}")
    function = _function_of(handler)
    name = getattr(function, "__qualname__", repr(handler))
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"handler must return a result: {name} is a generator function")
    if not awaited and inspect.iscoroutinefunction(function):
        raise TypeError(
            f"handler must not be a coroutine function: nobody awaits {name} here, an"
            " AsyncConsumer does"
        )
    try:
        signature = inspect.signature(handler, follow_wrapped=False)
    except (TypeError, ValueError):
        return  # a function in C that does not say
    try:
        signature.bind(*[None] * parameters)
    except TypeError as error:
        values = "one value" if parameters == 1 else f"{parameters} values"
        raise TypeError(f"handler is called with {values}: {name}{signature}: {error}") from error


def _function_of(handler: Any) -> Any:
    """The function that runs when the handler is called: below partials, methods and objects."""
    while True:
        if isinstance(handler, partial):
            handler = handler.func
        elif inspect.ismethod(handler):
            handler = handler.__func__
        elif inspect.isroutine(handler) or inspect.iscoroutinefunction(handler):
            return handler
        else:
            inner = getattr(type(handler), "__call__", None)  # noqa: B004 - as calls find it
            if inner is None or not inspect.isfunction(inner):
                return handler
            return inner


def _result_of(message: Received, answer: object, none: Result, source: object) -> Result:
    """The result that a message's handler returned; a `Retry`, which is told, where it failed."""
    line = "%s of %s comes again: %s"
    try:
        return read_result(_returned(answer), none)
    except UnknownResult as unknown:
        logger.warning(line, message.id, source, unknown)
    except BaseException as error:
        logger.warning(line, message.id, source, "its handler failed", exc_info=error)
    return Retry()


def _returned(answer: object) -> object:
    if isinstance(answer, Raised):
        raise answer.error
    return answer
