"""A load on one queue: producers and consumers for a while, each call timed, nothing lost."""

from __future__ import annotations

import random
import string
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from cirrusmq_client import CirrusMQError, Client, Message, Received

T = TypeVar("T")

STAMP_BYTES = 32
"""Format of a body's first bytes: its number, and the start time of its send."""
TEXT = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=300_000))
"""Bodies are pieces of this text, which cannot be compressed."""
WAIT_SECONDS = 1.0
QUIET_SECONDS = 60.0
"""Seconds that consumers wait for messages that were sent and not received yet."""


@dataclass(kw_only=True)
class Calls:
    """Calls of one kind: their seconds, and the codes of failed calls."""

    seconds: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Outcome:
    """Results of a load. A delay is seconds from the start of a send to the receive's answer."""

    calls: dict[str, Calls] = field(
        default_factory=lambda: {kind: Calls() for kind in ("send", "receive", "delete")}
    )
    delays: list[float] = field(default_factory=list)
    sent: int = 0
    deleted: int = 0
    seconds: float = 0.0
    """Of sending."""
    empty_receives: int = 0
    repeated: int = 0
    """Messages that were received more than once."""
    lost: int = 0
    """Messages that were sent and never received."""


def make_body(number: int, size: int) -> str:
    """Return a body of `size` bytes that begins with its number and the time."""
    start = random.randrange(len(TEXT))
    stamp = f"{number:012d} {time.time():.6f}"
    text = TEXT[start : start + size - STAMP_BYTES]
    while len(text) < size - STAMP_BYTES:  # compression does not look back that far
        text += TEXT[: size - STAMP_BYTES - len(text)]
    return stamp.ljust(STAMP_BYTES) + text


class Load:
    """Producers send batches until the time is over; consumers receive and delete them."""

    def __init__(
        self, client: Client, queue: str, *, size: int, batch: int, rate: float | None
    ) -> None:
        """`rate`: messages a second of all producers together, or None for as many as possible."""
        self._client, self._queue = client, queue
        self._size = size
        self._batch = batch
        self._rate = rate
        self._lock = threading.Lock()
        self._outcome = Outcome()
        self._next = 0
        self._out: set[int] = set()
        """Return the numbers of messages that were sent and not received."""
        self._came: set[int] = set()
        self._sending = True
        self._last_came = 0.0

    def run(self, seconds: float, producers: int, consumers: int) -> Outcome:
        """Send for `seconds`, then consume the remaining messages."""
        began = self._last_came = time.monotonic()
        consuming = [self._start(self._consume) for _ in range(consumers)]
        sending = [self._start(self._produce, began, seconds) for _ in range(producers)]
        for thread in sending:
            thread.join()
        self._outcome.seconds = time.monotonic() - began
        with self._lock:
            self._sending, self._last_came = False, time.monotonic()
        for thread in consuming:
            thread.join()
        self._outcome.lost = len(self._out)
        return self._outcome

    def _start(self, work: Callable[..., None], *arguments: float) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        thread.start()
        return thread

    def _produce(self, began: float, seconds: float) -> None:
        while True:
            with self._lock:
                first, self._next = self._next, self._next + self._batch
            due = began if self._rate is None else began + first / self._rate
            if max(due, time.monotonic()) >= began + seconds:
                return
            time.sleep(max(0.0, due - time.monotonic()))
            numbers = range(first, first + self._batch)
            messages = [self._message(number) for number in numbers]
            if self._timed("send", lambda: self._client.send(self._queue, messages)) is None:  # noqa: B023
                continue
            with self._lock:
                self._outcome.sent += len(numbers)
                # A consumer may have been faster than the answer.
                self._out |= set(numbers) - self._came

    def _consume(self) -> None:
        while not self._is_done():
            received = self._timed(
                "receive",
                lambda: self._client.receive(self._queue, 16, wait_seconds=WAIT_SECONDS),
            )
            if not received:
                with self._lock:
                    self._outcome.empty_receives += received is not None
                if received is None:
                    time.sleep(WAIT_SECONDS)
                continue
            self._note(received)
            receipts = [message.receipt for message in received]
            outcome = self._timed("delete", lambda: self._client.delete(self._queue, receipts))  # noqa: B023
            with self._lock:
                self._outcome.deleted += len(outcome.done) if outcome else 0

    def _is_done(self) -> bool:
        with self._lock:
            if self._sending:
                return False
            return not self._out or time.monotonic() - self._last_came > QUIET_SECONDS

    def _note(self, received: list[Received]) -> None:
        now = time.time()
        with self._lock:
            self._last_came = time.monotonic()
            for message in received:
                number, sent = message.text[:STAMP_BYTES].split()
                self._outcome.repeated += int(number) in self._came
                self._came.add(int(number))
                self._out.discard(int(number))
                self._outcome.delays.append(now - float(sent))

    def _timed(self, kind: str, call: Callable[[], T]) -> T | None:
        """Return the call's answer, or None if it failed; both are counted."""
        began = time.monotonic()
        try:
            answer = call()
        except CirrusMQError as error:
            with self._lock:
                self._outcome.calls[kind].failed.append(error.code)
            return None
        with self._lock:
            self._outcome.calls[kind].seconds.append(time.monotonic() - began)
        return answer

    def _message(self, number: int) -> Message:
        return Message(make_body(number, self._size))
