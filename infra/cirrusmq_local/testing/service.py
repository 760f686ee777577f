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
"""No host: its calls go into the world."""


class Service:
    """A world, its clock, and the client library's `Client` with a key of the account `test`.

        service.client.create_queue("orders")
        service.client.send("orders", [Message("two coffees")])
        (message,) = service.consume("orders", handle)

    What follows from a call is done when it is answered: a published message is in its groups.
    Time passes by `pass_seconds`, and where the service would wait: a long poll ends at once.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.world = World(seed=seed)
        self.client: Client = _WorldClient(self.world)

    @property
    def clock(self) -> ManualClock:
        """The service's time; `now_ms`, and `pass_seconds` of its own."""
        return self.world.clock

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass, then do what is due: the sweep, and what functions invoke."""
        self.clock.pass_seconds(seconds)
        self.world.run("sweep")
        self.world.settle()

    def consume(
        self,
        source: str | Source,
        handler: Handler | BatchHandler,
        *,
        most: int = BATCH,
        batches: Batches | None = None,
    ) -> Sequence[Received]:
        """Give a handler what can be received now, and do with it what it answers.

        As a `Consumer` does, in this thread and once: at most `most` messages, those of an ordered
        source one by one. `batches`: the handler takes lists. The messages that it was given.
        An exception of the handler is a retry, as in a consumer, and is logged; so is a result
        that is none. What ends a test, `pytest.fail` and Ctrl-C, is raised.
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
        while len(given) < most:
            size = 1 if upkeep.ordered else min(BATCH, most - len(given))
            messages = self.client.receive(shared, size, wait_seconds=0)
            if not messages:
                break
            held = leases.add(messages)
            settler.settle(zip(held, run(handle(messages)), strict=True))
            given += messages
        return given

    def close(self) -> None:
        """Close the client."""
        self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _attempt(handler: Callable[[Any], object], given: Any) -> object:
    """As a consumer calls it, in the test's own thread."""
    try:
        return handler(given)
    except BaseException as error:
        if _ends_a_test(error):
            raise
        return Raised(error)


def _ends_a_test(error: BaseException) -> bool:
    """Whether it is Ctrl-C, or pytest's own: `pytest.fail`, `pytest.skip`."""
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
    """One call at a time: a world is of one thread, and a producer has several."""

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
