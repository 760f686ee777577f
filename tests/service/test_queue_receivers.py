"""Receivers of a queue: each gets everything, with leases, counts and receipts of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, sweep, to_ms
from tests.service.crashes import BrokenStore, before_transactions

from cirrusmq_local.testing import World

Now = Callable[..., str]


@pytest.fixture
def logged(world: World, queue: TestQueue) -> TestQueue:
    """A queue with a receiver, and with a message of a second ago."""
    queue.add_receiver("first")
    queue.send("old")
    world.settle()
    world.clock.pass_seconds(1)
    return queue


def test_each_receiver_sees_the_full_stream(world: World, queue: TestQueue) -> None:
    queue.add_receiver("one")
    queue.add_receiver("two")
    sent = queue.send("a", "b" * 3_000, attributes={"x": "1"}, tags=["t"])
    world.settle()

    for fields in ({}, {"receiver": "default"}, {"receiver": "one"}, {"receiver": "two"}):
        received = queue.receive_all(**fields)
        expected = [] if fields.get("receiver") == "default" else sorted(e["id"] for e in sent)
        assert sorted(message["id"] for message in received) == expected
        assert all(message["attributes"] == {"x": "1"} for message in received)
        assert all(message["tags"] == ["t"] for message in received)


def test_leases_counts_and_receipts_are_independent(world: World, queue: TestQueue) -> None:
    queue.add_receiver("copy")
    queue.send("x")
    world.settle()
    (default,) = queue.receive()
    queue.delete(default)
    (copy,) = queue.receive(receiver="copy", visibility_timeout_seconds=5)
    world.clock.pass_seconds(5)

    (again,) = queue.receive(receiver="copy")

    assert (copy["receive_count"], again["receive_count"]) == (1, 2)
    assert queue.act("delete", copy)["failed"][0]["code"] == "ReceiptExpired"
    assert queue.receive() == []
    queue.give_back(again, delay_seconds=100)
    world.clock.pass_seconds(100)
    (third,) = queue.receive(receiver="copy")
    assert len(queue.hold(third, 50)["changed"]) == 1
    queue.delete(third)
    world.clock.pass_seconds(100)
    assert queue.receive(receiver="copy") == []


def test_counts_are_a_receivers_own(world: World, queue: TestQueue) -> None:
    queue.add_receiver("copy")
    queue.send("a", "b", "c")
    world.settle()
    queue.delete(*queue.receive())
    queue.receive(1, receiver="copy")

    shown = queue.client.get(f"{queue.path}/receivers/copy").json

    assert {k: v for k, v in shown["counts"].items() if v} == {"active": 2, "inactive": 1}


def test_latest_is_from_the_answer_on(world: World, queue: TestQueue) -> None:
    queue.send("before")
    queue.add_receiver("copy", start="latest")
    queue.send("after")
    world.settle()

    assert queue.bodies(receiver="copy") == ["after"]
    assert queue.bodies() == ["after", "before"]


def test_a_receiver_starts_at_latest_by_default(queue: TestQueue) -> None:
    assert queue.add_receiver("copy")["start"] == "latest"


def test_earliest_is_all_messages_of_the_queue_and_its_log(world: World, queue: TestQueue) -> None:
    queue.send("before the log")
    queue.add_receiver("first", start="earliest")
    for body in "abc":
        queue.send(body, f"{body} large" * 200)
        world.clock.pass_seconds(1)
    world.settle()
    queue.delete(*queue.receive_all())

    queue.add_receiver("second", start="earliest")

    assert len(queue.receive_all(receiver="first")) == 7
    assert queue.bodies(receiver="second") == sorted([*"abc", *(f"{b} large" * 200 for b in "abc")])


def test_a_send_while_the_log_is_turned_on_is_there_once(
    world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []

    def send() -> None:
        world.clock.pass_seconds(0.02)  # the transaction takes its time
        sent.extend(queue.send("meanwhile"))

    before_transactions(world, monkeypatch, send)
    first = queue.add_receiver("first", start="earliest")
    queue.send("after")
    world.clock.pass_seconds(1)
    second = queue.add_receiver("second", start="earliest")

    for receiver in (first, second):
        assert to_ms(receiver["starts_at"]) < to_ms(sent[0]["sent_at"])
        assert queue.bodies(receiver=receiver["name"]) == ["after", "meanwhile"]


def test_latest_is_from_the_answer_on_while_another_call_turns_the_log_on(
    world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = BrokenStore(world, monkeypatch)
    calls = 0
    while "log_since_ms" not in str(world.items("directory")):
        store.break_after(calls, applied=True)
        assert queue.client.put(f"{queue.path}/receivers/first").status == 503
        store.mend()
        calls += 1
    world.clock.pass_seconds(1)

    queue.add_receiver("copy")
    queue.send("after")
    world.settle()

    assert queue.bodies(receiver="copy") == ["after"]


def test_a_time_says_from_when(world: World, queue: TestQueue, now: Now) -> None:
    queue.add_receiver("first")
    for body in "abc":
        world.clock.pass_seconds(10)
        queue.send(body)

    queue.add_receiver("second", start=now(-10))

    assert queue.bodies(receiver="second") == ["b", "c"]


def test_a_start_before_the_log_is_refused_with_the_earliest_time(
    world: World, queue: TestQueue, now: Now
) -> None:
    path = f"{queue.path}/receivers/copy"
    reply = queue.client.put(path, {"start": now(-0.001)})
    assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "start")
    assert now() in reply.json["detail"]
    queue.add_receiver("first")
    log_start = now()
    world.clock.pass_seconds(100)

    refused = queue.client.put(path, {"start": "2026-11-18T11:06:39.999Z"})

    assert refused.code == "InvalidParameter"
    assert "2026-11-18T11:06:40" in refused.json["detail"]
    assert queue.client.put(path, {"start": log_start}).status == 201


def test_a_start_in_the_future_is_waited_for_by_nobody(
    world: World, queue: TestQueue, now: Now
) -> None:
    before = world.clock.now_ms()
    queue.add_receiver("later", start=now(3_600))

    assert world.clock.now_ms() - before < 2_000
    queue.send("too early")
    world.clock.pass_seconds(3_600)
    queue.send("in time")
    world.settle()
    assert queue.bodies(receiver="later") == ["in time"]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({"tags": ["red"]}, ["r", "rb"]),
        ({"tags": ["red", "blue"]}, ["b", "r", "rb"]),
        ({"sql": "kind = 'x'"}, ["b", "r"]),
        ({"sql": "TAGS = 'red'"}, ["r", "rb"]),
        ({"tags": ["red"], "sql": "kind = 'x'"}, ["r"]),
        (None, ["b", "none", "r", "rb"]),
        ({"tags": []}, ["b", "none", "r", "rb"]),
    ],
)
def test_a_filter_selects(
    world: World, queue: TestQueue, selection: dict[str, object] | None, expected: list[str]
) -> None:
    queue.add_receiver("some", filter=selection)
    queue.try_send(
        [
            {"body": "r", "tags": ["red"], "attributes": {"kind": "x"}},
            {"body": "b", "tags": ["blue"], "attributes": {"kind": "x"}},
            {"body": "rb", "tags": ["red", "blue"], "attributes": {"kind": "y"}},
            {"body": "none"},
        ]
    )
    world.settle()

    assert queue.bodies(receiver="some") == expected
    assert len(queue.receive_all()) == 4


def test_a_receiver_may_turn_to_ids_kept_by_the_queue(world: World, queue: TestQueue) -> None:
    queue.add_receiver("copy")
    queue.try_send(
        [{"body": "soon", "delay_seconds": 10}, {"body": "own", "visibility_timeout_seconds": 77}]
    )
    world.settle()

    (own,) = queue.receive(receiver="copy")
    assert to_ms(own["visible_at"]) == world.clock.now_ms() + 77_000
    world.clock.pass_seconds(9.999)
    assert queue.receive(receiver="copy") == []
    world.clock.pass_seconds(0.001)
    assert [message["body"] for message in queue.receive(receiver="copy")] == ["soon"]


def test_an_ordered_queues_receiver_keeps_the_order(world: World, make_queue: MakeQueue) -> None:
    queue = make_queue(ordered=True)
    queue.add_receiver("copy")
    for number in range(6):
        queue.send(f"{number}", group=f"g{number % 2}")
    world.settle()

    got: dict[str, list[str]] = {}
    for message in queue.receive_all(receiver="copy"):
        got.setdefault(message["group"], []).append(message["body"])
    assert got == {"g0": ["0", "2", "4"], "g1": ["1", "3", "5"]}


def test_a_receivers_dead_letters_name_it(world: World, make_queue: MakeQueue) -> None:
    dead = make_queue("dead")
    queue = make_queue(dead_letter={"queue": "dead", "max_receives": 1})
    queue.add_receiver("copy")
    queue.send("x" * 2_000)
    world.settle()
    queue.receive(receiver="copy")
    world.clock.pass_seconds(30)
    queue.receive(receiver="copy")
    world.settle()

    (letter,) = dead.receive()

    assert letter["dead_letter"]["receiver"] == "copy"
    assert letter["dead_letter"]["source_queue"] == "orders"
    assert len(queue.receive()) == 1


@pytest.mark.parametrize("ordered", [False, True])
def test_a_dead_letter_queues_receivers_are_told_the_notes_too(
    world: World, make_queue: MakeQueue, ordered: bool
) -> None:
    dead = make_queue("dead", ordered=ordered)
    queue = make_queue(ordered=ordered, dead_letter={"queue": "dead", "max_receives": 5})
    dead.add_receiver("audit")
    queue.send("x", group="g")
    dead.send("sent there", group="g")
    queue.act("dead-letter", *queue.receive(), reason="no good")
    world.settle()

    told: dict[str, Any] = {
        each["body"]: each.get("dead_letter") for each in dead.receive_all(receiver="audit")
    }

    assert told == {each["body"]: each.get("dead_letter") for each in dead.receive_all()}
    assert told.keys() == {"x", "sent there"}
    assert told["sent there"] is None
    assert told["x"]["reason"] == "no good"
    assert told["x"]["source_queue"] == "orders"


@pytest.mark.parametrize("ordered", [False, True])
def test_several_may_give_up_the_same_message_in_one_millisecond(
    world: World, make_queue: MakeQueue, ordered: bool
) -> None:
    dead = make_queue("dead", ordered=ordered)
    other = make_queue("other", ordered=ordered)
    queue = make_queue(ordered=ordered, dead_letter={"queue": "dead", "max_receives": 5})
    queue.add_receiver("copy")
    queue.send("x", group="g")
    world.settle()
    held = [*queue.receive(), *queue.receive(receiver="copy")]

    answer = queue.act("dead-letter", *held)

    assert answer == {"deleted": [each["receipt"] for each in held], "failed": []}
    assert dead.counts() == {"active": 2}

    assert dead.run("redrive", to="other")["done"] == 2

    assert (dead.counts(), other.counts()) == ({}, {"active": 2})
    assert other.bodies() == ["x", "x"]


def test_bytes_are_stored_once_however_many_receivers_there_are(
    world: World, queue: TestQueue
) -> None:
    for number in range(5):
        queue.add_receiver(f"r{number}")
    body = "0123456789" * 6_000
    queue.send(body)
    world.settle()

    with_content = [item for item in world.items() if "b" in item]

    assert len(with_content) == 1
    assert len(world.items()) == 1 + 6


def test_put_is_like_for_queues(queue: TestQueue) -> None:
    path = f"{queue.path}/receivers/Copy"
    attributes = {"filter": {"tags": ["a"]}}

    assert queue.client.put(path, attributes).status == 201
    assert queue.client.put(path, attributes).status == 200
    assert queue.client.put(path).status == 200
    assert queue.client.put(path, {"filter": None}).code == "AlreadyExists"
    assert queue.client.put(path, exact="true").code == "AlreadyExists"
    assert queue.client.put(f"{queue.path}/receivers/copy", attributes).code == "AlreadyExists"
    listed = queue.client.get(f"{queue.path}/receivers").json["receivers"]
    assert [receiver["name"] for receiver in listed] == ["Copy"]
    assert listed[0]["filter"] == {"tags": ["a"]}


def test_a_deleted_receiver_is_gone_and_a_new_one_of_its_name_starts_anew(
    world: World, queue: TestQueue
) -> None:
    queue.add_receiver("copy")
    queue.send("old")
    world.settle()
    (held,) = queue.receive(receiver="copy")

    assert queue.client.delete(f"{queue.path}/receivers/copy").status == 204

    reply = queue.client.post(f"{queue.path}/messages/receive", {"receiver": "copy"})
    assert reply.code == "ReceiverNotFound"
    assert queue.act("delete", held)["failed"][0]["code"] == "ReceiptExpired"
    queue.add_receiver("copy")
    assert queue.receive(receiver="copy") == []


def test_a_queue_has_100_receivers_at_most(queue: TestQueue) -> None:
    for number in range(100):
        assert queue.client.put(f"{queue.path}/receivers/r{number}").status == 201

    assert queue.client.put(f"{queue.path}/receivers/more").code == "LimitExceeded"


@pytest.mark.parametrize("stopped", [False, True])
def test_nothing_is_received_before_the_backfill_has_reached_it(
    world: World, logged: TestQueue, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    path = f"{logged.path}/receivers/second"
    store = BrokenStore(world, monkeypatch)
    calls = 0
    while stopped and "receiver#second" not in str(world.items("directory")):
        store.break_after(calls, applied=True)
        assert logged.client.put(path, {"start": "earliest"}).status == 503
        store.mend()
        calls += 1
    made = logged.client.put(path, {"start": "earliest"})
    assert made.status == (200 if stopped else 201)
    backfill = world.invoked.popleft()  # it is late
    world.clock.pass_seconds(1)
    logged.send("new")
    world.settle()
    assert logged.receive_all(receiver="second") == []

    world.invoked.append(backfill)
    world.settle()

    assert logged.bodies(receiver="second") == ["new", "old"]


@pytest.mark.few(2)
@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("repeated", [False, True])
def test_a_receiver_with_a_stopped_creation_gets_the_earlier_messages(
    world: World,
    logged: TestQueue,
    monkeypatch: pytest.MonkeyPatch,
    applied: bool,
    repeated: bool,
) -> None:
    store = BrokenStore(world, monkeypatch)
    for calls in range(20):
        path = f"{logged.path}/receivers/r{calls}"
        store.break_after(calls, applied=applied)
        status = logged.client.put(path, {"start": "earliest"}).status
        # The entry of the audit comes last, and its failure fails no call.
        assert status == 201 or (status == 503 and store.failed)
        store.mend()
        if repeated:
            assert logged.client.put(path, {"start": "earliest"}).status in (200, 201)
        elif logged.client.get(path).status == 404:
            continue  # nothing of it was stored
        sweep(world, after_seconds=60)

        assert logged.bodies(receiver=f"r{calls}") == ["old"]
        if not store.failed:
            return
    raise AssertionError("20 calls were not enough for a receiver")


def test_a_deleted_queue_takes_its_receivers_along(
    world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.add_receiver("one")
    queue.add_receiver("two")
    store = BrokenStore(world, monkeypatch)
    calls = 0
    while queue.client.get(queue.path).status == 200:  # a repeat finishes what stopped
        store.break_after(calls)
        status = queue.client.delete(queue.path).status
        # The entry of the audit comes last, and its failure fails no call.
        assert status == 204 or (status == 503 and store.failed)
        store.mend()
        calls += 1

    left = world.items("directory")
    assert [item["pk"]["S"] for item in left if item["pk"]["S"].startswith("Q#")] == []
    resources = [item for item in left if item["pk"]["S"].startswith("I#")]
    assert len(resources) == 3
    assert all("expires_at" in item for item in resources)


def test_an_undeletable_queue_keeps_its_receivers(make_queue: MakeQueue, dead: TestQueue) -> None:
    make_queue(dead_letter={"queue": "dead", "max_receives": 1})
    dead.add_receiver("copy")

    assert dead.client.delete(dead.path).code == "InUse"

    assert dead.client.get(f"{dead.path}/receivers/copy").status == 200


def test_a_receiver_made_while_its_queue_is_deleted_goes_with_it(
    world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.add_receiver("first")
    made = []

    def add_late() -> None:
        made.append(queue.client.put(f"{queue.path}/receivers/late").status)

    before_transactions(world, monkeypatch, add_late, writing="queue#orders")
    assert queue.client.delete(queue.path).status == 204

    assert made == [201]
    assert [i for i in world.items("directory") if i["pk"]["S"].startswith("Q#")] == []


def test_a_queue_deleted_while_a_receiver_is_made_stays_without(
    world: World, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.add_receiver("first")
    deleted = []
    before_transactions(
        world, monkeypatch, lambda: deleted.append(queue.client.delete(queue.path).status)
    )

    assert queue.client.put(f"{queue.path}/receivers/late").code == "QueueNotFound"
    assert deleted == [204]
    assert [i for i in world.items("directory") if i["pk"]["S"].startswith("Q#")] == []
