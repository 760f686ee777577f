"""`AsyncClient`: every call of the HTTP contract, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Self

import httpx

from cirrusmq_client.client import BaseClient
from cirrusmq_client.connection import Connection
from cirrusmq_client.steps import Asynchronous
from cirrusmq_client.transport import BaseTransport


class AsyncTransport(Asynchronous, BaseTransport):
    """For the tasks of one event loop."""

    _http: httpx.AsyncClient

    @staticmethod
    async def _aside(compute: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.to_thread(compute, *arguments)

    def __init__(self, connection: Connection, **options: Any) -> None:
        super().__init__(connection, httpx.AsyncClient, asyncio.sleep, **options)

    async def close(self) -> None:
        """Close every connection."""
        await self._http.aclose()


class AsyncClient(Asynchronous, BaseClient):
    """`Client` for asyncio: the same calls, which are awaited.

        async with AsyncClient() as client:
            await client.send("orders", [Message("order 1")])
            async for queue in client.list_queues():
                print(queue["name"])

    For the tasks of one event loop. A call that is cancelled may have taken effect: after a
    cancelled `receive` its messages come again when their leases end.
    """

    _make_transport = AsyncTransport
    _transport: AsyncTransport

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()
