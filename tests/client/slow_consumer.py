"""A consumer of two workers whose handlers take three seconds; run by a test as a process."""

from __future__ import annotations

import sys
import time

from cirrusmq_client import Consumer, Received


def handle(message: Received) -> None:
    print(f"started {message.text}", flush=True)
    time.sleep(3)
    print(f"ended {message.text}", flush=True)


Consumer(sys.argv[1], handle, workers=2, wait_seconds=1).run()
