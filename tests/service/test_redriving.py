"""Redriving: active dead letters are moved to their source, or elsewhere, once."""

from __future__ import annotations

import pytest
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.crashes import amid, crash, run_in_small_steps
from tests.service.topics import TestTopic

from cirrusmq_local.testing import World


@pytest.fixture
def queue(dead: TestQueue, make_queue: MakeQueue) -> TestQueue:
    return make_queue("orders", dead_letter={"queue": "dead", "max_receives": 5})


def kill(queue: TestQueue, *bodies: str) -> list[str]:
    """Send messages and give them up; answers their ids."""
    ids = [sent["id"] for body in bodies for sent in queue.send(body, tags=["t"])]
    held = queue.receive_all()
    for first in range(0, len(held), 16):
        assert queue.act("dead-letter", *held[first : first + 16])["failed"] == []
    return ids


def test_without_a_target_messages_go_back_to_their_source(
    world: World, dead: TestQueue, queue: TestQueue, make_queue: MakeQueue
) -> None:
    other = make_queue("other", dead_letter={"queue": "dead", "max_receives": 5})
    ids = kill(queue, "a", "b" * 3_000) + kill(other, "c")
    world.clock.pass_seconds(10)

    operation = dead.run("redrive")

    assert (operation["kind"], operation["state"], operation["done"]) == ("redrive", "succeeded", 3)
    assert "detail" not in operation
    assert dead.counts() == {}
    received = queue.receive_all() + other.receive_all()
    assert sorted(message["id"] for message in received) == sorted(ids)
    assert len(queue.counts()) == 1
    for message in received:
        assert message["receive_count"] == 1
        assert "dead_letter" not in message
        assert message["tags"] == ["t"]
        assert message["sent_at"] == "2026-11-18T11:06:50.000Z"


@pytest.mark.parametrize(("limit", "moved"), [(1, 1), (5, 5), (6, 6), (1_000_000_000, 6)])
def test_at_most_max_messages_move(
    dead: TestQueue, queue: TestQueue, limit: int, moved: int
) -> None:
    kill(queue, *"abcdef")

    assert dead.run("redrive", max_messages=limit)["done"] == moved

    assert queue.counts().get("active", 0) == moved
    assert dead.counts().get("active", 0) == 6 - moved


@pytest.mark.few(1)
@pytest.mark.parametrize("applied", [False, True])
def test_no_more_than_max_messages_move_whatever_call_fails(
    world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch, applied: bool
) -> None:
    for calls in range(40):
        dead = make_queue(f"dead{calls}", partitions=1)
        target = make_queue(f"target{calls}")
        dead.send(*"abc")
        for body in "defg":
            dead.send(body)
        operation = dead.start("redrive", to=target.name, max_messages=5)

        failed = crash(world, monkeypatch, calls, applied=applied)

        shown = dead.client.get(f"/operations/{operation}").json
        assert (shown["state"], shown["done"]) == ("succeeded", 5)
        assert (target.counts(), dead.counts()) == ({"active": 5}, {"active": 2})
        if not failed:
            return
    raise AssertionError("40 calls were not enough to come to the end")


