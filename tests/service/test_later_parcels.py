"""Parcels that a later release wrote: every write of this one keeps what it does not know of them.

Each parcel has an attribute of its own, and one for each message, which is named by a letter and
the message's place. Wherever the messages go, theirs go with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.service.conftest import TestQueue
from tests.service.topics import Schedules, TestTopic

from cirrusmq.base.shapes import decode_packed
from cirrusmq.model.message import compress, decompress
from cirrusmq.model.parcel import Parcel
from cirrusmq.publishing.half_messages.half import Terms
from cirrusmq.publishing.records import DeliveryGroup, Published, TopicHeader
from cirrusmq.sending.making import LogHeader
from cirrusmq.storage.parcels import ARCHIVE, LOG, PARCELS, read_parcel
from cirrusmq_local.testing import Client, World

FLAG, OF_EACH = "later", "Q"
HEADER_KINDS: dict[str, type[msgspec.Struct]] = {"h": LogHeader, "g": TopicHeader}
FURTHER: list[Any] = [{"of": "a message"}, 7]
"""Behind the fields of a packed message."""


def parcels(world: World) -> list[tuple[dict[str, Any], Parcel]]:
    """Every parcel, those in archives too, with its item."""
    kinds = f"{PARCELS}#", f"{ARCHIVE}#"
    items = [item for item in world.items() if item["pk"]["S"].startswith(kinds)]
    return [(item, read_parcel(item)) for item in items]


def mark(world: World) -> int:
    """Have a later release's attributes in every parcel; how many there are."""
    found = parcels(world)
    for item, parcel in found:
        of_each = {
            f"{OF_EACH}{place}": {"S": parcel.message_id(place)} for place in range(parcel.count)
        }
        marked = {**_with_further(item), FLAG: {"M": {"depth": {"N": "2"}}}, **of_each}
        world.core.store.write("PutItem", {"TableName": world.core.tables.messages, "Item": marked})
    for item in world.items():
        if item["pk"]["S"].startswith(f"{LOG}#"):
            put = {"TableName": world.core.tables.messages, "Item": _with_further(item)}
            world.core.store.write("PutItem", put)
    return len(found)


def _whole(header: list[Any], kind: type[msgspec.Struct]) -> list[Any]:
    """The header with all fields that this release knows: it writes no defaults at the end."""
    return [*header, *(each.default for each in msgspec.structs.fields(kind)[len(header) :])]


def _with_further(item: dict[str, Any]) -> dict[str, Any]:
    """The item, its messages with fields more, where they are packed; its header, where it has one.

    What fan-out is given by the stream is as it was put: what reads the log later has these.
    """
    packed = {}
    for name in {"h", "g"} & item.keys() if item["pk"]["S"].startswith(f"{LOG}#") else ():
        header = [*_whole(msgspec.msgpack.decode(item[name]["B"]), HEADER_KINDS[name]), *FURTHER]
        packed[name] = {"B": msgspec.msgpack.encode(header)}
    for name in ("b", "e"):
        if name in item:
            messages = msgspec.msgpack.decode(decompress(item[name]["B"]))
            further = msgspec.msgpack.encode([[*fields, *FURTHER] for fields in messages])
            packed[name] = {"B": compress(further)}
    return item | packed


def lost(world: World) -> list[str]:
    """What is missing or wrong in the parcels that there are."""
    problems = []
    for item, parcel in parcels(world):
        where = f"{item['pk']['S']} {item['sk']['S']}"
        if item.get(FLAG) != {"M": {"depth": {"N": "2"}}}:
            problems.append(f"{where}: {FLAG}")
        for place in range(parcel.count):
            told = item.get(f"{OF_EACH}{place}", {}).get("S")
            if told != parcel.message_id(place):
                problems.append(f"{where}: {OF_EACH}{place} is {told}")
    for item in world.items():
        for name in {"b", "e"} & item.keys() if item["pk"]["S"][0] in (PARCELS, LOG) else ():
            messages = msgspec.msgpack.decode(decompress(item[name]["B"]))
            if any(fields[-len(FURTHER) :] != FURTHER for fields in messages):
                problems.append(f"{item['pk']['S']} {item['sk']['S']}: {name}")
    return problems


Write = Callable[[Client], None]
WRITES: dict[str, Write] = {}
"""What stores parcels, marks them, and has this release write them."""


def write(made: Write) -> Write:
    WRITES[made.__name__] = made
    return made


