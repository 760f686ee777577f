"""Every process gets every message, and resumes after its last one: a cache on each machine."""

from __future__ import annotations

from cirrusmq_client import Client, Consumer, FileProgress, Received, Subscription

client = Client()
client.create_topic("prices")
client.create_subscription("prices", "caches", {"protocol": "pull", "mode": "broadcasting"})
cache: dict[str, str] = {}


def update(message: Received) -> None:
    name, _, price = message.text.partition("=")
    cache[name] = price
    print(cache, flush=True)


Consumer(
    Subscription("prices", "caches"), update, broadcasting=FileProgress("cache.progress")
).run()
