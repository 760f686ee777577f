"""Send a message and handle it."""

from __future__ import annotations

from cirrusmq_client import Client, Consumer, Producer, Received

client = Client()
client.create_queue("orders")
Producer(client).send("orders", "hello")


def handle(message: Received) -> None:
    print(message.text, flush=True)  # an exception: it comes again, later each time


Consumer("orders", handle).run()
