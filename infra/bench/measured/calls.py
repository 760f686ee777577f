"""CPU time of a call, beside the SDK's conditional put, repeated for each store call.

The deployed handlers run in this process, on prepared events, over the embedded engine in memory.
The bare put uses botocore's default client and headers, and none of our code; ours is the client
that is deployed, whose requests are prepared. Both include the engine's work, which DynamoDB does
in an account, but neither signing nor sending: the engine answers before a request is signed. World
runs parallel calls one after the other, without threads.
"""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import botocore.session
import msgspec

from cirrusmq.wiring import bootstrap
from cirrusmq_local.cloud.functions import load_handler
from cirrusmq_local.cloud.invocation import Handler
from cirrusmq_local.cloud.template import TEMPLATE, load
from cirrusmq_local.engine import attach
from cirrusmq_local.testing.world import World

from ..counted import bodies
from ..drawing.tables import middle, show
from .own_calls import OwnProcess
from .timed_calls import SIZE, TimedCalls

RUNS = 200
BATCH = 16
_WARM = 20
_WAITING = 32
"""Waiting messages in the queue, from other sends of the same size."""
_QUEUE = "/queues/work"
_PATHS = {
    "send": f"{_QUEUE}/messages",
    "receive": f"{_QUEUE}/messages/receive",
    "delete": f"{_QUEUE}/messages/delete",
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of the table: messages of `sends` sends, which are sent, or received and deleted."""

    name: str
    goal: float
    """Maximum ratio to the bare puts of as many store calls."""
    sends: int
    of: int
    """Number of messages in each send."""
    consumes: bool
    own: bool = False
    """True if the client makes the calls in its own process, without functions."""


ROWS = (
    Row(name="send one", goal=1.7, sends=1, of=1, consumes=False),
    Row(name="receive and delete one", goal=1.7, sends=1, of=1, consumes=True),
    Row(name="send 16", goal=3, sends=1, of=BATCH, consumes=False),
    Row(name="receive and delete 16 of one send", goal=3, sends=1, of=BATCH, consumes=True),
    Row(name="receive and delete 16 of 16 sends", goal=1.5, sends=BATCH, of=1, consumes=True),
    Row(name="send one, in process", goal=1.2, sends=1, of=1, consumes=False, own=True),
    Row(
        name="receive and delete one, in process", goal=1.7, sends=1, of=1, consumes=True, own=True
    ),
)


@dataclass(kw_only=True)
class Measured:
    """A row's figures: medians, in microseconds."""

    cpu: float
    store_calls: float
    bare: float

    @property
    def ratio(self) -> float:
        """Ratio of its CPU to the CPU of bare puts, one for each store call."""
        return self.cpu / (self.store_calls * self.bare)


def run() -> None:
    """Prints the table."""
    measured = {row: measure(row) for row in ROWS}
    show(
        f"CPU of calls with messages of 1 KB, µs (medians of {RUNS}; the engine in memory)",
        ["", "CPU", "store calls", "bare put", "times bare", "goal"],
        [
            (row.name, each.cpu, each.store_calls, each.bare, each.ratio, f"≤ {row.goal}")
            for row, each in measured.items()
        ],
    )


def measure(row: Row, runs: int = RUNS) -> Measured:
    """Alternates our call and a bare put, so that the ratio is valid on a noisy machine."""
    service: TimedCalls = OwnProcess() if row.own else Service()
    put = bare_puts(service.world)
    for _ in range(_WAITING // row.of):
        service.send(row.of)
    ours, bare, calls = [], [], []
    gc.collect()
    gc.freeze()  # as a function does after its imports
    try:
        for number in range(_WARM + runs):
            took, called = _call(service, row)
            began = time.process_time()
            put()
            if number >= _WARM:
                bare.append(1e6 * (time.process_time() - began))
                ours.append(1e6 * took)
                calls.append(called)
    finally:
        gc.unfreeze()
    return Measured(cpu=middle(ours), store_calls=middle(calls), bare=middle(bare))


def _call(service: TimedCalls, row: Row) -> tuple[float, int]:
    """Returns CPU seconds and store calls of a row; the queue's length does not change."""
    if row.consumes:
        for _ in range(row.sends):
            service.send(row.of)
        return service.take(row.sends * row.of)
    sent = service.send(row.of)
    service.take(row.of)
    return sent


@dataclass(frozen=True)
class Context:
    """An invocation with half a minute left."""

    aws_request_id: str = "00000000-0000-0000-0000-000000000000"

    def get_remaining_time_in_millis(self) -> int:
        return 30_000


class Service(TimedCalls):
    """Calls the functions of a queue, as Lambda's runtime does."""

    def __init__(self) -> None:
        super().__init__(World(by_sdk=True))
        client = self.world.client("alice")
        client.put(_QUEUE, {"partitions": 1})
        self._authorization = client.authorization
        functions = {each.folder.name: each for each in load(TEMPLATE).functions}
        self._handlers: dict[str, Handler] = {
            name: load_handler(functions[name]) for name in _PATHS
        }

    def timed(self, name: str, body: Any) -> tuple[float, int, Any]:
        """As `TimedCalls.timed`."""
        headers = {"authorization": self._authorization, "content-type": "application/json"}
        _, event, _ = self.world.event("POST", _PATHS[name], msgspec.json.encode(body), headers)
        before = self.store_calls
        with bootstrap.serving(self.world.core):
            began = time.process_time()
            answer = self._handlers[name](event, Context())
            took = time.process_time() - began
        assert answer["statusCode"] in (200, 201), answer["body"]
        return took, self.store_calls - before, msgspec.json.decode(answer["body"])


def bare_puts(world: World) -> Callable[[], object]:
    """Returns a call that puts 1 KB under a new key, by the SDK alone."""
    session = botocore.session.Session()
    client = session.create_client("dynamodb", region_name="us-east-1")
    attach(world.engine, client)
    content, numbers = bodies.text(SIZE)["body"].encode(), itertools.count()

    def put() -> object:
        return client.put_item(
            TableName=world.tables.messages,
            Item={
                "pk": {"S": "bare"},
                "sk": {"S": f"{next(numbers):013d}"},
                "b": {"B": content},
            },
            ConditionExpression="attribute_not_exists(pk)",
        )

    return put
