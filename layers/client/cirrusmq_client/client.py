"""`Client`: every call of the HTTP contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Self

from cirrusmq_client.account_calls import AccountCalls
from cirrusmq_client.backoff import Backoff
from cirrusmq_client.connection import DATA, Connection, find_connection
from cirrusmq_client.in_process import InProcess
from cirrusmq_client.message_calls import MessageCalls
from cirrusmq_client.queue_calls import QueueCalls
from cirrusmq_client.steps import Blocking
from cirrusmq_client.topic_calls import TopicCalls
from cirrusmq_client.transport import BaseTransport, Transport


class BaseClient(QueueCalls, MessageCalls, TopicCalls, AccountCalls):
    """Every call, in steps; a class of it has their driver, and its transport."""

    _make_transport: ClassVar[Callable[..., BaseTransport]]

    def __init__(
        self,
        connection: Connection | None = None,
        *,
        data: Path | str = DATA,
        retry: Backoff | None = None,
        direct: bool = True,
        in_process: bool | InProcess = False,
    ) -> None:
        found = find_connection(data) if connection is None else connection
        options = {"direct": direct, "in_process": in_process}
        super().__init__(self._make_transport(found, retry=retry or Backoff(), **options))

    @property
    def url(self) -> str:
        """The service's base URL."""
        return self._transport.url

    @property
    def server_seconds(self) -> float:
        """The service's time, or a little after: seconds since the Unix epoch."""
        return self._transport.clock.latest()


class Client(Blocking, BaseClient):
    """The service, as the holder of one access key reaches it.

    One pool of connections, safe to use from several threads. Without a `connection` it takes the
    one of CIRRUSMQ_URL, CIRRUSMQ_ACCESS_KEY_ID and CIRRUSMQ_SECRET, else of
    `<data>/connection.json`; NotConfigured where there is none. `direct`: whether calls may go to
    the URLs of their own that the service names, from the third on. `in_process`: whether this
    process itself sends, receives and settles messages of plain queues, on the service's tables,
    by its own AWS credentials; `InProcess` says how. NotConfigured without the extra package.
    """

    _make_transport = Transport
    _transport: Transport

    def close(self) -> None:
        """Close every connection."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
