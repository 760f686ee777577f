"""Moving messages between any two queues: a redrive with a target."""

from __future__ import annotations

import pytest
from tests.service.conftest import MakeQueue

from cirrusmq_local.testing import Client, World


@pytest.mark.parametrize("size", [1, 3_000, 60_000])
def test_active_messages_of_any_queue_move_to_any_other(
    world: World, make_queue: MakeQueue, size: int
) -> None:
    here, there = make_queue("here"), make_queue("there", message_retention_seconds=60)
    ids = [here.send(letter * size, tags=["t"])[0]["id"] for letter in "abc"]
    (held,) = here.receive(1)
    here.send("later", delay_seconds=60)
    world.clock.pass_seconds(10)
    there.send("its own")
    operation = here.run("redrive", to="there")
    assert (operation["state"], operation["done"]) == ("succeeded", 2)
    moved = [each for each in there.receive_all() if each["body"] != "its own"]
    assert sorted([held["id"], *(each["id"] for each in moved)]) == sorted(ids)
    assert {len(each["body"]) for each in moved} == {size}
    assert all(each["receive_count"] == 1 and each["tags"] == ["t"] for each in moved)
    assert here.counts() == {"inactive": 1, "delayed": 1}


def test_groups_keep_their_order_in_an_ordered_target(make_queue: MakeQueue) -> None:
    here, there = make_queue("here", ordered=True), make_queue("there", ordered=True)
    for number in range(5):
        for group in "ab":
            here.send(f"{group}{number}", group=group)
    assert here.run("redrive", to="there")["done"] == 10
    bodies = [each["body"] for each in there.receive_all()]
    for group in "ab":
        assert [body for body in bodies if body[0] == group] == [f"{group}{n}" for n in range(5)]


def test_dead_letters_of_every_reason_move_to_a_named_queue(
    world: World, make_queue: MakeQueue
) -> None:
    dead, there = make_queue("dead"), make_queue("there")
    counted = make_queue("counted", dead_letter={"queue": "dead", "max_receives": 1})
    aged = make_queue("aged", dead_letter={"queue": "dead", "max_age_seconds": 300})
    counted.send("by count")
    counted.receive()
    aged.send("by age")
    counted.send("by choice")
    (held,) = counted.receive()
    counted.act("dead-letter", held, reason="odd")
    world.clock.pass_seconds(301)
    assert counted.receive() == aged.receive() == []
    assert dead.run("redrive", to="there")["done"] == 3
    received = there.receive_all()
    assert sorted(each["body"] for each in received) == ["by age", "by choice", "by count"]
    assert all("dead_letter" not in each for each in received)


def test_a_key_needs_rights_on_both_queues(alice: Client, make_queue: MakeQueue) -> None:
    make_queue("here").send("x")
    make_queue("there")

    def move(scope: dict[str, object]) -> int:
        key = alice.post("/keys", {"scope": scope}).json
        holder = Client(alice.world, f"Bearer {key['access_key_id']}:{key['secret']}")
        return holder.post("/queues/here/redrive", {"to": "there"}).status

    here, there = {"queues": ["here"]}, {"queues": ["there"]}
    assert move({"manage": here}) == 403
    assert move({"manage": there}) == 403
    assert move({"send": there, "receive": here}) == 403
    assert move({"manage": here, "receive": there}) == 403
    assert move({"manage": here, "send": there}) == 202
