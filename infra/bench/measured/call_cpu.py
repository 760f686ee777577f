"""CPU time of a send and of a receive, and its duration on the CPU share of a memory size.

The deployed handlers run in this process; the embedded engine's CPU time, which stands for
DynamoDB's, is subtracted. Lambda gives a whole CPU at 1,769 MB, and a proportional part below.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from cirrusmq_local.testing.world import Client, World

from ..drawing.tables import middle, show

RUNS = 40
SIZES = (1, 16)
MEMORY_MB = (256, 512)
WHOLE_CPU_MB = 1_769
_BODY = "x" * 1_024


def _send(client: Client, size: int) -> None:
    client.send("work", *[_BODY] * size)


def _receive(client: Client, size: int) -> None:
    assert len(client.receive("work", size)) == size


_CALLS: dict[str, Callable[[Client, int], None]] = {"send": _send, "receive": _receive}


def run() -> None:
    """Prints the table."""
    rows = []
    for call in _CALLS:
        for size in SIZES:
            cpu_ms = middle([call_cpu_ms(call, size, number) for number in range(RUNS)])
            lasts = [cpu_ms * WHOLE_CPU_MB / memory for memory in MEMORY_MB]
            rows.append((call, size, cpu_ms, *lasts))
    show(
        f"CPU of a call, of messages of 1 KB sent together (median of {RUNS})",
        ["call", "messages", "CPU, ms", *(f"at {memory} MB, ms" for memory in MEMORY_MB)],
        rows,
    )
    print("\nDynamoDB's round trips, some 5 ms each, come on top and are the same.")


def call_cpu_ms(call: str, size: int, seed: int) -> float:
    """Returns milliseconds of CPU, without the engine's, of one warm call with `size` messages."""
    world = World(seed=seed, by_sdk=True)
    client = world.client("alice")
    client.put("/queues/work", {"partitions": 1})
    for _ in range(3):  # the first calls import modules
        _send(client, size)
        _receive(client, size)
    if call == "receive":
        _send(client, size)
    engine, execute, inside = world.engine, world.engine.execute, 0.0

    def timed(*arguments: Any, **named: Any) -> Any:
        nonlocal inside
        began = time.process_time()
        try:
            return execute(*arguments, **named)
        finally:
            inside += time.process_time() - began

    engine.execute = timed  # type: ignore[method-assign]
    began = time.process_time()
    _CALLS[call](client, size)
    took = time.process_time() - began
    assert inside > 0
    return 1_000 * (took - inside)
