"""Units of an operator's calls: pausing, retrying, looking up, redriving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cirrusmq_local.testing.world import Client, World

WAITING = 16


def hands_rows() -> list[tuple[str, float, float]]:
    """Returns (call, write units, read units) over all tables; attributes are cached."""
    return [
        ("pause a URL's subscription", *_of_subscription(["pause"])),
        ("resume it, nothing waits (8 partitions)", *_of_subscription(["resume"], ["pause"])),
        ("publish to it while it is paused", *_of_published(["pause"])),
        (f"retry now, each of {WAITING} that fail again", *_retried(500)),
        (f"retry now, each of {WAITING} that are taken", *_retried(204)),
        ("match a message", *_matched()),
        ("try a filter on it", *_matched(filter={"tags": ["a"]})),
        (f"publish {WAITING} to a URL, and post them", *_posted()),
        (f"publish {WAITING} to it, and post them at its rate of 4 a second", *_posted(rate=4)),
        ("publish to a URL for later, and post it then", *_delayed()),
        ("look a message up that has not moved", *_looked_up(moved=False)),
        ("and with its body, of 3,000 bytes", *_looked_up(moved=False, size=3_000)),
        (f"look one up that was given back, among {WAITING}", *_looked_up(moved=True)),
        ("one that is not there, among 1,000 (4 partitions)", *_looked_up(lost=1_000)),
        ("cancel a message", *_taken_back("DELETE")),
        ("put it off", *_taken_back("PATCH", 600)),
        ("put it off once more", *_taken_back("PATCH", 900, before=[600])),
        ("cancel it then", *_taken_back("DELETE", before=[600])),
        ("peek at a page of 16, among 1,000 sent one by one", *_peeked(1_000)),
        (f"redrive to the queue, each of {WAITING}", *_redriven()),
        (f"redrive to the group, each of {WAITING}", *_redriven(group=True)),
        (f"redrive one by its id, among {WAITING} (4 partitions)", *_redriven(ids=1)),
        ("redrive one by its receipt", *_redriven(receipts=1)),
    ]


def _looked_up(*, moved: bool = False, size: int = 100, lost: int = 0) -> tuple[float, float]:
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work")
    messages = [alice.send("work", "x" * size)[0]["id"] for _ in range(lost or WAITING)]
    path, query = f"/queues/work/messages/{messages[0]}", "body=true" if size > 100 else ""
    if moved:
        held = {each["id"]: each["receipt"] for each in _received(alice, "/queues/work", WAITING)}
        world.clock.pass_seconds(5)
        body = {"receipts": [held[messages[0]]], "delay_seconds": 60}
        _checked(alice, "/queues/work/messages/give-back", body)
    if lost:
        path = f"/queues/work/messages/Msg-{'0' * 27}"
    alice.get(path, query)
    return world.units(lambda: alice.get(path, query))


def _taken_back(
    method: str, seconds: int | None = None, before: Sequence[int] = ()
) -> tuple[float, float]:
    """Returns units of a call on a delayed message. `before`: earlier reschedules in seconds."""
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work")
    sent = alice.send("work", *["x" * 100] * 2, delay_seconds=60)
    path = f"/queues/work/messages/{sent[0]['id']}"
    for each in before:
        alice.patch(path, {"delay_seconds": each})
    body = None if seconds is None else {"delay_seconds": seconds}
    return world.units(lambda: alice.call(method, path, body))


def _peeked(waiting: int) -> tuple[float, float]:
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work", {"partitions": 1})
    for _ in range(waiting):
        alice.send("work", "x" * 100)
    body: dict[str, Any] = {"max": 16}
    path = "/queues/work/messages/peek"
    body["cursor"] = alice.post(path, body).json["cursor"]
    return world.units(lambda: _checked(alice, path, body))


def _redriven(*, group: bool = False, ids: int = 0, receipts: int = 0) -> tuple[float, float]:
    """Returns units for a moved message, including the start and the end of the operation."""
    world = World()
    alice = world.client("alice")
    alice.put("/queues/dead")
    source = "/queues/work"
    if group:
        source = "/topics/news/subscriptions/group"
        alice.put("/topics/news")
        alice.put(source, {"protocol": "pull", "dead_letter_queue": "dead"})
        for _ in range(WAITING):
            _checked(alice, "/topics/news/messages", {"messages": [{"body": "x" * 100}]})
    else:
        alice.put(source, {"dead_letter": {"queue": "dead", "max_receives": 5}})
        for _ in range(WAITING):
            alice.send("work", "x" * 100)
    world.settle()
    held = _received(alice, source, WAITING)
    body = {"receipts": [each["receipt"] for each in held]}
    _checked(alice, f"{source}/messages/dead-letter", body)
    request: dict[str, Any] = {}
    if ids:
        request = {"ids": [each["id"] for each in held[:ids]]}
    if receipts:
        dead = _received(alice, "/queues/dead", receipts)
        request = {"receipts": [each["receipt"] for each in dead[:receipts]]}

    def redrive() -> None:
        _checked(alice, "/queues/dead/redrive", request)
        while world.invoked:
            world.run(*world.invoked.popleft())

    moved = ids or receipts or WAITING
    written, read = world.units(redrive)
    return written / moved, read / moved


def _received(alice: Client, source: str, count: int) -> list[dict[str, Any]]:
    held: list[dict[str, Any]] = []
    body = {"max": 16, "wait_seconds": 0, "visibility_timeout_seconds": 600}
    while len(held) < count:
        held += alice.post(f"{source}/messages/receive", body).json["messages"]
    return held


def _of_subscription(measured: list[str], before: list[str] | None = None) -> tuple[float, float]:
    world, alice = with_url()
    _call(world, alice, before or [])
    return world.units(lambda: _call(world, alice, measured))


def _of_published(before: list[str]) -> tuple[float, float]:
    world, alice = with_url()
    _call(world, alice, before)
    alice.post("/topics/news/match", {"messages": [{"body": "x" * 100}]})
    return world.units(lambda: _publish(world, alice, 1))


def _retried(status: int) -> tuple[float, float]:
    world, alice = with_url()
    world.endpoint = lambda url: "status 500"
    _publish(world, alice, WAITING)
    if status == 204:
        world.endpoint = lambda url: None
    posted = len(world.posts)
    written, read = world.units(lambda: _call(world, alice, ["retry"]))
    if len(world.posts) != posted + WAITING:
        raise RuntimeError(f"{len(world.posts) - posted} of {WAITING} were posted")
    return written / WAITING, read / WAITING


def _posted(**attributes: int) -> tuple[float, float]:
    """Returns units of all messages, from their publish on; a rate makes the poster wait."""
    world, alice = with_url(**attributes)
    posted, began = len(world.posts), world.clock.now_ms()
    used = world.units(lambda: _publish(world, alice, WAITING))
    if len(world.posts) != posted + WAITING:
        raise RuntimeError(f"{len(world.posts) - posted} of {WAITING} were posted")
    if attributes and world.clock.now_ms() - began < 1_000 * (WAITING / attributes["rate"] - 1):
        raise RuntimeError("they were posted faster than the rate allows")
    return used


def _delayed() -> tuple[float, float]:
    """Returns units of one message, from its publish to the end of the posting execution."""
    world, alice = with_url()
    body = {"messages": [{"body": "x" * 100, "delay_seconds": 60}]}
    posted = len(world.posts)

    def publish_and_post() -> None:
        _checked(alice, "/topics/news/messages", body)
        world.settle()
        ((_, state),) = world.executions
        world.clock.pass_seconds(state["wait_seconds"])
        while state["action"] in ("wait", "again"):
            state = world.run("push_slow", state)
        world.settle()

    used = world.units(publish_and_post)
    if len(world.posts) != posted + 1:
        raise RuntimeError("it was not posted")
    return used


def _matched(**more: Any) -> tuple[float, float]:
    _, alice = with_url()
    body = {"messages": [{"body": "x" * 100}], **more}
    alice.post("/topics/news/match", body)
    return alice.world.units(lambda: _checked(alice, "/topics/news/match", body))


def with_url(**attributes: int) -> tuple[World, Client]:
    """Returns a world with a topic and one URL, whose failing messages do not block others."""
    world = World()
    alice = world.client("alice")
    alice.put("/topics/news")
    url = {"protocol": "http", "endpoint": "http://127.0.0.1:9/"}
    given = url | {"retry": {"policy": "http_unordered"}} | attributes
    alice.put("/topics/news/subscriptions/web", given)
    _publish(world, alice, 1)  # before it the URL is new, and `push` passes it on
    world.clock.pass_seconds(600)  # cached documents have expired
    alice.get("/topics/news/subscriptions/web")
    return world, alice


def _publish(world: World, alice: Client, count: int) -> None:
    for _ in range(count):
        _checked(alice, "/topics/news/messages", {"messages": [{"body": "x" * 100}]})
    world.settle()


def _call(world: World, alice: Client, calls: list[str]) -> None:
    for each in calls:
        _checked(alice, f"/topics/news/subscriptions/web/{each}", {})
    world.settle()


def _checked(alice: Client, path: str, body: object) -> None:
    reply = alice.post(path, body)
    if reply.status >= 300:
        raise RuntimeError(reply.text)
