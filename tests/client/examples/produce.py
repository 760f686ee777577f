"""Send messages to a queue: one, and many at once."""

from __future__ import annotations

from cirrusmq_client import Client, Producer

client = Client()
client.create_queue("orders")
producer = Producer(client)
sent = producer.send("orders", "order 0", tags=["new"], attributes={"region": "shanghai"})
producer.send_batch("orders", (f"order {number}" for number in range(1, 100)))
print(sent.id)
