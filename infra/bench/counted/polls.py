"""The delay of a message that ends a long poll, and the cost of polls without messages.

One consumer polls 20 s at a time, again and again. A message is sent after so long a poll.
Time is simulated: two runs give the same figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median, quantiles

from cirrusmq_local.testing.world import Client, World

from ..drawing.tables import show

PARTITIONS = (1, 4, 16, 64, 255)
AGES_SECONDS = (1, 5, 20)
POLL_SECONDS = 20
TRIALS = {1: 300, 4: 300, 16: 100, 64: 30, 255: 30}
"""Messages for each age, by partitions."""
_GOLDEN = 0.6180339887
"""Its multiples spread evenly within a second."""


def run() -> None:
    """Print the curve."""
    rows = []
    for partitions in PARTITIONS:
        idle = idle_units(partitions)
        for age_seconds in AGES_SECONDS:
            late = sorted(delays(partitions, age_seconds, TRIALS[partitions]))
            nine_of_ten = quantiles(late, n=10)[-1]
            rows.append((partitions, idle, age_seconds, median(late), nine_of_ten, late[-1]))
    show(
        f"How late a message ends a poll of {POLL_SECONDS} s, for one consumer",
        [
            "partitions",
            "units of an idle poll",
            "polled for, s",
            "late, median s",
            "late, 9 of 10 s",
            "latest s",
        ],
        rows,
    )
    print(
        "\nUnits: of messages and attributes, which caches hold for a second. Consumers that wait"
    )
    print("side by side look at different moments: with ten of them a message is a tenth as late.")


def idle_units(partitions: int) -> float:
    """Read units of a poll without any message, as in the cloud."""
    world, client = _polled(partitions, shared_caches=False)
    before = world.engine.capacity()["read_units"]
    client.receive("work", wait_seconds=POLL_SECONDS)
    return float(world.engine.capacity()["read_units"] - before)


def delays(partitions: int, age_seconds: float, trials: int) -> Iterator[float]:
    """Seconds from a message's sending to the end of the poll that it ends."""
    world, client = _polled(partitions, shared_caches=True)
    for number in range(trials):
        yield _delay(world, client, age_seconds + number * _GOLDEN % 1)


def _delay(world: World, client: Client, age_seconds: float) -> float:
    clock = world.clock
    sleep, due_ms = clock.sleep, clock.now_ms() + round(1000 * age_seconds)
    sent = False

    def sleep_and_send(seconds: float) -> None:
        nonlocal sent
        sleep(seconds)
        if not sent and clock.now_ms() >= due_ms:
            sent = True
            client.send("work", "x")

    clock.sleep = sleep_and_send  # type: ignore[method-assign]
    try:
        received = client.receive("work", 1, wait_seconds=POLL_SECONDS)
        while not received:
            received = client.receive("work", 1, wait_seconds=POLL_SECONDS)
    finally:
        clock.sleep = sleep  # type: ignore[method-assign]
    receipts = [message["receipt"] for message in received]
    client.post("/queues/work/messages/delete", {"receipts": receipts})
    return (clock.now_ms() - due_ms) / 1000


def _polled(partitions: int, *, shared_caches: bool) -> tuple[World, Client]:
    world = World(seed=partitions, shared_caches=shared_caches)
    client = world.client("alice")
    client.put("/queues/work", {"partitions": partitions})
    client.receive("work", wait_seconds=1)
    return world, client
