"""A program that calls the tables itself. Run by `test_own_process.py`.

python own_process.py WAY QUEUE: sends, receives and deletes messages, by threads or by asyncio, and
tells as JSON what it did by the URL and what by DynamoDB.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import botocore.client
import httpx
from opentelemetry.sdk.trace import TracerProvider

from cirrusmq_client import AsyncClient, Client, InProcess, Message
from cirrusmq_client.tracing import Tracing

paths: Counter[str] = Counter()
operations: Counter[str] = Counter()


def note_calls() -> None:
    """Note each call that is made: by path, or by its operation."""
    for transport, name in (
        (httpx.HTTPTransport, "handle_request"),
        (httpx.AsyncHTTPTransport, "handle_async_request"),
    ):
        _note_paths(transport, name)
    call = botocore.client.BaseClient._make_api_call

    def noted(self: Any, operation: str, request: Any) -> Any:
        operations[operation] += 1
        return call(self, operation, request)

    botocore.client.BaseClient._make_api_call = noted


def _note_paths(transport: Any, name: str) -> None:
    handle = getattr(transport, name)

    def noted(self: Any, request: httpx.Request) -> Any:
        paths[request.url.path] += 1
        return handle(self, request)

    setattr(transport, name, noted)


def by_threads(queue: str) -> list[str]:
    taken: list[str] = []
    with Client(in_process=True) as client:
        for number in range(20):
            client.send(queue, [Message(f"message {number}")])
        held: list[str] = []
        while len(taken) < 20:
            exchanged = client.delete_and_receive(queue, held, 4, wait_seconds=5)
            taken += [message.text for message in exchanged.messages]
            held = [message.receipt for message in exchanged.messages]
            client.change_visibility(queue, dict.fromkeys(held, 60))
        assert len(client.delete(queue, held).done) == len(held)
        begun = time.monotonic()
        assert client.receive(queue, wait_seconds=1.5) == []
        assert time.monotonic() - begun >= 1.4
    return taken


async def by_asyncio(queue: str) -> list[str]:
    taken: list[str] = []
    async with AsyncClient(in_process=InProcess(look_seconds=0.05)) as client:
        await client.send(queue, [Message("first")])
        waiting = [asyncio.create_task(client.receive(queue, wait_seconds=5)) for _ in range(20)]
        for number in range(19):
            await client.send(queue, [Message(f"message {number}")])
        for received in await asyncio.gather(*waiting):
            taken += [message.text for message in received]
            await client.delete(queue, [message.receipt for message in received])
    return taken


def with_spans(queue: str) -> list[str]:
    """Attributes of messages that were sent within one span, and how often they have its trace."""
    provider = TracerProvider()
    held: list[str] = []
    with Client(in_process=True, tracing=Tracing(tracer_provider=provider)) as client:
        with provider.get_tracer("app").start_as_current_span("order") as span:
            for number in range(3):
                client.send(queue, [Message(str(number))])
        while len(held) < 3:
            for message in client.receive(queue, 16, wait_seconds=5):
                held.append(str(message.attributes["traceparent"])[3:35])
    assert set(held) == {f"{span.get_span_context().trace_id:032x}"}
    return held


WAYS: dict[str, Callable[[str], list[str]]] = {
    "threads": by_threads,
    "tasks": lambda queue: asyncio.run(by_asyncio(queue)),
    "spans": with_spans,
}

if __name__ == "__main__":
    note_calls()
    way, queue = sys.argv[1:]
    bodies = WAYS[way](queue)
    told = {"taken": sorted(bodies), "paths": paths, "operations": operations}
    print(json.dumps(told))
