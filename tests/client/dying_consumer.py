"""A consumer whose process one message ends; run by a test again and again:
`dying_consumer.py <queue> <workers> <messages in a batch, 0: none>`."""

from __future__ import annotations

import os
import sys

from cirrusmq_client import Batches, Consumer, Received

queue, workers, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def begin(message: Received) -> None:
    # In one piece, as workers print side by side.
    print(f"{message.text}\n", end="", flush=True)
    if message.text == "poison":
        os._exit(9)


def begin_all(messages: list[Received]) -> None:
    for message in messages:
        begin(message)


if batch:
    Consumer(
        queue, begin_all, batches=Batches(max_batch=batch), workers=workers, wait_seconds=1
    ).run()
else:
    Consumer(queue, begin, workers=workers, wait_seconds=1).run()
