"""A consumer with one slow handler and many messages prefetched; run by a test as a process:
`stopped_consumer.py <queue> <name of a receiver, or -> <messages in a batch, 0: none>`."""

from __future__ import annotations

import sys
import time

from cirrusmq_client import Batches, Consumer, Queue, Received

queue, receiver, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
source = Queue(queue, None if receiver == "-" else receiver)


def begin(messages: list[Received]) -> None:
    for message in messages:
        print(f"{message.text} {message.receive_count}\n", end="", flush=True)
    time.sleep(1)


if batch:
    Consumer(source, begin, batches=Batches(max_batch=batch), workers=1, wait_seconds=1).run()
else:
    Consumer(source, lambda message: begin([message]), workers=1, prefetch=16, wait_seconds=1).run()
