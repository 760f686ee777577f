"""For your own tests: the whole service in memory, on a clock that you set, and a subscriber.

    from cirrusmq_local.testing import World

    world = World()
    shop = world.client("shop")
    shop.put("/queues/orders", {"visibility_timeout_seconds": 30})
    shop.send("orders", "one book")

    (message,) = shop.receive("orders")  # by a consumer that then crashes
    assert shop.receive("orders") == []
    world.clock.pass_seconds(30)
    (again,) = shop.receive("orders")
    assert again["body"] == message["body"]
    shop.post("/queues/orders/messages/delete", {"receipts": [again["receipt"]]})

    subscriber = world.subscriber()  # takes what is posted, at any URL
    shop.put("/topics/news")
    web = {"protocol": "http", "endpoint": "http://127.0.0.1:9/hook"}
    secret = shop.put("/topics/news/subscriptions/web", web).json["secret"]
    subscriber.down()
    shop.post("/topics/news/messages", {"messages": [{"body": "hello"}]})
    world.settle()  # runs what functions invoke, and the readers of the stream
    assert subscriber.bodies() == ["hello"]
    assert subscriber.taken == []
    assert subscriber.deliveries[0].is_signed(secret, now=world.clock.now_ms() / 1_000)

`World(seed=…)` draws the same ids again. `World(like=first)` begins with the stored items and the
time of `first`, which is faster than to make them again. A call returns a `Reply` (`status`,
`headers`, `json`, `code` of an error); `send` and `receive` raise if the call fails. The clock
moves when you move it, and when the service sleeps: a long poll ends at once. `world.run("sweep")`
runs a function that has a schedule in the template. No port or file is opened, and worlds do not
share state.

`Service` has a world and the client library's `Client` for it, and calls a handler as a `Consumer`
would. In pytest it is the fixture `cirrusmq`, as soon as this package is installed:

    def test_an_order_is_handled(cirrusmq):
        cirrusmq.client.create_queue("orders")
        ...  # send; cirrusmq.consume("orders", handle); cirrusmq.pass_seconds(60)

A `Subscriber` can also listen by HTTP, for a running service (`cirrusmq up`):

    with Subscriber() as subscriber:
        web = {"protocol": "http", "endpoint": subscriber.url("hook")}
        ...  # subscribe and publish
        subscriber.wait_for([message_id])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cirrusmq_local.testing.clock import START_MS, ManualClock
from cirrusmq_local.testing.subscriber import Answer, Delivery, Subscriber
from cirrusmq_local.testing.webhooks import is_signed, read_secret

if TYPE_CHECKING:
    from cirrusmq_local.testing.service import Service
    from cirrusmq_local.testing.world import Client, Posting, Reply, World

__all__ = [
    "START_MS",
    "Answer",
    "Client",
    "Delivery",
    "ManualClock",
    "Posting",
    "Reply",
    "Service",
    "Subscriber",
    "World",
    "is_signed",
    "read_secret",
]


def __getattr__(name: str) -> Any:
    """Imports the world on first use: it takes seconds, and `cirrusmq listen` does not need it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "Service":
        from cirrusmq_local.testing.service import Service

        return Service
    from cirrusmq_local.testing import world

    return getattr(world, name)
