"""Lambda functions in one process: loaded from their folders, run in threads."""

from __future__ import annotations

import importlib.util
import json
import logging
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeAlias

from cirrusmq_local.clock import ClockStopped
from cirrusmq_local.template import Function

Handler: TypeAlias = Callable[[Any, Any], Any]

# Every long poll holds a thread, and every function that is invoked asynchronously another.
CALL_THREADS = 512
EVENT_THREADS = 128

running: ContextVar[Function | None] = ContextVar("running", default=None)
"""The function that runs in this context; None outside of any."""

_log = logging.getLogger(__name__)


class UnknownFunctionError(Exception):
    """No function of this name is in the template."""


class StackStoppingError(Exception):
    """The stack ended before the function did."""


class Context:
    """What a handler is told about its invocation."""

    def __init__(self, function: Function) -> None:
        self.function_name = function.name
        self.function_version = "$LATEST"
        self.memory_limit_in_mb = function.memory_mb
        self.aws_request_id = str(uuid.uuid4())
        self.invoked_function_arn = function.arn
        self.log_group_name = "/aws/lambda/cirrusmq"
        self.log_stream_name = function.name
        self._ends = time.monotonic() + function.timeout_seconds

    def get_remaining_time_in_millis(self) -> int:
        """Real milliseconds until the function would be cut off."""
        return max(0, int((self._ends - time.monotonic()) * 1_000))


def load_handler(function: Function) -> Handler:
    """The function's handler. Its module has a name of its own, for all are called `app`."""
    module_name, _, handler_name = function.handler.partition(".")
    path = function.folder / f"{module_name}.py"
    unique = f"cirrusmq_function_{function.folder.name}"
    spec = importlib.util.spec_from_file_location(unique, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: the template's {function.name} needs it")
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    spec.loader.exec_module(module)
    handler: Handler = getattr(module, handler_name)
    return handler


class Functions:
    """The functions of the template, by name, and the threads they run in."""

    def __init__(self, handlers: Mapping[str, tuple[Function, Handler]]) -> None:
        self._handlers = dict(handlers)
        self._calls = ThreadPoolExecutor(CALL_THREADS, thread_name_prefix="call")
        self._events = ThreadPoolExecutor(EVENT_THREADS, thread_name_prefix="event")
        self._stopping = threading.Event()

    @classmethod
    def load(cls, functions: Sequence[Function]) -> Functions:
        """Import every function's module."""
        return cls({each.name: (each, load_handler(each)) for each in functions})

    def add(self, function: Function, handler: Handler) -> None:
        """Take in a function that no folder holds."""
        self._handlers[function.name] = (function, handler)

    def find(self, name: str) -> Function:
        """The function of a name, or UnknownFunctionError."""
        if name not in self._handlers:
            raise UnknownFunctionError(f"the template has no function {name}")
        return self._handlers[name][0]

    def run(self, name: str, event: Any) -> Any:
        """Run a function in this thread and return its answer."""
        self.find(name)
        function, handler = self._handlers[name]
        before = running.set(function)
        try:
            return handler(event, Context(function))
        finally:
            running.reset(before)

    def call(self, name: str, event: Any) -> Future[Any]:
        """Run a function in a thread of its own."""
        return self._calls.submit(self._run_until_stopped, name, event)

    def send(self, name: str, event: Any) -> None:
        """Run a function later and forget its answer.

        Lambda would try again after an error; here nothing does but what the product does itself
        about a lost event, so that is tried all the time.
        """
        self.find(name)
        if self._stopping.is_set():
            return
        # Through JSON, as in the cloud: what cannot travel must not work here either.
        copied = json.loads(json.dumps(event))
        self._events.submit(self._run_and_log, name, copied)

    def stop(self) -> None:
        """Wait for what runs; what has not started is dropped. Stop the clock before."""
        self._stopping.set()
        self._events.shutdown(cancel_futures=True)
        self._calls.shutdown(cancel_futures=True)

    def _run_until_stopped(self, name: str, event: Any) -> Any:
        try:
            return self.run(name, event)
        except ClockStopped as stopped:
            raise StackStoppingError from stopped

    def _run_and_log(self, name: str, event: Any) -> None:
        try:
            self.run(name, event)
        except ClockStopped:
            return
        except Exception:
            _log.exception("%s failed", name)
