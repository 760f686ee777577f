"""CPU time of a call by another service's SDK beside the native call, in the deployed handlers.

The calls are signed before the clock starts, and alternate over the embedded engine in memory. All
send, receive and delete messages of 1 KB in queues of one partition of the same service; both
include the engine's time. RocketMQ's are published to a topic whose group has such a queue.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from ..drawing.tables import middle, show
from .dialect_calls import (
    Cmq,
    Functions,
    Lives,
    Native,
    NativeGroup,
    NativeTopic,
    RocketMq,
    Sns,
    Sqs,
)

GOAL = 1.3
_RUNS, _WARM = 300, 30
_COUNTS = (1, 10)


def run() -> None:
    """Prints the tables."""
    rows: list[tuple[str | float, ...]] = []
    for count in _COUNTS:
        native, sqs, cmq = _measured(count, Native, Sqs, Cmq)
        for call, ours in native.items():
            theirs = [each[call] for each in (sqs, cmq)]
            times = [each / ours for each in theirs]
            rows.append((f"{call} {count}", ours, theirs[0], times[0], theirs[1], times[1]))
    heads = ["", "native", "SQS", "times native", "CMQ", "times native"]
    show(f"CPU of calls with messages of 1 KB, µs (medians of {_RUNS}; ≤ {GOAL})", heads, rows)
    rows = []
    for count in _COUNTS:
        native, sns = _measured(count, NativeTopic, Sns)
        for call, ours in native.items():
            rows.append((f"{call} {count}", ours, sns[call], sns[call] / ours))
    heads = ["", "native", "SNS, and SQS with its notifications", "times native"]
    show(f"The same of a topic's copies, µs (medians of {_RUNS}; ≤ {GOAL})", heads, rows)
    rows = []
    for count in _COUNTS:
        native, mq = _measured(count, NativeGroup, RocketMq)
        for call, ours in native.items():
            if call != "send" or count == 1:
                rows.append((f"{call} {count}", ours, mq[call], mq[call] / ours))
    heads = ["", "native", "RocketMQ over HTTP", "times native"]
    show(f"The same of a topic's group, µs (medians of {_RUNS}; ≤ {GOAL})", heads, rows)


def _measured(count: int, *kinds: Callable[[Functions], Lives]) -> list[dict[str, float]]:
    """Returns, for each kind, the median microseconds of each call; kinds alternate."""
    functions = Functions()
    lives = [kind(functions) for kind in kinds]
    taken: list[dict[str, list[float]]] = [{} for _ in kinds]
    gc.collect()
    gc.freeze()  # as a function does after its imports
    try:
        for number in range(_WARM + _RUNS):
            for into, each in zip(taken, lives, strict=True):
                for call, took in each.life(count).items() if number >= _WARM else ():
                    into.setdefault(call, []).append(1e6 * took)
    finally:
        gc.unfreeze()
    return [{call: middle(took) for call, took in each.items()} for each in taken]
