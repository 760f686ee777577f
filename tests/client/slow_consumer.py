"""A consumer of two workers whose handlers take three seconds; run by a test as a process:
`slow_consumer.py QUEUE [grace seconds]`."""

from __future__ import annotations

import sys
import time

from cirrusmq_client import Consumer, Received


def tell(line: str) -> None:
    # In one piece: print writes the line's end by itself, and the other worker may print between.
    print(f"{line}\n", end="", flush=True)


def handle(message: Received) -> None:
    tell(f"started {message.text}")
    time.sleep(3)
    tell(f"ended {message.text}")


grace = float(sys.argv[2]) if len(sys.argv) > 2 else 30.0
Consumer(sys.argv[1], handle, workers=2, wait_seconds=1, grace_seconds=grace).run()
