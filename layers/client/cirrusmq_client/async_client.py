"""`AsyncClient`: every call of the HTTP contract, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Self

import httpx

from cirrusmq_client.client import BaseClient
from cirrusmq_client.connection import Connection
from cirrusmq_client.steps import Asynchronous
from cirrusmq_client.transport import CONNECTIONS, BaseTransport


class AsyncTransport(Asynchronous, BaseTransport):
    """A transport for the tasks of one or more event loops; each loop has its own pool.

    A connection belongs to the loop that made it. Pools of closed loops are dropped.
    """

    _threads: ThreadPoolExecutor | None = None
    """Threads of calls in this process; None before the first."""
    _left: ClassVar[list[dict[Any, httpx.AsyncClient]]] = []
    """Pools of parent processes: kept, since a loop might unregister their sockets."""

    @staticmethod
    async def _aside(compute: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.to_thread(compute, *arguments)

    async def _waiting(self, compute: Callable[..., Any], *arguments: Any) -> Any:
        # In threads of their own: waiting receives must not hold up what `to_thread` is for.
        if self._threads is None:
            self._threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="cirrusmq-own")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, compute, *arguments)

    def __init__(self, connection: Connection, **options: Any) -> None:
        self._pools: dict[asyncio.AbstractEventLoop | None, httpx.AsyncClient] = {}
        self._closed = False
        super().__init__(connection, httpx.AsyncClient, asyncio.sleep, **options)

    @property
    def _http(self) -> httpx.AsyncClient:
        """The pool of the running loop, or without one, of the first loop that makes a call."""
        loop = _running()
        pool = self._pools.get(loop)
        if pool is None:
            pool = self._pools.pop(None, None) or self._new_pool()
            self._pools[loop] = pool
        return pool

    @_http.setter
    def _http(self, pool: httpx.AsyncClient) -> None:
        self._pools[None] = pool

    def _new_pool(self) -> httpx.AsyncClient:
        if self._closed:
            raise RuntimeError("the client is closed")
        for loop in [each for each in list(self._pools) if each and each.is_closed()]:
            del self._pools[loop]
        pool: httpx.AsyncClient = self._make_http()
        return pool

    def renew(self) -> None:
        """Makes new pools in a forked child."""
        self._left.append(self._pools)
        self._pools = {}
        self._threads = None

    async def close(self) -> None:
        """Closes every connection; other loops close theirs a little later."""
        self._closed = True
        if self._own is not None:
            self._own.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        here = asyncio.get_running_loop()
        for loop, pool in list(self._pools.items()):
            if loop is None or loop is here:
                await pool.aclose()
            elif not loop.is_closed():
                asyncio.run_coroutine_threadsafe(pool.aclose(), loop)


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class AsyncClient(Asynchronous, BaseClient):
    """`Client` for asyncio: the same calls, to be awaited.

        async with AsyncClient() as client:
            await client.send("orders", [Message("order 1")])
            async for queue in client.list_queues():
                print(queue["name"])

    Each event loop has its own connections. A cancelled call may have taken effect: after a
    cancelled `receive` its messages are delivered again when their leases expire.
    """

    _make_transport = AsyncTransport
    _transport: AsyncTransport

    async def close(self) -> None:
        """Closes every connection."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()
