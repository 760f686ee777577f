"""`cirrusmq bench`: how many messages a queue takes and gives, and how long they take."""

from __future__ import annotations

import statistics
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import typer
from rich.progress import Progress, TaskID

from cirrusmq_client import Batches, Client, Consumer, Message, Received
from cirrusmq_client.producer import BATCH_BYTES, BATCH_MESSAGES
from cirrusmq_local.commands.arguments import DATA, Attributes, Data, Json, read_attributes
from cirrusmq_local.commands.calls import connect
from cirrusmq_local.commands.console import make_progress, print_json, print_table

DELAY_MESSAGES = 50
NUMBER_BYTES = 8


class Run:
    """Messages through one queue; their bodies begin with a number."""

    def __init__(self, client: Client, queue: str, count: int, size: int) -> None:
        self._client, self._queue, self._count = client, queue, count
        self._padding = "x" * (size - NUMBER_BYTES)
        self._batch = max(1, min(BATCH_MESSAGES, BATCH_BYTES // size))
        self._lock = threading.Lock()

    def send(self, senders: int, progress: Progress, task: TaskID) -> float:
        """Messages a second, sent in batches."""
        starts = range(0, self._count, self._batch)
        began = time.perf_counter()
        with ThreadPoolExecutor(senders) as pool:
            for sent in pool.map(self._send, starts):
                progress.advance(task, sent)
        return self._count / (time.perf_counter() - began)

    def receive(self, receivers: int, progress: Progress, task: TaskID) -> float:
        """Messages a second, received and deleted."""
        left = self._count
        done = threading.Event()

        def handle(messages: list[Received]) -> None:
            nonlocal left
            with self._lock:
                left -= len(messages)
                progress.advance(task, len(messages))
                if left <= 0:
                    done.set()

        consumer = Consumer(
            self._queue,
            handle,
            client=self._client,
            batches=Batches(),
            receivers=receivers,
            prefetch=4 * BATCH_MESSAGES,
            wait_seconds=1,
        )
        began = time.perf_counter()
        with consumer:
            done.wait()
            took = time.perf_counter() - began
        return self._count / took

    def delays(self, progress: Progress, task: TaskID) -> list[float]:
        """Milliseconds from the call that sends a message to its handler, one at a time."""
        came = threading.Event()
        delays = []
        with Consumer(self._queue, lambda message: came.set(), client=self._client, wait_seconds=1):
            for number in range(DELAY_MESSAGES):
                came.clear()
                began = time.perf_counter()
                self._client.send(self._queue, [self._message(number)])
                came.wait()
                delays.append(1_000 * (time.perf_counter() - began))
                progress.advance(task)
        return delays

    def _send(self, start: int) -> int:
        numbers = range(start, min(start + self._batch, self._count))
        return len(self._client.send(self._queue, [self._message(number) for number in numbers]))

    def _message(self, number: int) -> Message:
        return Message(f"{number:0{NUMBER_BYTES}}{self._padding}")


def bench(
    messages: Annotated[int, typer.Option(help="How many.", min=1, max=10_000_000)] = 10_000,
    size: Annotated[
        int, typer.Option("--bytes", help="Of each body.", min=NUMBER_BYTES, max=262_144)
    ] = 100,
    senders: Annotated[int, typer.Option(help="Threads that send.", min=1, max=64)] = 2,
    receivers: Annotated[int, typer.Option(help="Threads that receive.", min=1, max=64)] = 2,
    attribute: Attributes = None,
    as_json: Json = False,
    data: Data = DATA,
) -> None:
    """Measure throughput and delay of a queue made for it, then delete the queue."""
    client = connect(data)
    queue = f"bench-{uuid.uuid4().hex[:12]}"
    client.create_queue(queue, {"max_message_bytes": 262_144} | read_attributes(attribute))
    try:
        figures = _measure(Run(client, queue, messages, size), messages, senders, receivers)
    finally:
        client.delete_queue(queue)
    if as_json:
        print_json({"messages": messages, "bytes": size, **figures})
    else:
        title = f"{messages:,} messages of {size:,} bytes"
        print_table(["figure", "value"], [(name, figures[name]) for name in figures], title=title)


def _measure(run: Run, messages: int, senders: int, receivers: int) -> dict[str, Any]:
    with make_progress(total=True) as progress:
        sent = run.send(senders, progress, progress.add_task("sending", total=messages))
        received = run.receive(receivers, progress, progress.add_task("receiving", total=messages))
        delays = run.delays(progress, progress.add_task("delays", total=DELAY_MESSAGES))
    return {
        "sent_per_second": round(sent),
        "received_per_second": round(received),
        "delay_median_ms": round(statistics.median(delays), 1),
        "delay_p99_ms": round(statistics.quantiles(delays, n=100)[98], 1),
    }
