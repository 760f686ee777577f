"""Keep the order of each customer's messages, through failures and with many consumers."""

from __future__ import annotations

from cirrusmq_client import Client, Consumer, Message, Producer, Received

client = Client()
client.create_queue("accounts", {"ordered": True})
steps = ["open", "deposit", "withdraw", "close"]
customers = [f"customer-{number}" for number in range(5)]
Producer(client).send_batch(
    "accounts", (Message(step, group=name) for step in steps for name in customers)
)


def handle(message: Received) -> None:
    if message.redeliveries == 0 and message.text == "deposit":
        raise ConnectionError("the bank is busy: the same message comes again, none before it")
    print(f"{message.group} {message.text}", flush=True)


Consumer("accounts", handle).run()
