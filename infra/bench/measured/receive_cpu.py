"""CPU of a receive, and how long it lasts on the shares of a CPU that memory sizes bring.

The deployed handler runs in this process; the embedded engine's CPU, which stands for DynamoDB's,
is taken off. Lambda gives a whole CPU at 1,769 MB, and less memory the same part of it.
"""

from __future__ import annotations

import time
from typing import Any

from cirrusmq_local.testing.world import World

from ..drawing.tables import middle, show

RUNS = 40
SIZES = (1, 16)
MEMORY_MB = (256, 512)
WHOLE_CPU_MB = 1_769
_BODY = "x" * 1_024


def run() -> None:
    """Print the table."""
    rows = []
    for size in SIZES:
        cpu_ms = middle([receive_cpu_ms(size, number) for number in range(RUNS)])
        lasts = [cpu_ms * WHOLE_CPU_MB / memory for memory in MEMORY_MB]
        rows.append((size, cpu_ms, *lasts))
    show(
        f"CPU of a receive, of messages of 1 KB sent together (median of {RUNS})",
        ["messages", "CPU, ms", *(f"at {memory} MB, ms" for memory in MEMORY_MB)],
        rows,
    )
    print("\nDynamoDB's round trips, some 5 ms each, come on top and are the same.")


def receive_cpu_ms(size: int, seed: int) -> float:
    """Milliseconds of CPU, without the engine's, of one warm receive of so many messages."""
    world = World(seed=seed)
    client = world.client("alice")
    client.put("/queues/work", {"partitions": 1})
    for _ in range(3):  # the first ones load what is loaded late
        client.send("work", *[_BODY] * size)
        assert len(client.receive("work", size)) == size
    client.send("work", *[_BODY] * size)
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
    received = client.receive("work", size)
    took = time.process_time() - began
    assert len(received) == size
    assert inside > 0
    return 1_000 * (took - inside)
