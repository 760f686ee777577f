"""`Client`: every call of the HTTP contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Self

from cirrusmq_client.account_calls import AccountCalls
from cirrusmq_client.backoff import Backoff
from cirrusmq_client.connection import DATA, Connection, find_connection
from cirrusmq_client.in_process import InProcess
from cirrusmq_client.queue_calls import QueueCalls
from cirrusmq_client.reply_calls import ReplyCalls
from cirrusmq_client.schedule_calls import ScheduleCalls
from cirrusmq_client.steps import Blocking
from cirrusmq_client.topic_calls import TopicCalls
from cirrusmq_client.tracing import Tracing, open_spans
from cirrusmq_client.transport import BaseTransport, Transport


class BaseClient(QueueCalls, ReplyCalls, TopicCalls, ScheduleCalls, AccountCalls):
    """Every call, in steps; a subclass has the driver and the transport."""

    _make_transport: ClassVar[Callable[..., BaseTransport]]

    def __init__(
        self,
        connection: Connection | None = None,
        *,
        data: Path | str = DATA,
        retry: Backoff | None = None,
        direct: bool = True,
        in_process: bool | InProcess = False,
        tracing: bool | Tracing = False,
    ) -> None:
        found = find_connection(data) if connection is None else connection
        options = {"direct": direct, "in_process": in_process}
        super().__init__(self._make_transport(found, retry=retry or Backoff(), **options))
        self.spans = open_spans(tracing, found.url)
        if self.spans is not None:
            self.spans.wrap_calls(self)

    @property
    def url(self) -> str:
        """Base URL of the service."""
        return self._transport.url

    @property
    def server_seconds(self) -> float:
        """The service's time, or a little later: seconds since the Unix epoch."""
        return self._transport.clock.latest()


class Client(Blocking, BaseClient):
    """All calls of the service, with one access key.

    A client has one pool of connections, and is safe to use from several threads. Close it at the
    end, or use it in `with`.

    - `connection`: URL and key; None takes CIRRUSMQ_URL, CIRRUSMQ_ACCESS_KEY_ID and
      CIRRUSMQ_SECRET, or else `<data>/connection.json`. Raises NotConfigured if both are missing.
    - `retry`: tries and pauses of repeated calls; None is `Backoff()`.
    - `direct`: from the third call on, calls may go to the functions' own URLs, which the service
      names.
    - `in_process`: True if this process makes the calls of plain queues itself, on the service's
      tables, by its AWS credentials; `InProcess` says how. Raises NotConfigured without the extra
      package.
    - `tracing`: True makes spans of OpenTelemetry for calls on messages and for consumers'
      handlers, and messages carry their context; `Tracing` says how. Raises NotConfigured without
      the extra package.
    """

    _make_transport = Transport
    _transport: Transport

    def close(self) -> None:
        """Closes every connection."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
