"""The service in memory for tests of programs that use the client library."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from email.utils import formatdate
from functools import partial
from typing import Any, Self

import httpx

from cirrusmq_client import Ack, Backoff, Batches, Client, Connection, Received
from cirrusmq_client.calls import Calls
from cirrusmq_client.handling import (
    BatchHandler,
    Handler,
    Raised,
    check_handler,
    one_by_one,
    together,
)
from cirrusmq_client.leases import BATCH, Leases
from cirrusmq_client.options import Options
from cirrusmq_client.settling import Settler
from cirrusmq_client.sources import Source, source_of
from cirrusmq_client.steps import run
from cirrusmq_client.transport import BaseTransport, Transport
from cirrusmq_client.upkeep import Upkeep
from cirrusmq_local.testing.clock import ManualClock
from cirrusmq_local.testing.world import World

URL = "http://cirrusmq.test"
"""URL of the client; it names no host, as calls go to the world."""


class Service:
    """A world, its clock, and the client library's `Client` with a key of the account `test`.

        service.client.create_queue("orders")
        service.client.send("orders", [Message("two coffees")])
        (message,) = service.consume("orders", handle)

    The effects of a call are complete at its answer: a published message is in its groups. Time
    passes by `pass_seconds`, and when the service would wait: a long poll ends at once.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.world = World(seed=seed)
        self.client: Client = _WorldClient(self.world)

    @property
    def clock(self) -> ManualClock:
        """The service's clock; its own `pass_seconds` runs no due work."""
        return self.world.clock

    def pass_seconds(self, seconds: float) -> None:
        """Moves the clock, then runs the due work: the sweep, and invoked functions."""
        self.clock.pass_seconds(seconds)
        self.world.run("sweep")
        self.world.settle()

    def consume(
        self,
        source: str | Source,
        handler: Handler | BatchHandler,
        *,
        limit: int = BATCH,
        batches: Batches | None = None,
    ) -> Sequence[Received]:
        """Receives messages, calls a handler with them, and settles them by its results.

        Works as a `Consumer` does, but once and in this thread. Returns the messages that the
        handler got: at most `limit`, one by one from an ordered source. `batches`: the handler
        takes lists.
        An exception of the handler, or an invalid result, is a retry, as in a consumer, and is
        logged. An exception that ends a test, as of `pytest.fail` and Ctrl-C, is raised.
        """
        check_handler(handler)
        shared = source_of(source)
        wrap = one_by_one if batches is None else together
        handle = wrap(handler, Ack(), shared, _attempt)
        upkeep = Upkeep(self.client, shared, Options(batches=batches))
        upkeep.read()
        leases = Leases(self.client, shared)
        settler = Settler(self.client, shared, leases, upkeep)
        given: list[Received] = []
        while len(given) < limit:
            size = 1 if upkeep.ordered else min(BATCH, limit - len(given))
            messages = self.client.receive(shared, size, wait_seconds=0)
            if not messages:
                break
            held = leases.add(messages)
            settler.settle(zip(held, run(handle(messages)), strict=True))
            given += messages
        return given

    def close(self) -> None:
        """Closes the client."""
        self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _attempt(handler: Callable[[Any], object], given: Any) -> object:
    """Calls the handler as a consumer does, in the test's own thread. Returns its result."""
    try:
        return handler(given)
    except BaseException as error:
        if _ends_a_test(error):
            raise
        return Raised(error)


def _ends_a_test(error: BaseException) -> bool:
    """Returns True for Ctrl-C and pytest's own: `pytest.fail`, `pytest.skip`."""
    outcomes = sys.modules.get("_pytest.outcomes")
    ends = KeyboardInterrupt if outcomes is None else (KeyboardInterrupt, outcomes.OutcomeException)
    return isinstance(error, ends)


class _WorldClient(Client):
    """A client whose calls a world answers."""

    def __init__(self, world: World) -> None:
        key, _, secret = world.client("test").authorization.removeprefix("Bearer ").partition(":")
        connection = Connection(url=URL, access_key_id=key, secret=secret)
        Calls.__init__(self, _WorldTransport(world, connection))


class _WorldTransport(Transport):
    """Does one call at a time: a world needs one thread, and a producer has several."""

    def __init__(self, world: World, connection: Connection) -> None:
        self._world = world
        self._turn = threading.RLock()
        answering = partial(httpx.Client, transport=httpx.MockTransport(self._reply))
        BaseTransport.__init__(
            self, connection, answering, world.clock.sleep, retry=Backoff(), direct=False
        )

    def _reply(self, request: httpx.Request) -> httpx.Response:
        with self._turn:
            reply = self._world.call(
                request.method,
                request.url.raw_path.decode().partition("?")[0],
                request.content,
                {name: value for name, value in request.headers.items() if name != "host"},
                request.url.query.decode(),
            )
            self._world.settle()
            now = formatdate(self._world.clock.now_ms() / 1_000, usegmt=True)
        headers = {
            name: value
            for name, value in reply.headers.items()
            if name.lower() not in ("content-encoding", "content-length")
        }
        return httpx.Response(
            reply.status, headers={**headers, "date": now}, content=reply.text.encode()
        )
