"""Throughput over HTTP of our stack beside moto's SQS server: the same calls, clients and machine.

Ours writes every answered message to disk; moto keeps its messages in memory alone.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable
from typing import Any, Protocol

import httpx

from .servers import Stack, motos_sqs, our_stack
from .table import middle, show

CLIENTS = 4
MESSAGES = 800
ROUNDS = 3
BODY = "x" * 100
_AUTHORIZATION = "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/sqs/aws4_request"
"""moto reads the region and the service from it, and checks nothing."""


class Queue(Protocol):
    """A queue as a client of either service sees it."""

    most: int

    def send(self, count: int) -> None:
        """Send so many messages in one call."""
        ...

    def receive(self, count: int) -> list[str]:
        """Receive up to so many messages in one call; their receipts."""
        ...

    def delete(self, receipts: list[str]) -> None:
        """Delete messages in one call."""
        ...


class OurQueue:
    """A queue of the local stack."""

    most = 16

    def __init__(self, stack: Stack) -> None:
        self._http = httpx.Client(base_url=stack.url, headers=stack.headers, timeout=60)

    def create(self) -> None:
        """Make the queue."""
        self._http.put("/queues/bench").raise_for_status()

    def send(self, count: int) -> None:
        """One send."""
        self._call("messages", {"messages": [{"body": BODY}] * count})

    def receive(self, count: int) -> list[str]:
        """One receive."""
        held = self._call("messages/receive", {"max": count, "wait_seconds": 0.2})
        return [message["receipt"] for message in held["messages"]]

    def delete(self, receipts: list[str]) -> None:
        """One delete."""
        self._call("messages/delete", {"receipts": receipts})

    def _call(self, path: str, body: object) -> Any:
        answer = self._http.post(f"/queues/bench/{path}", json=body)
        answer.raise_for_status()
        return answer.json()


class MotosQueue:
    """A queue of moto's SQS server, by its JSON protocol."""

    most = 10

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(
            base_url=url,
            timeout=60,
            headers={
                "Content-Type": "application/x-amz-json-1.0",
                "Authorization": _AUTHORIZATION,
            },
        )
        self._queue = f"{url}/123456789012/bench"

    def create(self) -> None:
        """Make the queue."""
        self._call("CreateQueue", {"QueueName": "bench"})

    def send(self, count: int) -> None:
        """One SendMessage, or one SendMessageBatch."""
        if count == 1:
            self._call("SendMessage", {"QueueUrl": self._queue, "MessageBody": BODY})
            return
        entries = [{"Id": str(number), "MessageBody": BODY} for number in range(count)]
        self._call("SendMessageBatch", {"QueueUrl": self._queue, "Entries": entries})

    def receive(self, count: int) -> list[str]:
        """One ReceiveMessage."""
        asked = {"QueueUrl": self._queue, "MaxNumberOfMessages": count, "WaitTimeSeconds": 0}
        held = self._call("ReceiveMessage", asked).get("Messages", [])
        return [message["ReceiptHandle"] for message in held]

    def delete(self, receipts: list[str]) -> None:
        """One DeleteMessage, or one DeleteMessageBatch."""
        if len(receipts) == 1:
            self._call("DeleteMessage", {"QueueUrl": self._queue, "ReceiptHandle": receipts[0]})
            return
        entries = [
            {"Id": str(number), "ReceiptHandle": receipt} for number, receipt in enumerate(receipts)
        ]
        self._call("DeleteMessageBatch", {"QueueUrl": self._queue, "Entries": entries})

    def _call(self, action: str, body: object) -> Any:
        headers = {"X-Amz-Target": f"AmazonSQS.{action}"}
        answer = self._http.post("/", content=json.dumps(body), headers=headers)
        answer.raise_for_status()
        return answer.json() if answer.content else {}


def run() -> None:
    """Print the table."""
    with our_stack() as stack, motos_sqs() as url:
        OurQueue(stack).create()
        MotosQueue(url).create()
        figures: dict[tuple[str, bool, str], list[float]] = {}
        for _ in range(ROUNDS):
            for batches in (False, True):
                for name, make in (("ours", OurQueue), ("moto", MotosQueue)):
                    place = stack if name == "ours" else url
                    for step, rate in _measure(make, place, batches).items():
                        figures.setdefault((step, batches, name), []).append(rate)
    rows = []
    for batches in (False, True):
        for step in ("send", "receive and delete"):
            ours = figures[step, batches, "ours"]
            moto = figures[step, batches, "moto"]
            ratio = middle([a / b for a, b in zip(ours, moto, strict=True)])
            kind = "batches of 16 / 10" if batches else "singles"
            rows.append((f"{step}, {kind}", middle(ours), middle(moto), ratio))
    show(
        f"Messages a second over HTTP, {CLIENTS} clients, median of {ROUNDS} rounds in turn",
        ["what", "ours (durable)", "moto SQS (in memory)", "ratio"],
        rows,
    )


def _measure(make: Callable[[Any], Queue], place: object, batches: bool) -> dict[str, float]:
    """Messages a second of sending, and of receiving and deleting all of them."""
    share = MESSAGES // CLIENTS
    sent = _side_by_side(_send, make, place, batches, share)
    taken = _side_by_side(_drain, make, place, batches, share)
    return {"send": MESSAGES / sent, "receive and delete": MESSAGES / taken}


def _side_by_side(work: Callable[..., None], *arguments: Any) -> float:
    context = multiprocessing.get_context("fork")
    ready = context.Barrier(CLIENTS + 1)
    done = context.Value("i", 0)
    arguments = (ready, done, *arguments)
    clients = [context.Process(target=work, args=arguments) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    ready.wait()
    started = time.perf_counter()
    for client in clients:
        client.join()
    if any(client.exitcode for client in clients):
        raise RuntimeError("a client failed")
    return time.perf_counter() - started


def _send(
    ready: Any, done: Any, make: Callable[[Any], Queue], place: object, batches: bool, share: int
) -> None:
    queue = make(place)
    size = queue.most if batches else 1
    ready.wait()
    for first in range(0, share, size):
        queue.send(min(size, share - first))


def _drain(
    ready: Any, done: Any, make: Callable[[Any], Queue], place: object, batches: bool, share: int
) -> None:
    """Receive and delete until all clients together have had everything."""
    queue = make(place)
    size = queue.most if batches else 1
    ready.wait()
    while done.value < share * CLIENTS:
        receipts = queue.receive(size)
        if receipts:
            queue.delete(receipts)
            with done.get_lock():
                done.value += len(receipts)