def test_a_stalled_runner_moves_nothing_beside_its_successor(
    world: World, dead: TestQueue, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill(queue, *map(str, range(20)))
    operation = dead.start("redrive", max_messages=10)
    ((role, event),) = world.invoked

    def stand_still() -> None:
        world.clock.pass_seconds(61)
        world.run(role, event)

    amid(world, monkeypatch, 4, stand_still)

    assert dead.client.get(f"/operations/{operation}").json["done"] == 10
    assert queue.counts() == dead.counts() == {"active": 10}


def test_dead_letters_of_a_deleted_source_stay_and_are_told_of(
    dead: TestQueue, queue: TestQueue, make_queue: MakeQueue
) -> None:
    gone = make_queue("gone", dead_letter={"queue": "dead", "max_receives": 5})
    kill(gone, *"xyz")
    kill(queue, "a")
    gone.client.delete(gone.path)

    operation = dead.run("redrive")

    assert (operation["state"], operation["done"]) == ("succeeded", 1)
    assert "3" in operation["detail"]
    assert "gone" in operation["detail"]
    assert dead.bodies() == ["x", "y", "z"]
    assert queue.bodies() == ["a"]


def test_the_remainder_is_told_however_often_it_stopped(
    world: World, dead: TestQueue, queue: TestQueue, make_queue: MakeQueue
) -> None:
    gone = make_queue("gone", dead_letter={"queue": "dead", "max_receives": 5})
    kill(gone, *"uvwxyz")
    kill(queue, "a")
    gone.client.delete(gone.path)
    operation = dead.start("redrive")

    assert run_in_small_steps(world) > 2

    shown = dead.client.get(f"/operations/{operation}").json
    assert (shown["state"], shown["done"]) == ("succeeded", 1)
    assert "6 of queue gone" in shown["detail"]


def test_a_run_out_of_time_stops_in_the_middle_of_a_page(
    world: World, make_queue: MakeQueue
) -> None:
    dead, target = make_queue("one", partitions=1), make_queue("target")
    for n in range(50):
        dead.send(str(n))
    operation = dead.start("redrive", to="target")

    assert run_in_small_steps(world) > 2

    assert dead.client.get(f"/operations/{operation}").json["done"] == 50
    assert target.counts() == {"active": 50}


def test_messages_without_a_group_stay_if_the_target_is_ordered(
    dead: TestQueue, queue: TestQueue, make_queue: MakeQueue
) -> None:
    target = make_queue("target", ordered=True)
    kill(queue, "a")
    dead.send("b", group="g")

    operation = dead.run("redrive", to="target")

    assert operation["done"] == 1
    assert target.bodies() == ["b"]
    assert dead.bodies() == ["a"]
    assert "1 of queue target" in operation["detail"]


@pytest.mark.parametrize("moves", [3, 10, 18])
def test_messages_purged_meanwhile_do_not_move(
    world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    purged, target = make_queue("purged", partitions=1), make_queue("target")
    purged.send(*"abcdefgh")  # one parcel
    for body in "ijklmnopqrst":
        purged.send(body)
    operation = purged.start("redrive", to="target")

    amid(world, monkeypatch, moves, lambda: purged.start("purge"))

    assert target.counts() == {"active": moves}
    shown = purged.client.get(f"/operations/{operation}").json
    assert (shown["state"], shown["done"]) == ("succeeded", moves)


def test_dead_letters_of_a_queue_deleted_meanwhile_do_not_go_back(
    world: World, dead: TestQueue, queue: TestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill(queue, *map(str, range(40)))
    operation = dead.start("redrive")

    def delete_and_make_anew() -> None:
        queue.patch(dead_letter=None)
        assert dead.client.delete(dead.path).status == 204
        assert dead.client.put(dead.path).status == 201

    amid(world, monkeypatch, 12, delete_and_make_anew)

    assert queue.counts() == {"active": 12}
    shown = dead.client.get(f"/operations/{operation}").json
    assert (shown["state"], shown["done"]) == ("failed", 12)


def test_a_redriven_message_dies_anew(world: World, dead: TestQueue, queue: TestQueue) -> None:
    (message_id,) = kill(queue, "a")
    for _ in range(3):
        world.clock.pass_seconds(1)
        dead.run("redrive")
        (again,) = queue.receive()
        assert queue.act("dead-letter", again, reason="again")["failed"] == []

    (letter,) = dead.receive()
    assert letter["id"] == message_id
    assert letter["dead_letter"]["reason"] == "again"


def test_a_move_to_a_taken_place_is_not_reported_as_done(dead: TestQueue, queue: TestQueue) -> None:
    kill(queue, "a")
    dead.run("redrive")
    (again,) = queue.receive()

    # In the very millisecond of the first move the second would have the same key.
    answer = queue.act("dead-letter", again)

    assert len(answer["deleted"]) == dead.counts().get("active", 0)
    if answer["failed"]:
        queue.delete(again)


@pytest.mark.few(1)
@pytest.mark.parametrize("applied", [False, True])
def test_it_survives_the_failure_of_any_call(
    world: World,
    make_queue: MakeQueue,
    monkeypatch: pytest.MonkeyPatch,
    applied: bool,
) -> None:
    for calls in range(60):
        dead = make_queue(f"dead{calls}", partitions=2)
        dead_letter = {"queue": dead.name, "max_receives": 5}
        queue = make_queue(f"q{calls}", dead_letter=dead_letter, partitions=2)
        kill(queue, "a", "b", "c" * 3_000)
        operation = dead.start("redrive")

        failed = crash(world, monkeypatch, calls, applied=applied)

        shown = dead.client.get(f"/operations/{operation}").json
        assert (shown["state"], shown["done"]) == ("succeeded", 3)
        assert queue.bodies() == ["a", "b", "c" * 3_000], calls
        assert dead.counts() == {}
        if not failed:
            return
    raise AssertionError("60 calls were not enough to come to the end")


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("body", ["short", "long" * 1_000])
def test_a_receivers_dead_letter_goes_back_to_this_receiver_alone(
    world: World, make_queue: MakeQueue, body: str, ordered: bool
) -> None:
    dead = make_queue("dead", ordered=ordered)
    queue = make_queue("orders", ordered=ordered, dead_letter={"queue": "dead", "max_receives": 5})
    for name in ("copy", "other"):
        queue.add_receiver(name)
    queue.send(body, group="g")
    world.settle()
    for name in ("copy", "other", "default"):
        (held,) = queue.receive(receiver=name)
        queue.act("dead-letter" if name == "copy" else "delete", held)

    assert dead.run("redrive")["done"] == 1

    assert queue.bodies(receiver="other") == queue.bodies() == []
    (again,) = queue.receive(receiver="copy")
    assert (again["body"], again["id"], again["group"]) == (body, held["id"], "g")
    assert again["receive_count"] == 1
    queue.delete(again)
    assert queue.client.get(f"{queue.path}/receivers/copy").json["counts"]["inactive"] == 0


def test_the_queues_own_dead_letter_does_not_reach_its_receivers_again(
    world: World, dead: TestQueue, queue: TestQueue
) -> None:
    queue.add_receiver("copy")
    kill(queue, "a")
    world.settle()
    queue.delete(*queue.receive(receiver="copy"))

    assert dead.run("redrive")["done"] == 1

    assert queue.bodies(receiver="copy") == []
    assert queue.bodies() == ["a"]


def test_a_receivers_dead_letter_stays_when_the_receiver_is_gone(
    world: World, dead: TestQueue, queue: TestQueue
) -> None:
    queue.add_receiver("copy")
    queue.send("a")
    world.settle()
    queue.act("dead-letter", *queue.receive(receiver="copy"))
    queue.client.delete(f"{queue.path}/receivers/copy")

    operation = dead.run("redrive")

    assert operation["done"] == 0
    assert "1 of receiver copy of queue orders" in operation["detail"]
    assert dead.bodies() == ["a"]


def test_a_subscriptions_dead_letter_does_not_go_to_a_queue_with_the_name_of_its_topic(
    world: World, dead: TestQueue, make_queue: MakeQueue
) -> None:
    namesake = make_queue("news")
    topic = TestTopic(dead.client, "news")
    consumers = topic.subscribe(dead_letter_queue="dead")
    topic.publish("a")
    world.settle()
    receipts = [message["receipt"] for message in consumers.receive()]
    dead.client.post(f"{consumers.path}/messages/dead-letter", {"receipts": receipts})

    topic.client.delete(consumers.path)

    operation = dead.run("redrive")

    assert (operation["done"], namesake.bodies()) == (0, [])
    assert "1 of subscription all of topic news" in operation["detail"]
    assert dead.run("redrive", to="news")["done"] == 1
    assert namesake.bodies() == ["a"]
