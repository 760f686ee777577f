"""The client library's cost beside bare httpx, its producers' and consumers' calls, and the rate of
one consumer process.

Calls of both kinds alternate in one run, and the medians of their times are compared, so that a
noisy machine affects both equally. The bare calls have no `attempt`: its cost in the service counts
for the library.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx

from cirrusmq_client import (
    AsyncClient,
    AsyncConsumer,
    AsyncProducer,
    Batches,
    Client,
    Connection,
    Consumer,
    Message,
    Producer,
    Received,
)
from cirrusmq_client.client import BaseClient

from ..drawing.tables import middle, show
from ..rivals.servers import Stack, our_stack

ROUNDS = 300
BATCH = 16
BODY = "x" * 100
CONSUMED = 10_000
COUNTED = 500
GOAL_RATIO = 1.2
GOAL_PER_SECOND = 1_000
QUEUES = ("bare", "library")


class Bare:
    """The calls as written with httpx alone."""

    def __init__(self, stack: Stack) -> None:
        self._http = httpx.Client(base_url=stack.url, headers=stack.headers, timeout=40)

    def send(self, count: int) -> None:
        """Sends messages to the queue."""
        self._post("", {"messages": [{"body": BODY} for _ in range(count)]})

    def receive(self) -> list[str]:
        """Receives up to 16 messages. Returns their receipts."""
        held = self._post("/receive", {"max": BATCH, "wait_seconds": 1})
        return [message["receipt"] for message in held["messages"]]

    def delete(self, receipts: Sequence[str]) -> None:
        """Deletes messages by receipt."""
        self._post("/delete", {"receipts": receipts})

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        answer = self._http.post(f"/queues/{QUEUES[0]}/messages{path}", json=body)
        answer.raise_for_status()
        return answer.json()


class Library:
    """The same calls by the library."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def send(self, count: int) -> None:
        """Sends messages to the queue."""
        self._client.send(QUEUES[1], [Message(BODY) for _ in range(count)])

    def receive(self) -> list[str]:
        """Receives up to 16 messages. Returns their receipts."""
        received = self._client.receive(QUEUES[1], BATCH, wait_seconds=1)
        return [message.receipt for message in received]

    def delete(self, receipts: Sequence[str]) -> None:
        """Deletes messages by receipt."""
        self._client.delete(QUEUES[1], receipts)


class Counting(BaseClient):
    """A client that counts the calls on messages."""

    _lock = threading.Lock()
    _calls = 0

    def take_calls(self) -> int:
        """Returns the number of calls since the last time."""
        with self._lock:
            calls, self._calls = self._calls, 0
        return calls

    def send(self, *args: Any, **named: Any) -> Any:
        """Counts the call, and sends."""
        return self._count(super().send, args, named)

    def send_each(self, *args: Any, **named: Any) -> Any:
        """Counts the call, and sends."""
        return self._count(super().send_each, args, named)

    def receive(self, *args: Any, **named: Any) -> Any:
        """Counts the call, and receives."""
        return self._count(super().receive, args, named)

    def delete_and_receive(self, *args: Any, **named: Any) -> Any:
        """Counts the call, deletes and receives."""
        return self._count(super().delete_and_receive, args, named)

    def delete(self, *args: Any, **named: Any) -> Any:
        """Counts the call, and deletes."""
        return self._count(super().delete, args, named)

    def _count(self, call: Callable[..., Any], args: Any, named: Any) -> Any:
        with self._lock:
            self._calls += 1
        return call(*args, **named)


class CountingClient(Counting, Client):
    """Counts the calls of a client for threads."""


class CountingAsyncClient(Counting, AsyncClient):
    """Counts the calls of a client for asyncio."""


def run() -> None:
    """Measures both, and prints if the goals are met."""
    with our_stack() as stack, Client(_connection(stack)) as client:
        for queue in (*QUEUES, "consumed", "counted"):
            client.create_queue(queue)
        with CountingClient(_connection(stack)) as counting:
            made = list(measure_calls_made(counting))
        made += asyncio.run(measure_asyncio(_connection(stack)))
        show(
            f"The calls that the library makes for {COUNTED:,} messages of 100 bytes",
            ("messages", "calls", "messages/s"),
            made,
        )
        rows = measure_calls(stack, client)
        show(
            f"The library beside bare httpx (goal: ratio of all calls <= {GOAL_RATIO})",
            ("call", "bare ms", "library ms", "ratio"),
            rows,
        )
        rates = [(receivers, measure_consumer(client, receivers)) for receivers in (1, 2, 3)]
        show(
            f"One consumer process, batches of 100-byte messages (goal: >= {GOAL_PER_SECOND:,}/s)",
            ("receiving threads", "messages/s"),
            rates,
        )


