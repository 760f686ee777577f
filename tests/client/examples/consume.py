"""Consume a queue: ten lines are a worker. Start it as often as you like; it ends on SIGTERM."""

from __future__ import annotations

from cirrusmq_client import Consumer, DeadLetter, Received, Retry


def handle(message: Received) -> Retry | DeadLetter | None:
    if not message.text.startswith("order"):
        return DeadLetter("not an order")  # to the dead-letter queue
    if message.redeliveries == 0 and message.text == "order 13":
        return Retry(after=1)  # again in a second; an exception: by the retry policy
    print(message.text, flush=True)
    return None  # done: the message is deleted


Consumer("orders", handle, workers=4).run()
