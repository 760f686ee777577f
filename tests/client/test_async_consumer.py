"""The end of an AsyncConsumer: nothing that it holds is lost or forgotten.

Its results, order and leases are those of `test_consumers.py`, which runs with both kinds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.conftest import NewQueue
from tests.client.test_deletes_in_receives import calls

from cirrusmq_client import (
    AsyncClient,
    AsyncConsumer,
    Batches,
    Client,
    Message,
    Received,
)
from cirrusmq_client.outcomes import Outcome


class Handler:
    """Takes `seconds`, and notes what it began, ended, and had to leave."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.began: list[str] = []
        self.ended: list[str] = []
        self.cancelled: list[str] = []

    async def __call__(self, message: Received) -> None:
        self.began.append(message.text)
        try:
            await asyncio.sleep(self._seconds)
        except asyncio.CancelledError:
            self.cancelled.append(message.text)
            raise
        self.ended.append(message.text)

    async def wait(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.began) < count:
                await asyncio.sleep(0.01)


@asynccontextmanager
async def running(
    stack: Any, name: str, handler: Handler, **options: Any
) -> AsyncIterator[asyncio.Task[None]]:
    """A consumer's `run`, in a task."""
    async with AsyncClient(stack.connection) as client:
        chosen = {"workers": 2, "wait_seconds": 1, **options}
        consumer = AsyncConsumer(name, handler, client=client, **chosen)
        task = asyncio.create_task(consumer.run())
        await handler.wait(chosen["workers"])
        yield task
        left = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
        assert left == [], "something still runs"


def counts(client: Client, queue: str) -> tuple[int, int]:
    shown = client.show_queue(queue)["counts"]
    return shown["active"], shown["inactive"]


@pytest.fixture
def filled(client: Client, new_queue: NewQueue) -> str:
    """A queue with ten messages, whose leases are long."""
    name = new_queue(visibility_timeout_seconds=600)
    client.send(name, [Message(str(number)) for number in range(10)])
    return name


def test_cancelled_it_lets_handlers_end_and_gives_the_rest_back(
    stack: Any, client: Client, filled: str
) -> None:
    handler = Handler(1.5)

    async def use() -> tuple[int, int]:
        async with running(stack, filled, handler) as task:
            task.cancel()
            await asyncio.sleep(0.7)
            given_back = await asyncio.to_thread(counts, client, filled)
            with pytest.raises(asyncio.CancelledError):
                await task
            return given_back

    active, inactive = asyncio.run(use())

    assert (active, inactive) == (8, 2)
    assert sorted(handler.ended) == sorted(handler.began)
    assert counts(client, filled) == (8, 0)


def test_cancelled_twice_it_cancels_handlers_and_gives_all_back(
    stack: Any, client: Client, filled: str
) -> None:
    handler = Handler(60)

    async def use() -> None:
        async with running(stack, filled, handler) as task:
            task.cancel()
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    began = time.monotonic()
    asyncio.run(use())

    assert time.monotonic() - began < 20
    assert sorted(handler.cancelled) == sorted(handler.began)
    assert counts(client, filled) == (10, 0)


def test_running_handlers_are_cancelled_after_the_grace_time(
    stack: Any, client: Client, filled: str
) -> None:
    handler = Handler(60)

    async def use() -> None:
        async with AsyncClient(stack.connection) as client:
            options: dict[str, Any] = {"workers": 2, "wait_seconds": 1, "grace_seconds": 0.3}
            async with AsyncConsumer(filled, handler, client=client, **options):
                await handler.wait(2)

    asyncio.run(use())

    assert sorted(handler.cancelled) == sorted(handler.began)
    assert counts(client, filled) == (10, 0)


def test_an_unfinished_group_comes_again_in_its_order(
    stack: Any, client: Client, new_queue: NewQueue
) -> None:
    name = new_queue(ordered=True, visibility_timeout_seconds=600)
    client.send(name, [Message(str(number), group="g") for number in range(6)])
    handler = Handler(60)
    # With no room for more there is no receive under way, which could claim what is given back.
    options = {"workers": 1, "prefetch": 5, "grace_seconds": 0}

    async def use() -> None:
        async with running(stack, name, handler, **options) as task:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(use())

    assert handler.began == ["0"]
    received = client.receive(name, 16, wait_seconds=5)
    assert [message.text for message in received] == [str(number) for number in range(6)]


