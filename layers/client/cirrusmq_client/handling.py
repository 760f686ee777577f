"""Calls handlers, and turns their return value or exception into a result for each message."""

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
"""Calls a handler with its argument. Returns its return value, or its exception as `Raised`."""


@dataclass(frozen=True, slots=True)
class Raised:
    """A handler's exception as a value: not every exception can pass through steps."""

    error: BaseException


def attempt(handler: Callable[[Any], object], given: Any) -> object:
    """Calls a handler. Returns its value, or `Raised` for any exception, `sys.exit` too."""
    try:
        return handler(given)
    except BaseException as error:
        return Raised(error)


def one_by_one(
    handler: Callable[[Any], object], none: Result, source: object, call: Attempt = attempt
) -> Handle:
    """Returns a call for a handler of single messages; a failure is a `Retry`.

    `source`: named in log lines.
    """

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
    """Returns a call for a handler of batches; a failure is a `Retry` of every message."""

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
    """Raises TypeError for a handler that cannot be called, as far as its signature shows.

    `parameters`: number of its arguments. `awaited`: True if a coroutine function is allowed.
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
        return  # a function in C without a signature
    try:
        signature.bind(*[None] * parameters)
    except TypeError as error:
        values = "one value" if parameters == 1 else f"{parameters} values"
        raise TypeError(f"handler is called with {values}: {name}{signature}: {error}") from error


def _function_of(handler: Any) -> Any:
    """Returns the function that a handler runs: below partials, methods and objects."""
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
    """Returns the handler's result for a message, or a `Retry`, which is logged, if it failed."""
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
