"""Units of a message's life in CirrusMQ, counted by the embedded engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.storage.sizes import item_bytes
from cirrusmq_local.testing.core import FUNCTION
from cirrusmq_local.testing.world import Client, World

from . import bodies

Message = dict[str, Any]
SUBSCRIPTIONS = 20
Requests: TypeAlias = Counter[str]
"""Calls of S3, by operation."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Messages that are sent, received and deleted in batches, one call for each step."""

    name: str
    count: int
    size: int
    """Bytes of each body."""
    make: Callable[[int], Message] = bodies.text

    def messages(self) -> list[Message]:
        """Returns new messages."""
        return [self.make(self.size) for _ in range(self.count)]


SINGLE_1_KB = Workload(name="one of 1 KB", count=1, size=1_024)
SINGLE_64_KB = Workload(name="one of 64 KB", count=1, size=65_536, make=bodies.binary)
SINGLE_64_KB_JSON = Workload(name="one of 64 KB of JSON", count=1, size=65_536, make=bodies.json)
BATCH_40_BYTES = Workload(name="16 of 40 bytes", count=16, size=40)
BATCH_1_KB = Workload(name="16 of 1 KB", count=16, size=1_024)
BATCH_64_KB = Workload(name="4 of 64 KB", count=4, size=65_536, make=bodies.binary)
"""In the table, a batch's bodies together have at most 256 KB."""
FULL_64_KB = Workload(name="16 of 64 KB", count=16, size=65_536, make=bodies.binary)
SINGLE_1_MB = Workload(name="one of 1 MB", count=1, size=1_048_576, make=bodies.binary)
SINGLE_3_MB = Workload(name="one of 3 MB", count=1, size=3_145_728, make=bodies.binary)
"""In base64, the maximum of an answer that is not gzipped."""
WORKLOADS = (
    Workload(name="one of 100 bytes", count=1, size=100),
    SINGLE_1_KB,
    SINGLE_64_KB,
    BATCH_40_BYTES,
    BATCH_1_KB,
    BATCH_64_KB,
)


def world_with(objects: Requests | None) -> World:
    """Returns a world; with a counter, large sends are in objects, a deployment's default."""
    return World(bodies_in_s3_from=0 if objects is None else None)


def our_life(
    workload: Workload, objects: Requests | None = None, **fields: Any
) -> tuple[float, float]:
    """Returns (write units, read units) of a batch, with warm caches and waiting messages.

    This is the steady state of a queue: each partition has earlier messages. `objects`: a counter
    for requests to S3; with it, large messages are in objects.
    """
    world = world_with(objects)
    alice = world.client("alice")
    max_bytes = max(limits.MESSAGE_BYTES_DEFAULT, workload.size)
    alice.put("/queues/work", {"partitions": 1, "max_message_bytes": max_bytes})
    _go_through(alice, [bodies.text(40)])
    return units_of(world, lambda: _go_through(alice, workload.messages(), **fields), objects)


