"""Lambda functions in one process: loaded from their folders, run in threads."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from cirrusmq_local.cloud.clock import ClockStopped
from cirrusmq_local.cloud.environments import Environments, SharedEnvironment
from cirrusmq_local.cloud.invocation import (
    Handler,
    TooManyRequestsError,
    check_event,
    goes_on,
    invoke,
)
from cirrusmq_local.cloud.template import Function

# A call that does not give way holds a thread, and each asynchronous invocation another.
CALL_THREADS = 512
EVENT_THREADS = 128

_log = logging.getLogger(__name__)


class UnknownFunctionError(Exception):
    """No function of this name is in the template."""


class StackStoppingError(Exception):
    """The stack ended before the function did."""


def load_handler(function: Function) -> Handler:
    """Returns the function's handler. Its module gets a unique name, as all are called `app`.

    The module is loaded once in a process, as in an execution environment.
    """
    module_name, _, handler_name = function.handler.partition(".")
    path = function.folder / f"{module_name}.py"
    unique = f"cirrusmq_function_{function.folder.name}"
    loaded = sys.modules.get(unique)
    if loaded is not None and loaded.__file__ == str(path):
        return cast(Handler, getattr(loaded, handler_name))
    spec = importlib.util.spec_from_file_location(unique, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: the template's {function.name} needs it")
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[unique]
        raise
    return cast(Handler, getattr(module, handler_name))


def split_name(name: str) -> tuple[str, str]:
    """Returns name and qualifier (`live`, or empty) of a name or ARN that Lambda's API takes."""
    own = name.rpartition("function:")[2]
    function, _, qualifier = own.partition(":")
    return function, qualifier


class Functions:
    """The functions of the template, by name, and the threads they run in."""

    def __init__(
        self,
        handlers: Mapping[str, tuple[Function, Handler]],
        environments: Environments | None = None,
    ) -> None:
        self._handlers = dict(handlers)
        self._environments = environments or SharedEnvironment()
        self._reserved = {
            name: threading.BoundedSemaphore(function.reserved)
            for name, (function, _) in self._handlers.items()
            if function.reserved is not None
        }
        self._calls = ThreadPoolExecutor(CALL_THREADS, thread_name_prefix="call")
        # An event of a busy function must not wait in a thread that another's event needs.
        self._events = {
            name: ThreadPoolExecutor(function.reserved, thread_name_prefix=f"event-{name}")
            for name, (function, _) in self._handlers.items()
            if function.reserved is not None
        }
        self._other_events = ThreadPoolExecutor(EVENT_THREADS, thread_name_prefix="event")
        self._stopping = threading.Event()

    @classmethod
    def load(
        cls, functions: Sequence[Function], environments: Environments | None = None
    ) -> Functions:
        """Imports every function's module."""
        return cls({each.name: (each, load_handler(each)) for each in functions}, environments)

    def add(self, function: Function, handler: Handler) -> None:
        """Adds a function that has no folder."""
        self._handlers[function.name] = (function, handler)

    def find(self, name: str) -> Function:
        """Returns the function of a name. Raises UnknownFunctionError."""
        if name not in self._handlers:
            raise UnknownFunctionError(f"the template has no function {name}")
        return self._handlers[name][0]

    def run(self, name: str, event: Any, chain: tuple[str, ...] = ()) -> Any:
        """Runs a function in this thread. Returns its answer.

        Raises a FunctionError if Lambda would end it, reject its answer or not run it at all.
        `chain`: names of the functions that led to this invocation.
        """
        with self._reserve(name, wait=False):
            return self._invoke(name, event, chain)

    def run_in_turn(self, name: str, event: Any, chain: tuple[str, ...] = ()) -> Any:
        """As `run`, but waits while the reserved concurrency is used up, as Lambda's queue does."""
        with self._reserve(name, wait=True):
            return self._invoke(name, event, chain)

    def run_until_stopped(self, name: str, event: Any) -> Any:
        """As `run`. Raises StackStoppingError if the stack ends before the function does."""
        try:
            return self.run(name, event)
        except ClockStopped as stopped:
            raise StackStoppingError from stopped

    def start(self, work: Callable[[], object]) -> None:
        """Runs work that calls functions, in a thread that `stop` waits for."""
        self._calls.submit(work)

    def send(self, name: str, event: Any, chain: tuple[str, ...] = ()) -> None:
        """Runs a function later and ignores its answer.

        Lambda would retry after an error. Here nothing retries except the product, which has to
        handle a lost event; so this code of the product is exercised all the time.
        """
        check_event(self.find(name), event)
        if self._stopping.is_set():
            return
        if not goes_on(self.find(name), chain):
            _log.error("%s invokes itself on and on: this event is dropped", name)
            return
        # Through JSON, as in the cloud: an event that is no JSON must not work here either.
        copied = json.loads(json.dumps(event))
        events = self._events.get(name, self._other_events)
        events.submit(self._run_and_log, name, copied, chain)

    def stop(self) -> None:
        """Waits for running calls, and drops calls that have not started. Stop the clock before."""
        self._stopping.set()
        for events in (*self._events.values(), self._other_events):
            events.shutdown(cancel_futures=True)
        self._calls.shutdown(cancel_futures=True)

    def _invoke(self, name: str, event: Any, chain: tuple[str, ...]) -> Any:
        function, handler = self._handlers[name]
        with self._environments.serving(name):
            return invoke(function, handler, event, time.monotonic, chain)

    def _reserve(self, name: str, *, wait: bool) -> contextlib.AbstractContextManager[None]:
        """Returns a context that holds one unit of the reserved concurrency."""
        self.find(name)
        reserved = self._reserved.get(name)
        return contextlib.nullcontext() if reserved is None else _taken(name, reserved, wait=wait)

    def _run_and_log(self, name: str, event: Any, chain: tuple[str, ...]) -> None:
        try:
            self.run_in_turn(name, event, chain)
        except ClockStopped:
            return
        except Exception:
            _log.exception("%s failed", name)


@contextlib.contextmanager
def _taken(name: str, reserved: threading.BoundedSemaphore, *, wait: bool) -> Iterator[None]:
    if not reserved.acquire(blocking=wait):
        raise TooManyRequestsError(f"{name}: as many run as are reserved for it")
    try:
        yield
    finally:
        reserved.release()
