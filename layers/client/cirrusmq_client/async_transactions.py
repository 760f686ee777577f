"""`AsyncTransaction`: publishes together with a local transaction, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Self, TypeVar

from cirrusmq_client.steps import Asynchronous
from cirrusmq_client.tasks import TASKS
from cirrusmq_client.transactions import BaseTransaction

T = TypeVar("T")


class AsyncTransaction(Asynchronous, BaseTransaction[T]):
    """`Transaction` for the tasks of one event loop; the store's calls run in threads.

    async with producer.transaction("orders", check=store) as transaction:
        await transaction.run(["order 17"], lambda connection: connection.execute(...))
    """

    _concurrency = TASKS

    async def close(self) -> None:
        """Ends the checks, after the one under way."""
        if self._stop is not None:
            self._stop.set()
            await self._concurrency.join(self._workers)

    def _in_store(self, call: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: asyncio.to_thread(call)

    async def __aenter__(self) -> Self:
        self._start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()
