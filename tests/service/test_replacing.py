"""A send with a `replace` key takes the place of the message that waits under the same key."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, to_ms, usage
from tests.service.test_cancelling import cancel, reschedule
from tests.service.test_receiving import attempt

from cirrusmq_local.testing import World


def put(queue: TestQueue, body: str = "x", key: str = "k", **more: Any) -> dict[str, Any]:
    """Send one message under a key; the entry of the answer."""
    (sent,) = queue.send(body, replace=key, **more)
    return sent


def again(queue: TestQueue, request: dict[str, Any]) -> dict[str, Any]:
    reply = queue.client.post(f"{queue.path}/messages", request)
    assert reply.status == 201, reply.text
    (sent,) = reply.json["messages"]
    return dict(sent)


def request(world: World, body: str, **more: Any) -> dict[str, Any]:
    message = {"body": body, "replace": "k", **more}
    return {"messages": [message], "attempt": attempt(world)}


@pytest.mark.parametrize("attributes", [{}, {"fair": True}, {"priorities": 3}, {"partitions": 4}])
@pytest.mark.parametrize("size", [1, 3_000, 300_000])
def test_the_newest_of_a_key_is_received(
    world: World, make_queue: MakeQueue, attributes: dict[str, Any], size: int
) -> None:
    queue = make_queue("orders", delay_seconds=10, max_message_bytes=1_000_000, **attributes)
    ids = [put(queue, f"{n}" * size) for n in range(3)]
    other = put(queue, "other", key="l")
    assert [each["replaced"] for each in ids] == [None, ids[0]["id"], ids[1]["id"]]
    assert other["replaced"] is None
    assert sum(queue.counts().values()) == 2
    world.clock.pass_seconds(11)
    assert sorted(each["body"][:5] for each in queue.receive_all()) == sorted(
        [("2" * size)[:5], "other"]
    )


def test_groups_and_priorities_may_differ(world: World, make_queue: MakeQueue) -> None:
    fair = make_queue("fair", fair=True, delay_seconds=5)
    first = put(fair, "1", group="a")
    assert put(fair, "2", group="b")["replaced"] == first["id"]
    ranked = make_queue("ranked", priorities=3, delay_seconds=5)
    first = put(ranked, "1", priority=3)
    assert put(ranked, "2", priority=1)["replaced"] == first["id"]
    world.clock.pass_seconds(6)
    assert [each["body"] for each in fair.receive_all()] == ["2"]
    assert [each["body"] for each in ranked.receive_all()] == ["2"]


@pytest.mark.parametrize("ending", ["held", "given back", "deleted", "cancelled", "expired"])
def test_a_message_not_waiting_is_not_replaced(
    world: World, make_queue: MakeQueue, ending: str
) -> None:
    queue = make_queue("orders", message_retention_seconds=600)
    first = put(queue, "1")
    if ending == "cancelled":
        assert cancel(queue, first["id"]).status == 204
    elif ending == "expired":
        world.clock.pass_seconds(601)
    else:
        (held,) = queue.receive()
        if ending == "given back":
            queue.give_back(held, delay_seconds=20)
        if ending == "deleted":
            queue.delete(held)
    assert put(queue, "2")["replaced"] is None
    world.clock.pass_seconds(60)
    bodies = sorted(each["body"] for each in queue.receive_all())
    assert bodies == (["1", "2"] if ending in ("held", "given back") else ["2"])


def test_a_rescheduled_message_is_replaced(world: World, queue: TestQueue) -> None:
    first = put(queue, "1", delay_seconds=5)
    for seconds in (50, 90):
        assert reschedule(queue, first["id"], delay_seconds=seconds).status == 200
    assert put(queue, "2")["replaced"] == first["id"]
    world.clock.pass_seconds(100)
    assert [each["body"] for each in queue.receive_all()] == ["2"]


class TestRepeatedSends:
    @pytest.mark.parametrize("ending", ["waits", "received", "deleted", "replaced", "purged"])
    @pytest.mark.parametrize("seconds", [0, 3, 100])
    def test_the_same_attempt_is_one_message(
        self, world: World, make_queue: MakeQueue, ending: str, seconds: int
    ) -> None:
        queue = make_queue("orders", delay_seconds=0)
        before = put(queue, "0")
        asked = request(world, "1")
        world.clock.pass_seconds(seconds)
        first = again(queue, asked)
        newer = None
        if ending in ("received", "deleted"):
            (held,) = queue.receive()
            assert held["id"] == first["id"]
            if ending == "deleted":
                queue.delete(held)
        if ending == "replaced":
            newer = put(queue, "2")
            assert newer["replaced"] == first["id"]
        if ending == "purged":
            queue.run("purge")
        world.clock.pass_seconds(1)
        second = again(queue, asked)
        assert second["id"] == first["id"]
        assert first["replaced"] == before["id"]
        if ending == "purged":
            assert second["replaced"] is None
        else:
            assert second == first
        world.clock.pass_seconds(60)
        bodies = [each["body"] for each in queue.receive_all()]
        assert bodies == {"deleted": [], "replaced": ["2"]}.get(ending, ["1"])

    @pytest.mark.parametrize("large", [False, True])
    def test_a_received_one_does_not_replace_a_newer_one(
        self, world: World, queue: TestQueue, large: bool
    ) -> None:
        asked = request(world, "1" * (3_000 if large else 1))
        first = again(queue, asked)
        queue.delete(*queue.receive())
        assert put(queue, "2")["replaced"] is None
        world.clock.pass_seconds(50)
        assert put(queue, "3")["replaced"] is not None
        assert again(queue, asked)["id"] == first["id"]
        assert [each["body"] for each in queue.receive_all()] == ["3"]

    def test_a_busy_key_refuses_unknown_attempts(self, world: World, queue: TestQueue) -> None:
        asked = request(world, "1")
        again(queue, asked)
        queue.delete(*queue.receive())
        for number in range(45):
            world.clock.pass_seconds(0.5)
            again(queue, request(world, f"n{number}"))
            queue.delete(*queue.receive())
        assert put(queue, "newest")["replaced"] is None
        reply = queue.client.post(f"{queue.path}/messages", asked)
        assert (reply.status, reply.json.get("parameter")) == (400, "attempt")
        assert queue.bodies() == ["newest"]
        (item,) = [each for each in world.items() if each["pk"]["S"].startswith("X#")]
        assert len(item["p"]["B"]) == 40 * 12
        world.clock.pass_seconds(200)
        assert again(queue, request(world, "later"))["id"]
        (item,) = [each for each in world.items() if each["pk"]["S"].startswith("X#")]
        assert "h" not in item

    @pytest.mark.parametrize("seconds", [0, 3])
    def test_a_message_due_earlier_by_its_bound_is_found_again(
        self, world: World, queue: TestQueue, seconds: int
    ) -> None:
        put(queue, "1", delay_seconds=30, replace_within_seconds=40)
        world.clock.pass_seconds(20)
        asked = request(world, "2", delay_seconds=30, replace_within_seconds=40)
        world.clock.pass_seconds(seconds)
        first = again(queue, asked)
        assert again(queue, asked) == first
        assert (
            put(queue, "3", delay_seconds=35, replace_within_seconds=40)["replaced"]
            == (first["id"])
        )
        assert again(queue, asked) == first
        world.clock.pass_seconds(21 - seconds)
        assert [each["body"] for each in queue.receive_all()] == ["3"]


class TestTheBound:
    def test_replacements_push_a_delay_on_for_so_long(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue("orders", partitions=1)
        begun_ms = world.clock.now_ms()
        for number in range(6):
            sent = put(queue, f"{number}", delay_seconds=10, replace_within_seconds=25)
            shown = queue.client.get(f"{queue.path}/messages/{sent['id']}").json
            due_ms = to_ms(shown["visible_at"])
            assert due_ms == min(begun_ms + number * 4_000 + 10_000, begun_ms + 25_000)
            world.clock.pass_seconds(4)
        assert queue.bodies() == []
        world.clock.pass_seconds(1)
        assert queue.bodies() == ["5"]

    def test_over_the_bound_it_is_due_at_once(self, world: World, queue: TestQueue) -> None:
        put(queue, "1", delay_seconds=10, replace_within_seconds=10)
        world.clock.pass_seconds(60)
        assert put(queue, "2", delay_seconds=10, replace_within_seconds=10)["replaced"]
        assert queue.bodies() == ["2"]

    def test_it_begins_again_once_a_message_was_received(
        self, world: World, queue: TestQueue
    ) -> None:
        put(queue, "1", delay_seconds=10, replace_within_seconds=10)
        world.clock.pass_seconds(11)
        queue.delete(*queue.receive())
        put(queue, "2", delay_seconds=10, replace_within_seconds=10)
        assert queue.receive() == []


def test_a_replaced_message_is_billed_as_sent_and_deleted(
    world: World, make_queue: MakeQueue
) -> None:
    queue = make_queue("orders", delay_seconds=5)
    put(queue, "1")
    put(queue, "2")
    world.settle()
    used = usage(world)
    assert used == {"queue:orders sent": 2, "queue:orders deleted": 1}


@pytest.mark.parametrize(
    ("case", "writes", "reads"),
    [("first", 4, 1), ("replaced", 6, 2), ("received", 4, 2), ("bounded", 8, 2)],
)
def test_a_replacement_costs_so_much(
    world: World, make_queue: MakeQueue, case: str, writes: int, reads: float
) -> None:
    queue = make_queue("orders", partitions=1)
    bound: dict[str, Any] = {}
    if case == "bounded":
        bound = {"delay_seconds": 30, "replace_within_seconds": 31}
    if case != "first":
        put(queue, "1", **bound)
    world.clock.pass_seconds(2)
    if case == "received":
        queue.receive()
    put(queue, "0", key="other")  # attributes are cached
    world.engine.reset_capacity()
    put(queue, "2", **bound)
    used = world.engine.capacity()["by_table"][world.tables.messages]
    assert (used["write_units"], used["read_units"]) == (writes, reads)