def queues(alice: Client, **attributes: Any) -> TestQueue:
    alice.put("/queues/dead")
    given = {"dead_letter": {"queue": "dead", "max_receives": 2}, "partitions": 1, **attributes}
    assert alice.put("/queues/work", given).status == 201
    return TestQueue(alice, "work")


def marked(alice: Client, **attributes: Any) -> TestQueue:
    """A queue with three messages of one send that a later release wrote."""
    work = queues(alice, **attributes)
    work.send("a", "b", "c")
    mark(alice.world)
    return work


@write
def part_is_deleted(alice: Client) -> None:
    work = marked(alice)
    work.delete(work.receive(2)[1])


@write
def held_longer_and_given_back_in_place(alice: Client) -> None:
    work = marked(alice)
    first, second, _ = work.receive()
    work.hold(first, 300)
    work.give_back(second)


@write
def given_back_for_later(alice: Client) -> None:
    work = marked(alice)
    received = work.receive()
    work.give_back(received[1], received[2], delay_seconds=600)


@write
def given_back_untried_for_later(alice: Client) -> None:
    work = marked(alice)
    received = work.receive()
    work.give_back(received[2], tried=False, delay_seconds=600)


@write
def put_off(alice: Client) -> None:
    work = queues(alice)
    sent = work.send("a", "b", "c", delay_seconds=60)
    mark(alice.world)
    reply = alice.patch(f"/queues/work/messages/{sent[1]['id']}", {"delay_seconds": 900})
    assert reply.status == 200, reply.text
    assert alice.delete(f"/queues/work/messages/{sent[2]['id']}").status == 204


@write
def of_a_fair_queue_given_back(alice: Client) -> None:
    work = queues(alice, fair=True)
    work.send("a", "b", "c", group="g")
    mark(alice.world)
    work.give_back(*work.receive(), delay_seconds=600)


@write
def dead_lettered_by_its_holder(alice: Client) -> None:
    work = marked(alice)
    received = work.receive()
    work.act("dead-letter", received[1], reason="odd")


@write
def dead_lettered_by_receives(alice: Client) -> None:
    work = queues(alice, visibility_timeout_seconds=10)
    work.send("a", "b")
    mark(alice.world)
    for _ in range(3):
        work.receive()
        alice.world.settle()
        alice.world.clock.pass_seconds(10)
    assert TestQueue(alice, "dead").show()["counts"]["active"] == 2


@write
def dead_lettered_by_age(alice: Client) -> None:
    limit = {"dead_letter": {"queue": "dead", "max_age_seconds": 300}}
    work = queues(alice, **limit)
    work.send("a", "b")
    mark(alice.world)
    Schedules(alice.world, sweeps=True).pass_seconds(600)
    assert len(TestQueue(alice, "dead").receive()) == 2


@write
def redriven(alice: Client) -> None:
    dead_lettered_by_its_holder(alice)
    assert TestQueue(alice, "dead").run("redrive")["done"] == 1


@write
def redriven_elsewhere(alice: Client) -> None:
    alice.put("/queues/other", {"ordered": True})
    work = queues(alice)
    work.send("a", "b", group="g")
    mark(alice.world)
    assert work.run("redrive", to="other")["done"] == 2


@write
def archived(alice: Client) -> None:
    work = marked(alice, rewind_seconds=3_600)
    work.delete(*work.receive())
    assert {item["pk"]["S"][0] for item, _ in parcels(alice.world)} == {ARCHIVE}


@write
def archived_in_parts(alice: Client) -> None:
    work = marked(alice, rewind_seconds=3_600)
    for message in work.receive():
        work.delete(message)
    assert {item["pk"]["S"][0] for item, _ in parcels(alice.world)} == {ARCHIVE}


@write
def rewound(alice: Client) -> None:
    begun = alice.get("/health").json["time"]
    archived(alice)
    work = TestQueue(alice, "work")
    assert work.run("rewind", to=begun)["done"] == 3
    work.give_back(*work.receive(2), delay_seconds=600)


@write
def of_an_ordered_queue_rewound(alice: Client) -> None:
    begun = alice.get("/health").json["time"]
    work = queues(alice, ordered=True, rewind_seconds=3_600)
    work.send("a", "b", group="g")
    work.send("c", group="g")
    mark(alice.world)
    work.delete(*work.receive())
    work.run("rewind", to=begun)
    work.receive(1)


@write
def given_back_by_a_retry_policy(alice: Client) -> None:
    work = marked(alice, retry={"policy": "custom", "waits": [60] * 9})
    received = work.receive()
    work.give_back(received[0])
    work.give_back(received[1], delay_seconds=0)


