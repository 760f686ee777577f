"""`AsyncProducer`: sending and publishing for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar, Unpack

from cirrusmq_client.async_client import AsyncClient
from cirrusmq_client.async_transactions import AsyncTransaction
from cirrusmq_client.forking import renew_in_children
from cirrusmq_client.lingering import Lingering
from cirrusmq_client.messages import Message, MessageFields
from cirrusmq_client.outcomes import Published, Sent
from cirrusmq_client.producer import BaseProducer, check_producing, make_message
from cirrusmq_client.signals import first_on_signals
from cirrusmq_client.steps import Asynchronous
from cirrusmq_client.tasks import TASKS
from cirrusmq_client.transactions import LocalTransactions, TransactionOptions

T = TypeVar("T")


class AsyncProducer(Asynchronous, BaseProducer):
    """`Producer` for the tasks of one event loop.

        async with AsyncClient() as client, AsyncProducer(client) as producer:
            futures = [await producer.send_soon("orders", body) for body in bodies]
            await asyncio.gather(*futures)

    - `linger`: seconds that a message of `send_soon` waits to share a call with others; 0 to 10.
    - `sends`: tasks that send them, 1 to 64: the maximum of calls in flight.
    """

    client: AsyncClient

    def __init__(self, client: AsyncClient, *, linger: float = 0.005, sends: int = 4) -> None:
        check_producing(linger, sends)
        self.client = client
        self._lingering = Lingering(linger, sends, client, TASKS)
        self._loop: asyncio.AbstractEventLoop | None = None
        renew_in_children(self)

    def renew(self) -> None:
        """Makes new workers in a forked child, whose loop is another one."""
        self._loop = None

    async def send_soon(
        self, queue: str, body: str | bytes | Message, **fields: Unpack[MessageFields]
    ) -> asyncio.Future[Sent]:
        """Sends one message in a call with others of the same time. Returns a future of the answer.

        As `Producer.send_soon`: await this call for room, and the future for the answer. If a
        future is cancelled before its message is under way, the message is not sent. Every future
        ends: with NotSent if the loop ends before the producer is closed.
        """
        message = make_message(body, fields)
        return await self._put(self.client.send_each, queue, message, shared=True)

    async def publish_soon(
        self, topic: str, body: str | bytes | Message, **fields: Unpack[MessageFields]
    ) -> asyncio.Future[Published]:
        """Publishes one message in a call with others of the same time; as `send_soon`."""
        message = make_message(body, fields)
        return await self._put(self.client.publish, topic, message)

    def transaction(
        self, topic: str, *, check: LocalTransactions[T], **options: Unpack[TransactionOptions]
    ) -> AsyncTransaction[T]:
        """Returns publishes that take effect together with local transactions: `AsyncTransaction`.

        `options`: `group`, `check_after_seconds`, `max_checks`.
        """
        return AsyncTransaction(self.client, topic, check, **options)

    async def flush(self, timeout_seconds: float | None = None) -> bool:
        """Sends all waiting messages now, and waits for the answers.

        Returns False if `timeout_seconds` pass before that. Errors are in the futures.
        """
        in_time = bool(await self._lingering.flush(timeout_seconds))
        await asyncio.sleep(0)  # each future is set a turn of the loop after its message
        return in_time

    async def close(self, grace_seconds: float = 30.0) -> None:
        """Sends all waiting messages; then `send_soon` and `publish_soon` raise NotSent.

        A message without an answer after `grace_seconds` gets NotSent, `uncertain` if it was under
        way; if this call is cancelled, each does at once. The client stays open.
        """
        await self._lingering.close(grace_seconds)
        await asyncio.sleep(0)

    @asynccontextmanager
    async def closed_on_signals(self) -> AsyncIterator[None]:
        """Closes the producer at SIGTERM or Ctrl-C, then the signal acts as before.

        Works only in the main thread.
        """
        loop = asyncio.get_running_loop()

        def close() -> None:
            asyncio.run_coroutine_threadsafe(self.close(), loop).result()

        with first_on_signals(close):
            yield

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    async def _put(
        self, call: Any, name: str, message: Message, *, shared: bool = False
    ) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if self._loop is not loop:
            raise RuntimeError(
                "this AsyncProducer sends in the event loop of its first send_soon:"
                " make one in each loop"
            )
        await asyncio.sleep(0)  # so that a loop of these calls does not block the senders
        return asyncio.wrap_future(await self._lingering.put(call, name, message, shared=shared))
