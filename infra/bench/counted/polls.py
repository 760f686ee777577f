"""The delay of a message that ends a long poll, and the cost of polls without messages.

One consumer repeats polls of 20 s. An environment with separate caches and a separate clock sends a
message at a random time. Time is simulated: two runs give the same figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from statistics import median, quantiles
from typing import NamedTuple

from msgspec.structs import replace

from cirrusmq.base import ulid
from cirrusmq.base.limits import CACHE_MS
from cirrusmq.runtime.cache import Cache
from cirrusmq.runtime.core import Core
from cirrusmq_local.testing.clock import ManualClock
from cirrusmq_local.testing.world import Client, World

from ..drawing.tables import show

PARTITIONS = (1, 4, 16, 64, 255)
SKEWS_MS = (-2_000, 0, 2_000)
POLL_SECONDS = 20
LONGEST_SECONDS = 25.0
TRIALS = 200
"""Messages for each skew: the median of fewer is off by more than 0.02 s."""


class Delay(NamedTuple):
    """The delay of a message that ended a poll, in seconds."""

    sent: float
    """Delay since the send."""
    due: float
    """Delay since the time at which it is receivable, by the consumer's clock."""


def run() -> None:
    """Prints the curve."""
    rows = []
    for partitions in PARTITIONS:
        idle = idle_units(partitions)
        for skew_ms in SKEWS_MS:
            late = list(delays(partitions, skew_ms, TRIALS))
            due = sorted(delay.due for delay in late)
            rows.append(
                (
                    partitions,
                    idle,
                    skew_ms // 1000,
                    median(delay.sent for delay in late),
                    median(due),
                    quantiles(due, n=20)[-1],
                    due[-1],
                )
            )
    show(
        f"How late a message ends a poll of {POLL_SECONDS} s, for one consumer",
        [
            "partitions",
            "units of an idle poll",
            "sender's clock ahead, s",
            "after its sending, median s",
            "after it is due, median s",
            "19 of 20 s",
            "latest s",
        ],
        rows,
    )
    print("\nUnits: of messages and attributes, which caches hold for a second. A message can be")
    print("received from the time of its sender's clock on, which may be behind the consumer's.")


def idle_units(partitions: int) -> float:
    """Returns read units of a poll without messages: the maximum of three in sequence."""
    world, client = _polled(partitions)
    return max(_poll_units(world, client) for _ in range(3))


def _poll_units(world: World, client: Client) -> float:
    return world.units(lambda: client.receive("work", wait_seconds=POLL_SECONDS))[1]


def delays(partitions: int, skew_ms: int, trials: int) -> Iterator[Delay]:
    """Yields delays of messages sent at random times, after a wait of up to `LONGEST_SECONDS`.

    Every second send has an `attempt`, as sends by the client library do.
    """
    world, client = _polled(partitions)
    sender = environment(world, skew_ms)
    draw = Random(partitions)
    for number in range(trials):
        attempt = ulid.encode(0, draw.randbytes(10))[10:] if number % 2 else None
        seconds = draw.uniform(0, LONGEST_SECONDS)
        yield _delay(world, client, sender, seconds, attempt)


class _SkewedClock:
    """The world's clock as another machine shows it."""

    scale = 1.0

    def __init__(self, clock: ManualClock, skew_ms: int) -> None:
        self._clock, self._skew_ms = clock, skew_ms

    def now_ms(self) -> int:
        """Returns milliseconds since the epoch by this machine's clock."""
        return self._clock.now_ms() + self._skew_ms

    def sleep(self, seconds: float) -> None:
        """Moves the world's clock."""
        self._clock.pass_seconds(seconds)


def environment(world: World, skew_ms: int) -> Core:
    """Returns the core of another environment, with separate caches, hints and clock."""
    clock = _SkewedClock(world.clock, skew_ms)
    cache = Cache(clock, CACHE_MS, shared=False)
    return replace(world.core, clock=clock, cache=cache, memories={})


def _delay(
    world: World, client: Client, sender: Core, age_seconds: float, attempt: str | None
) -> Delay:
    clock, receiver = world.clock, world.core
    sleep, due_ms = clock.sleep, clock.now_ms() + round(1000 * age_seconds)
    sent = False

    def send() -> None:
        request: dict[str, object] = {"messages": [{"body": "x"}]}
        if attempt is not None:
            request["attempt"] = ulid.encode(clock.now_ms(), bytes(10))[:10] + attempt
        world.core = sender
        reply = client.post("/queues/work/messages", request)
        world.core = receiver
        assert reply.status == 201, reply.text

    def sleep_and_send(seconds: float) -> None:
        nonlocal sent
        left_ms = due_ms - clock.now_ms()
        if not sent and left_ms <= 1000 * seconds:
            sent = True
            clock.pass_seconds(left_ms / 1000)
            send()
            seconds -= left_ms / 1000
        if seconds > 0:
            sleep(seconds)

    clock.sleep = sleep_and_send  # type: ignore[method-assign]
    try:
        while not (received := client.receive("work", 1, wait_seconds=POLL_SECONDS)):
            pass
    finally:
        clock.sleep = sleep  # type: ignore[method-assign]
    receipts = [message["receipt"] for message in received]
    client.post("/queues/work/messages/delete", {"receipts": receipts})
    ahead_ms = max(0, sender.now_ms() - clock.now_ms())
    late_ms = clock.now_ms() - due_ms
    return Delay(late_ms / 1000, (late_ms - ahead_ms) / 1000)


def _polled(partitions: int) -> tuple[World, Client]:
    world = World(seed=partitions, shared_caches=False)
    client = world.client("alice")
    client.put("/queues/work", {"partitions": partitions})
    client.receive("work", wait_seconds=1)
    return world, client
