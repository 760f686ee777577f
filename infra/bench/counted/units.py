"""Prints write and read units of a message by Amazon's rules, and their causes."""

from __future__ import annotations

from typing import Any

from cirrusmq_local.testing.world import World

from ..drawing.tables import show
from .designs import DESIGNS
from .halves import CALLS, half_units
from .hands import hands_rows
from .lives import (
    BATCH_40_BYTES,
    BATCH_64_KB,
    FULL_64_KB,
    SINGLE_1_MB,
    SINGLE_3_MB,
    SINGLE_64_KB,
    SUBSCRIPTIONS,
    WORKLOADS,
    Requests,
    carried_life,
    our_life,
    published_life,
    pushed_units,
    retried_units,
)
from .priorities import priority_rows
from .reads import ENOUGH, receive_units
from .rewinds import early_rows, rewind_rows
from .shares import share_rows
from .turns import turn_rows

_S3 = ("Put", "Get", "Copy")


_REQUEST = {"body": "x" * 100, "reply": {"seconds": 60}}


def run() -> None:
    """Prints the tables."""
    _show_lives()
    _show_objects()
    _show_failures()
    _show_replaced()
    _show_replies()
    _show_reads()
    _show_published()
    _show_pushed()
    _show_hands()
    _show_shares()
    _show_halves()
    _show_rewinds()
    _show_turns()
    _show_priorities()


def _show_lives() -> None:
    lives = {
        workload.name: [
            our_life(workload),
            *(design.life(workload.size, workload.count) for design in DESIGNS.values()),
        ]
        for workload in WORKLOADS
    }
    heads = ["sent, received, deleted", "ours", *DESIGNS]
    for kind, place in (("Write", 0), ("Read", 1)):
        rows = [[name, *(units[place] for units in each)] for name, each in lives.items()]
        show(f"{kind} units of messages that travel together, by the queue's design", heads, rows)
    once = our_life(WORKLOADS[0], deduplication_id="one")
    show(
        "Units where the receive of the next batch deletes: two calls instead of three",
        ["sent, received, deleted", "write units", "read units"],
        [(workload.name, *carried_life(workload)) for workload in WORKLOADS],
    )
    print(f"\nOne of 100 bytes, strictly deduplicated: {once[0]:g} write, {once[1]:g} read units.")


def _show_objects() -> None:
    """Prints units of large messages in objects, and the requests to S3."""
    rows: list[tuple[object, ...]] = []
    for workload in (SINGLE_64_KB, BATCH_64_KB):
        for place, objects in (("the table", None), ("an object", Requests())):
            units = our_life(workload, objects)
            rows.append((workload.name, place, *units, *_requests(objects)))
        for place, objects in (("the table", None), ("an object", Requests())):
            units = published_life(workload, "pull", objects=objects)
            name = f"{workload.name}, published to {SUBSCRIPTIONS}"
            rows.append((name, place, *units, *_requests(objects)))
    for workload in (FULL_64_KB, SINGLE_1_MB, SINGLE_3_MB):
        objects = Requests()
        units = our_life(workload, objects)
        rows.append((workload.name, "an object", *units, *_requests(objects)))
    show(
        "Large messages in the table, and in objects of a bucket",
        ["sent, received, deleted", "in", "write units", "read units", "PUTs", "GETs"],
        rows,
    )


def _requests(objects: Requests | None) -> tuple[int, int]:
    return (0, 0) if objects is None else (objects["PutObject"], objects["GetObject"])


def _show_failures() -> None:
    """Prints units of failures, without the receives."""
    rows = [
        ("one, within a second of its sending", failure_units(1, held_seconds=0.5)),
        ("one, later", failure_units(1)),
        ("16 of one send, given back together", failure_units(16)),
        ("one, to wait for two hours", failure_units(1, delay_seconds=7_200)),
        ("one of a queue that gives up by age", failure_units(1, max_age_seconds=300)),
        ("one of an ordered queue", failure_units(1, ordered=True)),
    ]
    show(
        "Units of a failure: a give-back, or a visibility of 0, of messages of 100 bytes",
        ["given back", "write units", "read units"],
        [(name, *units) for name, units in rows],
    )
    print(
        "\nAn environment moves 20 a second in a partition; beyond it each costs one unit. A lease"
    )
    print("that ends costs nothing.")