def measure_calls_made(client: CountingClient) -> Iterator[tuple[str, int, float]]:
    """Yields (work with COUNTED messages, number of calls, messages per second)."""
    producer = Producer(client)

    def singles() -> None:
        for _ in range(COUNTED):
            producer.send("counted", BODY)

    def soon() -> None:
        for _ in range(COUNTED):
            producer.send_soon("counted", BODY)
        producer.flush()

    def consume(**options: Any) -> None:
        left, done = itertools.count(1), threading.Event()

        def handle(message: Received) -> None:
            if next(left) == COUNTED:
                done.set()

        consumer = Consumer("counted", handle, client=client, wait_seconds=1, **options)
        with consumer:
            done.wait()

    for name, work in (
        ("sent one by one", singles),
        ("consumed one by one: one worker, no prefetch", lambda: consume(workers=1, prefetch=0)),
        ("sent soon, linger 5 ms", soon),
        ("consumed with the defaults", consume),
    ):
        client.take_calls()
        began = time.perf_counter()
        work()
        yield name, client.take_calls(), COUNTED / (time.perf_counter() - began)
    producer.close()


async def measure_asyncio(connection: Connection) -> list[tuple[str, int, float]]:
    """Measures the same for the classes for asyncio."""
    left, done = itertools.count(1), asyncio.Event()

    async def handle(message: Received) -> None:
        if next(left) == COUNTED:
            done.set()

    rows = []
    async with CountingAsyncClient(connection) as client:
        began = time.perf_counter()
        async with AsyncProducer(client) as producer:
            for _ in range(COUNTED):
                await producer.send_soon("counted", BODY)
        took = time.perf_counter() - began
        rows.append(("asyncio: sent soon, linger 5 ms", client.take_calls(), COUNTED / took))
        began = time.perf_counter()
        async with AsyncConsumer("counted", handle, client=client, wait_seconds=1):
            await done.wait()
        took = time.perf_counter() - began
        rows.append(("asyncio: consumed with the defaults", client.take_calls(), COUNTED / took))
    return rows


def measure_calls(stack: Stack, client: Client) -> list[tuple[str, float, float, float]]:
    """(call, bare ms, library ms, ratio), medians; the last row is their sum."""
    sides = {"bare": Bare(stack), "library": Library(client)}
    times: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for number in range(ROUNDS):
        # The order alternates, because the first one may warm caches for the second.
        for name in QUEUES if number % 2 else reversed(QUEUES):
            side: Bare | Library = sides[name]  # type: ignore[assignment]
            _timed(times[name, "send 1"], lambda side=side: side.send(1))  # type: ignore[misc]
            _timed(times[name, "send 15"], lambda side=side: side.send(BATCH - 1))  # type: ignore[misc]
            left = BATCH
            while left:
                receipts = _timed(times[name, "receive"], side.receive)
                _timed(
                    times[name, "delete"],
                    lambda side=side, receipts=receipts: side.delete(receipts),  # type: ignore[misc]
                )
                left -= len(receipts)
    rows = []
    for call in ("send 1", "send 15", "receive", "delete"):
        bare, library = (1_000 * middle(times[name, call]) for name in QUEUES)
        rows.append((call, bare, library, library / bare))
    bare, library = (sum(row[column] for row in rows) for column in (1, 2))  # type: ignore[misc]
    return [*rows, ("all", bare, library, library / bare)]


def measure_consumer(client: Client, receivers: int) -> float:
    """Messages a second, received, handled and deleted by one consumer in this process."""
    Producer(client).send_batch("consumed", [BODY] * CONSUMED)
    left, done = [CONSUMED], threading.Event()
    lock = threading.Lock()

    def handle(messages: list[Received]) -> None:
        with lock:
            left[0] -= len(messages)
            if left[0] <= 0:
                done.set()

    consumer = Consumer(
        "consumed",
        handle,
        client=client,
        batches=Batches(max_batch=64),
        receivers=receivers,
        prefetch=64,
        workers=2,
        wait_seconds=1,
    )
    began = time.perf_counter()
    with consumer:
        done.wait()
        took = time.perf_counter() - began
    return CONSUMED / took


def _timed(times: list[float], call: Callable[[], Any]) -> Any:
    began = time.perf_counter()
    result = call()
    times.append(time.perf_counter() - began)
    return result


def _connection(stack: Stack) -> Connection:
    key_id, _, secret = stack.headers["Authorization"].removeprefix("Bearer ").partition(":")
    return Connection(url=stack.url, access_key_id=key_id, secret=secret)