@write
def copied_for_a_new_receiver(alice: Client) -> None:
    work = queues(alice)
    work.send("a", "b", "c")
    work.send("large" * 600)
    mark(alice.world)
    work.delete(work.receive(2)[1])
    work.add_receiver("late", start="earliest")
    assert len({parcel.source_id for _, parcel in parcels(alice.world)}) == 2
    assert len(work.receive_all(receiver="late")) == 3


@write
def set_apart_from_a_large_one(alice: Client) -> None:
    """The bound of its send is too high for it: it gets a parcel with a bound of its own."""
    sender = Client(alice.world, alice.authorization)
    sender.gzips = True
    work = queues(sender, max_message_bytes=4_194_304)
    work.send("\x01" * 1_000_000, "b" * 1_000_000)
    mark(alice.world)
    before = len(parcels(alice.world))
    request = {"max": 16, "wait_seconds": 0}
    for _ in range(3):
        alice.post("/queues/work/messages/receive", request)
    assert len(parcels(alice.world)) == before + 1


@write
def of_a_rewound_group(alice: Client) -> None:
    topic = TestTopic(alice)
    group = topic.subscribe("group")
    topic.publish("a", "b")
    mark(alice.world)
    held, _ = group.receive()
    alice.world.clock.pass_seconds(5)
    to = alice.get("/health").json["time"]
    assert alice.post(f"{group.path}/rewind", {"to": to}).status == 202
    alice.world.settle()
    group.give_back(held, delay_seconds=600)


@write
def of_a_receiver_that_starts_earlier(alice: Client) -> None:
    work = queues(alice)
    work.add_receiver("first")
    work.send("a", "b")
    work.send("large" * 600)
    mark(alice.world)
    work.add_receiver("late", start="earliest")
    assert len(work.receive_all(receiver="late")) == 3
    mark(alice.world)  # copies of the log have what this release reads there


@write
def of_a_group(alice: Client) -> None:
    alice.put("/queues/dead")
    topic = TestTopic(alice)
    group = topic.subscribe("group", dead_letter_queue="dead")
    topic.publish("a", "b", "c")
    mark(alice.world)
    received = group.receive()
    group.give_back(received[1], delay_seconds=600)
    group.act("dead-letter", received[2], reason="odd")


@write
def of_a_group_redriven(alice: Client) -> None:
    of_a_group(alice)
    assert TestQueue(alice, "dead").run("redrive")["done"] == 1


@write
def of_a_url_redriven(alice: Client) -> None:
    posted_again_and_given_up(alice)
    assert TestQueue(alice, "dead").run("redrive")["done"] == 2


@write
def posted_again_and_given_up(alice: Client) -> None:
    alice.put("/queues/dead")
    topic = TestTopic(alice)
    retry = {"policy": "custom", "waits": [60]}
    topic.subscribe("hook", "http", retry=retry, dead_letter_queue="dead")
    alice.world.endpoint = lambda url: "status 500"
    topic.publish("a", "b")
    mark(alice.world)
    Schedules(alice.world, sweeps=True).pass_seconds(600)
    assert TestQueue(alice, "dead").show()["counts"]["active"] == 2


@pytest.mark.few(9)
@pytest.mark.writes_by_hand
@pytest.mark.parametrize("name", WRITES)
def test_a_write_keeps_unknown_attributes(name: str, world: World, alice: Client) -> None:
    WRITES[name](alice)
    assert parcels(world)
    assert lost(world) == []


HEADERS: list[msgspec.Struct] = [
    LogHeader((1,), (0,), None, (0,), 4),
    LogHeader((1,), (0,), (7,), (0,), 4, {"reason": "odd"}, True),
    TopicHeader("news", "alice", [DeliveryGroup([0], 1, 2, "0123456789ab")], None, ["a"]),
    DeliveryGroup([0], 1, 2, "0123456789ab"),
    Terms("alice", "g", 30, 9, ["a"], [None]),
    Published("Msg-x", 1, 2),
]
"""Of log records and half messages: put once, and never written again."""


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: type(header).__name__)
def test_a_header_may_have_further_fields(header: msgspec.Struct) -> None:
    fields = msgspec.structs.fields(header)
    packed = [msgspec.to_builtins(getattr(header, each.name)) for each in fields]
    longer = msgspec.msgpack.encode([*packed, *FURTHER])
    assert decode_packed(longer, type(header)) == header
