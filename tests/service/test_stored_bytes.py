"""What sends, fan-out, moves and redrives store, byte for byte.

Workers of two releases put the same parcel, and the second one must find its own. Who changes on
purpose what is stored writes the new digests here, and says in the commit how the other release
reads it.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from tests.service.conftest import MakeQueue
from tests.service.topics import TestTopic

from cirrusmq_local.testing import World

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "plain": {},
    "ordered": {"ordered": True},
    "fair": {"fair": True},
    "retrying": {"retry": {"policy": "custom", "waits": [5]}},
    "rewindable": {"rewind_seconds": 3_600},
}
SENT = {
    ("plain", False): "362ff957f5011695",
    ("plain", True): "5a91ecb0fbc52d9f",
    ("ordered", False): "bcee1c0322baec42",
    ("ordered", True): "0b578919962f8ea0",
    ("fair", False): "b4a169f9e4cb2a16",
    ("fair", True): "05a4090888572fe7",
    ("retrying", False): "226b5aab5005576d",
    ("retrying", True): "cb4d869fcb06b1ac",
}
"""By kind of queue, and whether it has receivers."""
PUBLISHED = {False: "a97472f8d9754f4c", True: "00a9b7f6142d5807"}
"""By whether messages are for later, which no order takes."""


def digest(world: World) -> str:
    items = [each for each in world.items() if each["pk"]["S"][:2] in ("Q#", "L#")]
    written = sorted(json.dumps(each, sort_keys=True, default=bytes.hex) for each in items)
    return hashlib.sha256("\n".join(written).encode()).hexdigest()[:16]


def messages(ordered: bool, size: int) -> list[dict[str, Any]]:
    """Some together and some alone: by when they are due, by their groups, by their bytes."""
    made: list[dict[str, Any]] = [
        {"body": f"{number}" * size, "group": f"g{number % 3}"} for number in range(6)
    ]
    made[0] |= {"tags": ["t"], "attributes": {"a": "1"}}
    made[1] |= {"visibility_timeout_seconds": 77}
    made[2] |= {"body": "\u0001" * 300}
    if not ordered:
        made[3] |= {"delay_seconds": 60}
        made[4] |= {"delay_seconds": 60}
        del made[5]["group"]
    return made


@pytest.mark.parametrize(("kind", "receivers"), SENT)
def test_bytes_of_sends_moves_and_redrives(
    world: World, make_queue: MakeQueue, kind: str, receivers: bool
) -> None:
    ordered = kind == "ordered"
    dead = make_queue("dead", ordered=ordered)
    fields = {"dead_letter": {"queue": "dead", "max_receives": 9}, **ATTRIBUTES[kind]}
    queue = make_queue(partitions=4, **fields)
    if receivers:
        queue.add_receiver("copy")
        queue.add_receiver("some", filter={"tags": ["t"]})

    for size in (1, 5_000):
        reply = queue.try_send(messages(ordered, size))
        assert reply.status == 201, reply.text
    world.settle()
    queue.act("dead-letter", *queue.receive(4))
    dead.run("redrive")
    world.settle()

    assert digest(world) == SENT[kind, receivers]


@pytest.mark.parametrize("later", [False, True])
def test_bytes_of_publishes(
    world: World, make_queue: MakeQueue, topic: TestTopic, later: bool
) -> None:
    make_queue("dead")
    for kind, attributes in ATTRIBUTES.items():
        if kind == "ordered" and later:
            continue
        dead_letter = {"queue": "dead", "max_receives": 9} if kind == "retrying" else None
        make_queue(kind, dead_letter=dead_letter, **attributes)
        topic.subscribe(f"into-{kind}", protocol="queue", endpoint=kind)
    topic.subscribe("some", filter={"tags": ["t"]}, dead_letter_queue="dead")
    topic.subscribe("hook", protocol="http")
    if not later:
        topic.subscribe("ordered", ordered=True)

    for size in (1, 5_000):
        published = messages(not later, size)
        published[1].pop("visibility_timeout_seconds")
        for each in (published, [{"body": "alone"}]):
            reply = topic.try_publish(each)
            assert reply.status == 201, reply.text
    world.run_stream("fan_out")

    assert digest(world) == PUBLISHED[later]