def carried_life(
    workload: Workload, objects: Requests | None = None, turns: int = 10
) -> tuple[float, float]:
    """Returns (write units, read units) of a batch that the next batch's receive deletes.

    The mean over rounds of two calls: send, and receive with the previous round's deletes.
    `objects` as in `our_life`.
    """
    requests = Requests()
    world = world_with(objects)
    alice = world.client("alice")
    alice.put("/queues/work", {"partitions": 1})
    done: list[str] = []

    def turn() -> None:
        nonlocal done
        request = {"max": 16, "delete": done}
        sent = alice.post("/queues/work/messages", {"messages": workload.messages()})
        answer = alice.post("/queues/work/messages/receive", request).json
        if len(answer.get("deleted", ())) != len(done) or len(answer["messages"]) != workload.count:
            raise RuntimeError(f"not all was received and deleted: {sent.text}, {answer}")
        done = [message["receipt"] for message in answer["messages"]]

    def take_turns() -> None:
        for _ in range(turns):
            turn()

    turn()
    written, read = units_of(world, take_turns, requests)
    if objects is not None:
        objects.update({name: count // turns for name, count in requests.items()})
    return written / turns, read / turns


def grouped_life(turns: int = 20, groups: int = 10, **attributes: Any) -> tuple[float, float]:
    """Returns (write units, read units) of a message of 1 KB in a queue with groups.

    Messages are sent one by one; a receive deletes the previous message. `attributes`: `fair` or
    `ordered`.
    """
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work", attributes)
    done: list[str] = []

    def turn(number: int) -> None:
        nonlocal done
        alice.send("work", "x" * SINGLE_1_KB.size, group=f"g{number % groups}")
        answer = alice.post("/queues/work/messages/receive", {"max": 1, "delete": done}).json
        done = [message["receipt"] for message in answer["messages"]]
        if len(done) != 1:
            raise RuntimeError(f"not received: {answer}")

    def take_turns() -> None:
        for number in range(turns):
            turn(number)

    take_turns()
    written, read = units_of(world, take_turns)
    return written / turns, read / turns


def gathered_life(workload: Workload) -> tuple[float, float]:
    """Returns (write units, read units) of messages sent one by one, received in one call of 16.

    The queue has four partitions, the default, and the receive deletes the previous batch.
    """
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work")
    done: list[str] = []

    def turn() -> None:
        nonlocal done
        for message in workload.messages():
            alice.post("/queues/work/messages", {"messages": [message]})
        request = {"max": 16, "delete": done}
        answer = alice.post("/queues/work/messages/receive", request).json
        if len(answer["messages"]) != workload.count:
            raise RuntimeError(f"not all was received: {answer}")
        done = [message["receipt"] for message in answer["messages"]]

    turn()
    return units_of(world, turn)


def handed_life(workload: Workload, partitions: int) -> tuple[float, float]:
    """Returns (write units, read units) of a batch that is sent, passed to a function, and done.

    The queue is empty before and after: a worker wakes for it, takes a slot, and ends.
    """
    world = World()
    # The default of a deployment: workers are counted.
    settings = replace(world.core.settings, workers=40)
    world.core = replace(world.core, settings=settings)
    admin = world.client("alice", admin=True)
    invoke = {"function": FUNCTION, "batch": 16}
    admin.put("/queues/work", {"partitions": partitions, "invoke": invoke})

    def hand_over() -> None:
        handed = sum(map(len, world.batches))
        admin.post("/queues/work/messages", {"messages": workload.messages()})
        world.run_stream("fan_out")
        while world.invoked:
            world.run(*world.invoked.popleft())
        if sum(map(len, world.batches)) - handed != workload.count:
            raise RuntimeError("not all was handed over")

    hand_over()
    return units_of(world, hand_over)


def push_invocations(workload: Workload, count: int = SUBSCRIPTIONS) -> int:
    """Returns invocations of push for a batch published to `count` subscriptions with a URL."""
    world = world_with(Requests())
    alice = world.client("alice")
    alice.put("/topics/news")
    for number in range(count):
        subscribe(alice, "http", number)
    _spread(world, alice, [bodies.text(40)], "http", count)  # before it the URLs are new
    _put_in(alice, "/topics/news", workload.messages())
    world.run_stream("fan_out")
    return _deliver(world, count * workload.count)


def published_life(
    workload: Workload,
    protocol: str,
    count: int = SUBSCRIPTIONS,
    objects: Requests | None = None,
) -> tuple[float, float]:
    """Returns (write units, read units) from publish to all deletes or posts, with warm caches.

    `objects` as in `our_life`.
    """
    world = world_with(objects)
    alice = world.client("alice")
    alice.put("/topics/news")
    for number in range(count):
        subscribe(alice, protocol, number)
    _spread(world, alice, [bodies.text(40)], protocol, count)
    return units_of(
        world, lambda: _spread(world, alice, workload.messages(), protocol, count), objects
    )


def pushed_units(count: int) -> tuple[float, float]:
    """Returns (write units, read units) of posting messages to a URL in one invocation.

    `count`: number of messages of 100 bytes, each published separately.
    """
    world, alice = _with_url("exponential_decay")
    _publish_singles(alice, 1)
    world.settle()
    _publish_singles(alice, count)
    world.run_stream("fan_out")
    (first, *_) = world.invoked
    world.invoked.clear()
    return units_of(world, lambda: world.run(*first))


def retried_units(waiting: int) -> tuple[float, float]:
    """Returns (write units, read units) of one failed attempt of a URL with `waiting` messages."""
    world, alice = _with_url("http_unordered")
    world.endpoint = lambda url: "status 500"
    _publish_singles(alice, waiting)
    world.settle()
    ((_, state),) = world.executions
    world.clock.pass_seconds(300)
    before = len(world.posts)
    written, read = units_of(world, lambda: world.run("push_slow", state))
    attempts = len(world.posts) - before
    return written / attempts, read / attempts


def _with_url(policy: str) -> tuple[World, Client]:
    world = World()
    alice = world.client("alice")
    alice.put("/topics/news")
    url = {"protocol": "http", "endpoint": "http://127.0.0.1:9/", "retry": {"policy": policy}}
    alice.put("/topics/news/subscriptions/web", url)
    return world, alice


def _publish_singles(client: Client, count: int) -> None:
    for _ in range(count):
        _put_in(client, "/topics/news", [bodies.text(100)])


def left_behind(workload: Workload, objects: Requests | None = None) -> tuple[int, int, int]:
    """Returns bytes in the table and of objects, and the objects' days, after a batch's delete.

    `objects` as in `our_life`.
    """
    world = world_with(objects)
    alice = world.client("alice")
    alice.put("/queues/work", {"partitions": 1})
    _go_through(alice, workload.messages())
    keys = world.bucket.keys()
    in_objects = sum(len(world.core.bodies.get(key) or b"") for key in keys)
    days = max((int(key[1:3]) for key in keys), default=0)
    return sum(map(item_bytes, world.items())), in_objects, days


def metering_units() -> float:
    """Returns write units of one invocation of the meter: records of one queue in one minute."""
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work")
    for _ in range(100):
        alice.send("work", "x" * 100)
    return units_of(world, lambda: world.run_stream("meter"))[0]


def subscribe(client: Client, protocol: str, number: int) -> None:
    """Makes a subscription of the topic `news`, if needed with a new queue or URL."""
    body = {"protocol": protocol}
    if protocol == "queue":
        client.put(f"/queues/in{number}", {"partitions": 1})
        body["endpoint"] = f"in{number}"
    if protocol == "http":
        body["endpoint"] = f"http://127.0.0.1:{9_000 + number}/"
    client.put(f"/topics/news/subscriptions/sub{number}", body)


def _spread(
    world: World, client: Client, messages: Sequence[Message], protocol: str, count: int
) -> None:
    _put_in(client, "/topics/news", messages)
    world.run_stream("fan_out")
    if protocol == "http":
        _deliver(world, count * len(messages))
        return
    for number in range(count):
        source = f"queues/in{number}" if protocol == "queue" else _subscription(number)
        _take(client, f"/{source}", len(messages))


def _deliver(world: World, count: int) -> int:
    """Runs invocations until `count` messages are posted. Returns their number."""
    posts, invocations = len(world.posts), 0
    while world.invoked:
        world.run(*world.invoked.popleft())
        invocations += 1
    if len(world.posts) - posts != count:
        raise RuntimeError(f"delivered {len(world.posts) - posts} of {count}")
    return invocations


def _subscription(number: int) -> str:
    return f"topics/news/subscriptions/sub{number}"


def _go_through(client: Client, messages: Sequence[Message], **fields: Any) -> None:
    sent = [message | fields for message in messages]
    _put_in(client, "/queues/work", sent)
    _take(client, "/queues/work", len(messages))


def _put_in(client: Client, target: str, messages: Sequence[Message]) -> None:
    """Sends to a queue or publishes to a topic. Raises RuntimeError if that is refused."""
    reply = client.post(f"{target}/messages", {"messages": messages})
    if reply.status != 201:
        raise RuntimeError(f"{target} refused {len(messages)} messages: {reply.text}")


def _take(client: Client, source: str, count: int) -> None:
    asked = {"max": 16, "wait_seconds": 0}
    held = client.post(f"{source}/messages/receive", asked).json["messages"]
    receipts = [message["receipt"] for message in held]
    gone = client.post(f"{source}/messages/delete", {"receipts": receipts}).json["deleted"]
    if len(gone) != count:
        raise RuntimeError(f"deleted {len(gone)} of {count}")


def units_of(
    world: World, call: Callable[[], object], objects: Requests | None = None
) -> tuple[float, float]:
    """Returns (write units, read units) of a call; adds its requests to S3 to `objects`."""
    before = Counter(world.bucket.requests())
    used = world.units(call)
    if objects is not None:
        objects.update(Counter(world.bucket.requests()) - before)
    return used
