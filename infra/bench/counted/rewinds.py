"""Units of a group's rewind and the receives after it, and of an early receiver."""

from __future__ import annotations

from typing import Any

from cirrusmq.base.timestamps import format_time
from cirrusmq_local.testing.world import Client, World

PUBLISHED = 100
_GROUP = "/topics/news/subscriptions/group"


def rewind_rows() -> list[tuple[str, float, float]]:
    """(what, write units, read units) over all tables; messages of 100 bytes."""
    none, many = _rewound(0), _rewound(PUBLISHED)
    each = tuple((more - few) / PUBLISHED for more, few in zip(many, none, strict=True))
    return [
        ("rewind a group, its operation included, nothing published since", *none),
        ("each message published since, one by one", each[0], each[1]),
        ("receive, the group never rewound", *_received(rewound=False, ordered=False)),
        ("receive, rewound once", *_received(rewound=True, ordered=False)),
        ("receive, an ordered group never rewound", *_received(rewound=False, ordered=True)),
        ("receive, an ordered group rewound once", *_received(rewound=True, ordered=True)),
    ]


def early_rows() -> list[tuple[str, float, float]]:
    """(what, write units, read units) over all tables; messages of 100 bytes, one by one."""
    none, many = _begun(0), _begun(PUBLISHED)
    each = tuple((more - few) / PUBLISHED for more, few in zip(many, none, strict=True))
    late, later = _begun(0, logged=True), _begun(PUBLISHED, logged=True)
    other = tuple((more - few) / PUBLISHED for more, few in zip(later, late, strict=True))
    return [
        ("add a receiver with start: earliest, its operation included, nothing there", *none),
        ("each message from before the queue's log", each[0], each[1]),
        ("each message of the log", other[0], other[1]),
        ("delete of a message from before the log meanwhile", *_deleted(begun=True)),
        ("delete of a message otherwise", *_deleted(begun=False)),
    ]


def _begun(count: int, *, logged: bool = False) -> tuple[float, float]:
    world, alice = _with_queue()
    if logged:
        _done(alice.put("/queues/orders/receivers/first", {}).status, 201)
        world.clock.pass_seconds(1)
    _send(world, alice, count)
    world.clock.pass_seconds(1)
    return world.units(lambda: _begin(world, alice))


def _deleted(*, begun: bool) -> tuple[float, float]:
    world, alice = _with_queue()
    _send(world, alice, 1)
    if begun:
        _done(alice.put("/queues/orders/receivers/late", {"start": "earliest"}).status, 201)
    messages = alice.post("/queues/orders/messages/receive", {}).json["messages"]
    receipts = {"receipts": [messages[0]["receipt"]]}
    return world.units(
        lambda: _done(alice.post("/queues/orders/messages/delete", receipts).json["failed"], []),
    )


def _with_queue() -> tuple[World, Client]:
    world = World()
    alice = world.client("alice")
    alice.put("/queues/orders", {"partitions": 1})
    return world, alice


def _send(world: World, alice: Client, count: int) -> None:
    for _ in range(count):
        alice.post("/queues/orders/messages", {"messages": [{"body": "x" * 100}]})
    world.settle()


def _begin(world: World, alice: Client) -> None:
    _done(alice.put("/queues/orders/receivers/late", {"start": "earliest"}).status, 201)
    world.settle()


def _rewound(count: int) -> tuple[float, float]:
    world, alice = _with_group({})
    begun_ms = world.clock.now_ms()
    _publish(world, alice, count)
    world.clock.pass_seconds(5)
    return world.units(lambda: _rewind(world, alice, begun_ms))


def _received(*, rewound: bool, ordered: bool) -> tuple[float, float]:
    """Returns units of a receive after a rewind, with an earlier message left."""
    world, alice = _with_group({"ordered": ordered})
    _publish(world, alice, 1)
    world.clock.pass_seconds(5)
    if rewound:
        _rewind(world, alice, world.clock.now_ms())
    held = alice.post(f"{_GROUP}/messages/receive", {"wait_seconds": 0}).json["messages"]
    alice.post(f"{_GROUP}/messages/delete", {"receipts": [held[0]["receipt"]]})
    _publish(world, alice, 1)
    return world.units(lambda: _checked(alice, "receive", {"wait_seconds": 0}))


def _with_group(attributes: dict[str, Any]) -> tuple[World, Client]:
    world = World()
    alice = world.client("alice")
    alice.put("/topics/news", {"partitions": 1})
    alice.put(_GROUP, {"protocol": "pull"} | attributes)
    return world, alice


def _publish(world: World, alice: Client, count: int) -> None:
    for _ in range(count):
        alice.post("/topics/news/messages", {"messages": [{"body": "x" * 100, "group": "g"}]})
        world.settle()


def _rewind(world: World, alice: Client, to_ms: int) -> None:
    _done(alice.post(f"{_GROUP}/rewind", {"to": format_time(to_ms)}).status, 202)
    world.settle()


def _checked(alice: Client, call: str, body: dict[str, Any]) -> None:
    reply = alice.post(f"{_GROUP}/messages/{call}", body)
    _done(len(reply.json["messages"]), 1)


def _done(found: object, wanted: object) -> None:
    if found != wanted:
        raise RuntimeError(f"{found} instead of {wanted}")
