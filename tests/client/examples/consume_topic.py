"""Publish to a topic; consumers of one subscription share, each subscription gets everything."""

from __future__ import annotations

from cirrusmq_client import Client, Consumer, Producer, Received, Subscription

client = Client()
client.create_topic("sales")
client.create_subscription("sales", "shipping", {"protocol": "pull", "filter": {"tags": ["paid"]}})
producer = Producer(client)
producer.publish("sales", "a teapot", tags=["paid"])
producer.publish("sales", "a kettle", tags=["open"])


def ship(message: Received) -> None:
    print(f"ship {message.text}", flush=True)


Consumer(Subscription("sales", "shipping"), ship).run()