def test_a_cancellation_inside_a_handler_fails_only_its_message(
    stack: Any, client: Client, queue: str
) -> None:
    client.send(queue, [Message("a"), Message("b")])
    handled: list[tuple[str, int]] = []

    async def handle(message: Received) -> None:
        handled.append((message.text, message.redeliveries))
        if message.text == "a" and message.redeliveries == 0:
            inner = asyncio.create_task(asyncio.sleep(60))
            inner.cancel()
            await inner

    async def use() -> None:
        async with (
            AsyncClient(stack.connection) as client,
            AsyncConsumer(queue, handle, client=client, workers=1, wait_seconds=1),
            asyncio.timeout(20),
        ):
            while len(handled) < 3:
                await asyncio.sleep(0.01)

    asyncio.run(use())
    assert sorted(handled) == [("a", 0), ("a", 1), ("b", 0)]
    assert counts(client, queue) == (0, 0)


def test_many_handlers_run_side_by_side(stack: Any, client: Client, queue: str) -> None:
    for _ in range(6):
        client.send(queue, [Message("x")] * 16)
    handler = Handler(1)

    async def use() -> float:
        async with AsyncClient(stack.connection) as client:
            began = time.monotonic()
            async with AsyncConsumer(queue, handler, client=client, workers=96, wait_seconds=1):
                await handler.wait(96)
            return time.monotonic() - began

    # One after another they would take 96 seconds.
    assert asyncio.run(use()) < 30
    assert len(handler.ended) == 96


def test_a_consumer_of_batches_makes_one_call_for_sixteen(
    proxy: Any, stack: Any, client: Client, new_queue: NewQueue
) -> None:
    name = new_queue(partitions=1)
    for _ in range(10):
        client.send(name, [Message("x")] * 16)
    sizes: list[int] = []

    async def handle(messages: list[Received]) -> None:
        await asyncio.sleep(0.005)  # a receive would come meanwhile
        sizes.append(len(messages))

    async def use() -> None:
        async with (
            AsyncClient(stack.behind(proxy.url)) as client,
            AsyncConsumer(
                *(name, handle),
                client=client,
                batches=Batches(max_batch=16),
                workers=1,
                prefetch=0,
                wait_seconds=1,
            ),
            asyncio.timeout(20),
        ):
            while sum(sizes) < 160:
                await asyncio.sleep(0.01)

    asyncio.run(use())

    assert counts(client, name) == (0, 0)
    assert sizes == [16] * 10
    made = calls(proxy)
    assert made["receive"] <= 11
    assert made["delete"] <= 3
    assert made["receive"] + made["delete"] <= 20


class Service:
    """The calls of a consumer; the first one that deletes never answers."""

    server_seconds, spans = 0.0, None

    def __init__(self, ordered: bool) -> None:
        self._ordered = ordered
        self.deleted: list[str] = []
        self.deleting = asyncio.Event()

    async def health(self) -> Any:
        return {"time_scale": 1.0}

    async def show_queue(self, name: str) -> Any:
        return {"ordered": self._ordered, "retry": None, "dead_letter": None}

    async def receive(self, *_: Any, **__: Any) -> list[Received]:
        return [Received({"id": "1", "receipt": "r1", "visible_at": "1970-01-01T00:10:00Z"})]

    async def delete_and_receive(self, *_: Any, **__: Any) -> Any:
        self.deleting.set()
        await asyncio.Event().wait()

    async def delete(self, _: Any, receipts: list[str]) -> Outcome:
        if not self.deleting.is_set():
            self.deleting.set()
            await asyncio.Event().wait()
        self.deleted += receipts
        return Outcome(dict.fromkeys(receipts), [])


@pytest.mark.parametrize("ordered", [False, True], ids=["by a receive", "in order"])
def test_a_cancelled_delete_is_made_all_the_same(ordered: bool) -> None:
    async def use() -> list[str]:
        service = Service(ordered)
        client: Any = service

        async def handle(message: Received) -> None:
            pass

        async with (
            AsyncConsumer("q", handle, client=client, workers=1, prefetch=0, grace_seconds=0),
            asyncio.timeout(20),
        ):
            await service.deleting.wait()
        return service.deleted

    assert "r1" in asyncio.run(use())
