"""Parcels that a later release wrote: every write of this one keeps what it does not know of them.

Each parcel has an attribute of its own, and one for each message, which is named by a letter and
the message's place. Wherever the messages go, theirs go with them.
"""

from __future__ import annotations

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


class Writes:
    """Each stores parcels, marks them, and has this release write them."""

    def __init__(self, alice: Client) -> None:
        self.alice = alice

    def part_is_deleted(self) -> None:
        work = marked(self.alice)
        work.delete(work.receive(2)[1])

    def held_longer_and_given_back_in_place(self) -> None:
        work = marked(self.alice)
        first, second, _ = work.receive()
        work.hold(first, 300)
        work.give_back(second)

    def given_back_for_later(self) -> None:
        work = marked(self.alice)
        received = work.receive()
        work.give_back(received[1], received[2], delay_seconds=600)

    def given_back_untried_for_later(self) -> None:
        work = marked(self.alice)
        received = work.receive()
        work.give_back(received[2], tried=False, delay_seconds=600)

    def put_off(self) -> None:
        work = queues(self.alice)
        sent = work.send("a", "b", "c", delay_seconds=60)
        mark(self.alice.world)
        reply = self.alice.patch(f"/queues/work/messages/{sent[1]['id']}", {"delay_seconds": 900})
        assert reply.status == 200, reply.text
        assert self.alice.delete(f"/queues/work/messages/{sent[2]['id']}").status == 204

    def of_a_fair_queue_given_back(self) -> None:
        work = queues(self.alice, fair=True)
        work.send("a", "b", "c", group="g")
        mark(self.alice.world)
        work.give_back(*work.receive(), delay_seconds=600)

    def dead_lettered_by_its_holder(self) -> None:
        work = marked(self.alice)
        received = work.receive()
        work.act("dead-letter", received[1], reason="odd")

    def dead_lettered_by_receives(self) -> None:
        work = queues(self.alice, visibility_timeout_seconds=10)
        work.send("a", "b")
        mark(self.alice.world)
        for _ in range(3):
            work.receive()
            self.alice.world.settle()
            self.alice.world.clock.pass_seconds(10)
        assert TestQueue(self.alice, "dead").show()["counts"]["active"] == 2

    def dead_lettered_by_age(self) -> None:
        limit = {"dead_letter": {"queue": "dead", "max_age_seconds": 300}}
        work = queues(self.alice, **limit)
        work.send("a", "b")
        mark(self.alice.world)
        Schedules(self.alice.world, sweeps=True).pass_seconds(600)
        assert len(TestQueue(self.alice, "dead").receive()) == 2

    def redriven(self) -> None:
        self.dead_lettered_by_its_holder()
        assert TestQueue(self.alice, "dead").run("redrive")["done"] == 1

    def redriven_elsewhere(self) -> None:
        self.alice.put("/queues/other", {"ordered": True})
        work = queues(self.alice)
        work.send("a", "b", group="g")
        mark(self.alice.world)
        assert work.run("redrive", to="other")["done"] == 2

    def archived(self) -> None:
        work = marked(self.alice, rewind_seconds=3_600)
        work.delete(*work.receive())
        assert {item["pk"]["S"][0] for item, _ in parcels(self.alice.world)} == {ARCHIVE}

    def archived_in_parts(self) -> None:
        work = marked(self.alice, rewind_seconds=3_600)
        for message in work.receive():
            work.delete(message)
        assert {item["pk"]["S"][0] for item, _ in parcels(self.alice.world)} == {ARCHIVE}

    def rewound(self) -> None:
        begun = self.alice.get("/health").json["time"]
        self.archived()
        work = TestQueue(self.alice, "work")
        assert work.run("rewind", to=begun)["done"] == 3
        work.give_back(*work.receive(2), delay_seconds=600)

    def of_an_ordered_queue_rewound(self) -> None:
        begun = self.alice.get("/health").json["time"]
        work = queues(self.alice, ordered=True, rewind_seconds=3_600)
        work.send("a", "b", group="g")
        work.send("c", group="g")
        mark(self.alice.world)
        work.delete(*work.receive())
        work.run("rewind", to=begun)
        work.receive(1)

    def given_back_by_a_retry_policy(self) -> None:
        work = marked(self.alice, retry={"policy": "custom", "waits": [60] * 9})
        received = work.receive()
        work.give_back(received[0])
        work.give_back(received[1], delay_seconds=0)

    def copied_for_a_new_receiver(self) -> None:
        work = queues(self.alice)
        work.send("a", "b", "c")
        work.send("large" * 600)
        mark(self.alice.world)
        work.delete(work.receive(2)[1])
        work.add_receiver("late", start="earliest")
        assert len({parcel.source_id for _, parcel in parcels(self.alice.world)}) == 2
        assert len(work.receive_all(receiver="late")) == 3

    def set_apart_from_a_large_one(self) -> None:
        """The bound of its send is too high for it: it gets a parcel with a bound of its own."""
        sender = Client(self.alice.world, self.alice.authorization)
        sender.gzips = True
        work = queues(sender, max_message_bytes=4_194_304)
        work.send("\x01" * 1_000_000, "b" * 1_000_000)
        mark(self.alice.world)
        before = len(parcels(self.alice.world))
        request = {"max": 16, "wait_seconds": 0}
        for _ in range(3):
            self.alice.post("/queues/work/messages/receive", request)
        assert len(parcels(self.alice.world)) == before + 1

    def of_a_rewound_group(self) -> None:
        topic = TestTopic(self.alice)
        group = topic.subscribe("group")
        topic.publish("a", "b")
        mark(self.alice.world)
        held, _ = group.receive()
        self.alice.world.clock.pass_seconds(5)
        to = self.alice.get("/health").json["time"]
        assert self.alice.post(f"{group.path}/rewind", {"to": to}).status == 202
        self.alice.world.settle()
        group.give_back(held, delay_seconds=600)

    def of_a_receiver_that_starts_earlier(self) -> None:
        work = queues(self.alice)
        work.add_receiver("first")
        work.send("a", "b")
        work.send("large" * 600)
        mark(self.alice.world)
        work.add_receiver("late", start="earliest")
        assert len(work.receive_all(receiver="late")) == 3
        mark(self.alice.world)  # copies of the log have what this release reads there

    def of_a_group(self) -> None:
        self.alice.put("/queues/dead")
        topic = TestTopic(self.alice)
        group = topic.subscribe("group", dead_letter_queue="dead")
        topic.publish("a", "b", "c")
        mark(self.alice.world)
        received = group.receive()
        group.give_back(received[1], delay_seconds=600)
        group.act("dead-letter", received[2], reason="odd")

    def of_a_group_redriven(self) -> None:
        self.of_a_group()
        assert TestQueue(self.alice, "dead").run("redrive")["done"] == 1

    def of_a_url_redriven(self) -> None:
        self.posted_again_and_given_up()
        assert TestQueue(self.alice, "dead").run("redrive")["done"] == 2

    def posted_again_and_given_up(self) -> None:
        self.alice.put("/queues/dead")
        topic = TestTopic(self.alice)
        retry = {"policy": "custom", "waits": [60]}
        topic.subscribe("hook", "http", retry=retry, dead_letter_queue="dead")
        self.alice.world.endpoint = lambda url: "status 500"
        topic.publish("a", "b")
        mark(self.alice.world)
        Schedules(self.alice.world, sweeps=True).pass_seconds(600)
        assert TestQueue(self.alice, "dead").show()["counts"]["active"] == 2


@pytest.mark.few(9)
@pytest.mark.writes_by_hand
@pytest.mark.parametrize("name", [name for name in vars(Writes) if name[0] != "_"])
def test_a_write_keeps_unknown_attributes(name: str, world: World, alice: Client) -> None:
    getattr(Writes(alice), name)()
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
