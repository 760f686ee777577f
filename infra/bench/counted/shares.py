"""Units of sharing a topic with another account."""

from __future__ import annotations

from cirrusmq_local.testing.world import Client, World

MESSAGE = {"messages": [{"body": "x" * 100}]}


def share_rows() -> list[tuple[str, float, float]]:
    """(call, write units, read units) over all tables."""
    world, alice, bob = _shared()
    path, news = "/topics/news/grants/bob", "/topics/alice:news"
    return [
        ("grant on a topic", *_put(world, alice, path, {"permission": "publish_subscribe"})),
        ("take it back", *_taken_back()),
        ("publish by a grant, nobody subscribed: its first", *_published(1)),
        ("the same within a second", *_published(2)),
        (
            "subscribe by a grant",
            *_put(world, bob, f"{news}/subscriptions/bobs", {"protocol": "pull"}),
        ),
    ]


def _shared() -> tuple[World, Client, Client]:
    world = World()
    alice, bob = world.client("alice"), world.client("bob")
    alice.put("/topics/news")
    alice.put("/topics/news/grants/bob", {"permission": "publish_subscribe"})
    for each in (alice, bob):
        each.get("/topics")  # its key is cached
    return world, alice, bob


def _put(world: World, client: Client, path: str, body: object) -> tuple[float, float]:
    def call() -> None:
        reply = client.put(path, body)
        if reply.status >= 300:
            raise RuntimeError(reply.text)

    return world.units(call)


def _taken_back() -> tuple[float, float]:
    world, alice, _ = _shared()
    alice.get("/topics/news")
    return world.units(lambda: alice.delete("/topics/news/grants/bob"))


def _published(times: int) -> tuple[float, float]:
    world, _, bob = _shared()
    for _ in range(times - 1):
        bob.post("/topics/alice:news/messages", MESSAGE)
    return world.units(lambda: bob.post("/topics/alice:news/messages", MESSAGE))
