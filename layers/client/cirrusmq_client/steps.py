"""Work that is written once, for threads and for asyncio.

A method yields each step that may wait, as a callable, and gets its result. One driver calls the
steps; the other one awaits their results:

    @driven
    def health(self) -> Steps[Health]:
        reply = yield self._ask_for_health
        return reply.json

Its class has a driver as `_run`: in a `Blocking` class `health()` returns the result, in an
`Asynchronous` one it is awaited.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, cast, overload

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

Step: TypeAlias = Callable[[], Any]
Steps: TypeAlias = Generator[Step, Any, T]


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """An entry of a listing, yielded between steps."""

    value: T


Entries: TypeAlias = Generator[Step | Entry[T], Any, None]


def run(steps: Steps[T]) -> T:
    """Does the steps in this thread. Returns the result."""
    try:
        step = next(steps)
        while True:
            try:
                answer = step()
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as ended:
        return cast(T, ended.value)


async def run_async(steps: Steps[T]) -> T:
    """Does the steps in this task; a cancellation is raised at the current step."""
    try:
        step = next(steps)
        while True:
            try:
                answer = await step()
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as ended:
        return cast(T, ended.value)


def iterate(entries: Entries[T]) -> Iterator[T]:
    """Yields every entry of a listing; does the steps to the next one on demand."""
    answer: Any = None
    while True:
        try:
            step = entries.send(answer)
        except StopIteration:
            return
        answer = None
        if isinstance(step, Entry):
            yield step.value
        else:
            answer = step()


async def iterate_async(entries: Entries[T]) -> AsyncIterator[T]:
    """As `iterate`, for asyncio."""
    answer: Any = None
    while True:
        try:
            step = entries.send(answer)
        except StopIteration:
            return
        answer = None
        if isinstance(step, Entry):
            yield step.value
        else:
            answer = await step()


class Blocking:
    """A class whose methods of steps block until the result."""

    _run = staticmethod(run)
    _iterate = staticmethod(iterate)


class Asynchronous:
    """A class whose methods of steps are awaited."""

    _run = staticmethod(run_async)
    _iterate = staticmethod(iterate_async)


class Driven(Generic[P, T]):
    """The type of a method of steps, by the kind of its class. At run time it is a function."""

    @overload
    def __get__(self, instance: Blocking, owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(
        self, instance: Asynchronous, owner: Any
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, instance: object, owner: Any) -> Callable[..., Any]: ...
    def __get__(self, instance: object, owner: Any) -> Any: ...


class Listed(Generic[P, T]):
    """As `Driven`, for a method that iterates."""

    @overload
    def __get__(self, instance: Blocking, owner: Any) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, instance: Asynchronous, owner: Any) -> Callable[P, AsyncIterator[T]]: ...
    @overload
    def __get__(self, instance: object, owner: Any) -> Callable[..., Any]: ...
    def __get__(self, instance: object, owner: Any) -> Any: ...


def driven(function: Callable[Concatenate[S, P], Steps[T]]) -> Driven[P, T]:
    """Makes a method that does its steps by its object's `_run`."""

    @wraps(function)
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        return self._run(function(self, *arguments, **named))

    return cast(Driven[P, T], method)


def listed(function: Callable[Concatenate[S, P], Entries[T]]) -> Listed[P, T]:
    """Makes a method that iterates by its object's `_iterate`."""

    @wraps(function)
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        return self._iterate(function(self, *arguments, **named))

    return cast(Listed[P, T], method)