def failure_units(
    count: int,
    *,
    held_seconds: float = 5,
    delay_seconds: int = 0,
    max_age_seconds: int | None = None,
    ordered: bool = False,
) -> tuple[float, float]:
    """Returns (write units, read units) of one give-back of messages of one send."""
    world = World()
    alice = world.client("alice")
    attributes: dict[str, Any] = {"partitions": 1, "ordered": ordered}
    if max_age_seconds is not None:
        alice.put("/queues/dead")
        attributes["dead_letter"] = {"queue": "dead", "max_age_seconds": max_age_seconds}
    alice.put("/queues/work", attributes)
    alice.send("work", *["x" * 100] * count, group="g")
    receipts = [message["receipt"] for message in alice.receive("work")]
    alice.post("/queues/work/messages/delete", {"receipts": ["none"]})  # attributes are cached
    world.clock.pass_seconds(held_seconds)
    world.engine.reset_capacity()
    body = {"receipts": receipts, "delay_seconds": delay_seconds}
    given = alice.post("/queues/work/messages/give-back", body).json["given_back"]
    if len(given) != count:
        raise RuntimeError(f"gave back {len(given)} of {count}")
    used = world.engine.capacity()["by_table"][world.tables.messages]
    return float(used["write_units"]), float(used["read_units"])


def _show_replaced() -> None:
    """Prints units of one send with a `replace` key, of 100 bytes."""
    cases = {
        "the first under its key": replace_units("first"),
        "one that takes the place of another": replace_units("waits"),
        "the same, due earlier by its bound": replace_units("bounded"),
        "one whose predecessor was received": replace_units("received"),
    }
    show(
        "Units of a send with a replace key, a message of 100 bytes",
        ["sent", "write units", "read units"],
        [(name, *units) for name, units in cases.items()],
    )


def replace_units(case: str) -> tuple[float, float]:
    """Returns (write units, read units) of one send with a `replace` key."""
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work", {"partitions": 1})
    bound = {"delay_seconds": 30, "replace_within_seconds": 31} if case == "bounded" else {}

    def send(key: str, **more: int) -> str | None:
        (sent,) = alice.send("work", "x" * 100, replace=key, **more)
        replaced: str | None = sent["replaced"]
        return replaced

    if case != "first":
        send("a", **bound)
    world.clock.pass_seconds(2)
    if case == "received":
        alice.receive("work")
    send("b")  # attributes are cached
    world.engine.reset_capacity()
    replaced = send("a", **bound)
    if (replaced is None) is (case in ("waits", "bounded")):
        raise RuntimeError(f"{case}: replaced {replaced}")
    used = world.engine.capacity()["by_table"][world.tables.messages]
    return float(used["write_units"]), float(used["read_units"])


def _show_replies() -> None:
    """Prints units of the calls about one request and its reply."""
    cases = {
        "a request of 100 bytes": reply_units("ask"),
        "a look of its asker": reply_units("look"),
        "a wait of 20 s": reply_units("wait"),
        "a reply of 100 bytes": reply_units("reply"),
        "a reply of 10 KB, which packs to half": reply_units("reply", 10_240),
        "giving up": reply_units("give up"),
    }
    show(
        "Units of a request and its reply",
        ["call", "write units", "read units"],
        [(name, *units) for name, units in cases.items()],
    )


def reply_units(case: str, size: int = 100) -> tuple[float, float]:
    """Returns (write units, read units) of one call about a request. size: bytes of its reply."""
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work", {"partitions": 1})
    (sent,) = alice.send("work", "x" * 100, reply={"seconds": 60})
    (received,) = alice.receive("work")
    path = f"/queues/work/messages/{sent['id']}/reply"
    body = world.random.randbytes(size // 2).hex()
    reply = {"receipt": received["receipt"], "reply": {"body": body}}
    if case == "give up":
        world.clock.pass_seconds(63)
    alice.send("work", "y")  # attributes are cached
    world.engine.reset_capacity()
    wait = 20 if case == "wait" else 0
    if case == "ask":
        done = alice.post("/queues/work/messages", {"messages": [_REQUEST]})
    elif case == "reply":
        done = alice.post(path, reply)
    else:
        done = alice.get(path, f"reply_by={sent['reply_by']}&wait_seconds={wait}")
    if done.status >= 300:
        raise RuntimeError(f"{case}: {done.text}")
    used = world.engine.capacity()["by_table"][world.tables.messages]
    return float(used["write_units"]), float(used["read_units"])


def _show_reads() -> None:
    """Prints read units of small messages, by call."""
    world = World()
    alice = world.client("alice")
    alice.put("/queues/work")
    body = "x" * 100
    first = world.units(lambda: alice.send("work", body))[1]
    further = world.units(lambda: alice.send("work", body))[1]
    receipts = [message["receipt"] for message in alice.receive("work")]
    deleted = world.units(
        lambda: alice.post("/queues/work/messages/delete", {"receipts": receipts})
    )[1]
    rows: list[tuple[object, ...]] = [
        ("first send after a start: the queue's attributes, its count of messages", first),
        ("any further send", further),
        ("delete", deleted),
    ]
    for count in (1, 4, 16):
        rows += [
            (f"receive, {waiting}, partitions: {count}", receive_units(count, waiting=messages))
            for waiting, messages in (
                ("messages wait in each", ENOUGH * count),
                ("one waits alone (mean)", 1),
                ("nothing waits", 0),
            )
        ]
    show("Where read units come from: one call, messages of 100 bytes", ["call", "units"], rows)
    print("\nA look at a partition costs half a unit. Attributes are cached for a second, counts")
    print("for a minute: one unit a second for each queue that an execution environment serves.")


def _show_published() -> None:
    rows = []
    for workload, protocol in (
        (SINGLE_64_KB, "pull"),
        (SINGLE_64_KB, "queue"),
        (BATCH_64_KB, "pull"),
        (BATCH_40_BYTES, "queue"),
    ):
        written, read = published_life(workload, protocol)
        rows.append((workload.name, protocol, written, read, written / workload.count))
    show(
        f"Units from publishing to the last deletion, {SUBSCRIPTIONS} subscriptions",
        ["published", "to", "write units", "read units", "write units a message"],
        rows,
    )


def _show_pushed() -> None:
    """Prints units of posts to a URL, without the publish and the parcels."""
    rows: list[tuple[object, ...]] = []
    for count in (1, 16, 200):
        written, read = pushed_units(count)
        rows.append((f"{count} delivered by one invocation", written / count, read / count))
    for waiting in (1, 16, 200, 2_000):
        rows.append((f"a retry that fails, {waiting:,} due together", *retried_units(waiting)))
    heads = ["one message of 100 bytes", "write units", "read units"]
    show("Posting to a URL, published one by one", heads, rows)


def _show_hands() -> None:
    heads = ["call", "write units", "read units"]
    show("What is done by hand, over all tables, messages of 100 bytes", heads, hands_rows())


def _show_halves() -> None:
    """Prints units of half messages, without the deliveries to subscriptions."""
    rows = [
        (workload.name, call, written, read, *(objects[f"{each}Object"] for each in _S3))
        for workload in (WORKLOADS[0], SINGLE_64_KB)
        for call in CALLS
        for written, read, objects in [half_units(workload, call)]
    ]
    heads = ["half message", "call", "write units", "read units", "PUTs", "GETs", "copies"]
    show("Half messages: units of each call", heads, rows)


def _show_rewinds() -> None:
    """Prints units of rewound groups."""
    heads = ["a group of a topic with one partition", "write units", "read units"]
    show("Rewinding a group, over all tables, messages of 100 bytes", heads, rewind_rows())
    heads = ["a receiver of a queue with one partition", "write units", "read units"]
    show("A receiver from the beginning, messages of 100 bytes", heads, early_rows())


def _show_turns() -> None:
    """Prints units of fair queues."""
    heads = ["a fair queue of 4 partitions", "write units", "read units"]
    show("Fair queues, messages of 100 bytes", heads, turn_rows())


def _show_priorities() -> None:
    """Prints units of queues with priorities."""
    heads = ["a queue with 16 priorities", "write units", "read units"]
    show("Priorities, messages of 100 bytes", heads, priority_rows())


def _show_shares() -> None:
    heads = ["shared with another account", "write units", "read units"]
    show("Topics that are shared", heads, share_rows())
