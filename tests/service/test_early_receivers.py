"""Receivers that begin with the earliest message: the queue's backlog is theirs, too, once."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from tests.service.buckets import give_bucket
from tests.service.conftest import MakeQueue, Message, TestQueue
from tests.service.crashes import BrokenStore, crash, run_in_small_steps
from tests.service.test_costs import b64

from cirrusmq.queues.queues import get_queue
from cirrusmq.storage.parcels import ARCHIVE
from cirrusmq_local.testing import World


def begin(queue: TestQueue, name: str = "late", **attributes: Any) -> dict[str, Any]:
    """Add a receiver; the operation that gives it the backlog has not run."""
    path = f"{queue.path}/receivers/{name}"
    reply = queue.client.put(path, {"start": "earliest"} | attributes)
    assert reply.status == 201, reply.text
    shown: dict[str, Any] = reply.json
    return shown


def fill(queue: TestQueue) -> list[Message]:
    """Let the operation run, and receive everything as the new receiver."""
    queue.client.world.settle()
    return queue.receive_all(receiver="late")


def filled(queue: TestQueue) -> list[str]:
    return sorted(message["body"] for message in fill(queue))


class TestTheBacklog:
    def test_all_waiting_messages_are_in_it_however_stored(self, queue: TestQueue) -> None:
        sent = queue.send("small", attributes={"a": "1"}, tags=["t"])
        sent += queue.send("large" * 600)
        sent += queue.send(*(f"one of {n}" for n in range(16)))
        sent += queue.send(*(f"large {n} " * 50 for n in range(16)))

        begin(queue)
        received = fill(queue)

        assert sorted(each["id"] for each in received) == sorted(each["id"] for each in sent)
        assert {each["receive_count"] for each in received} == {1}
        assert {each["sent_at"] for each in received} == {each["sent_at"] for each in sent}
        (small,) = (each for each in received if each["body"] == "small")
        assert (small["attributes"], small["tags"]) == ({"a": "1"}, ["t"])
        queue.act("delete", *received[:16])
        assert len(queue.receive_all()) == len(sent)  # the queue's own are as they were

    def test_so_are_messages_in_the_bucket(self, world: World, queue: TestQueue) -> None:
        give_bucket(world, 1_000)
        body = b64(bytes(range(256)) * 40)
        queue.try_send([{"body_base64": body, "tags": ["t"]}, {"body_base64": b64(b"x" * 5_000)}])

        begin(queue, filter={"tags": ["t"]})

        assert [each["body_base64"] for each in fill(queue)] == [body]

    def test_delays_and_own_timeouts_go_on(self, world: World, queue: TestQueue) -> None:
        queue.try_send(
            [
                {"body": "soon", "delay_seconds": 60},
                {"body": "own", "visibility_timeout_seconds": 77},
            ]
        )

        begin(queue)

        (own,) = fill(queue)
        assert own["body"] == "own"
        world.clock.pass_seconds(61)
        assert queue.bodies(receiver="late") == ["soon"]
        world.clock.pass_seconds(10)
        assert queue.bodies(receiver="late") == []  # the other one has its own timeout

    @pytest.mark.parametrize("seconds", [0, 3, 1_000])
    def test_given_back_messages_are_there_once_and_at_once(
        self, world: World, queue: TestQueue, seconds: int
    ) -> None:
        queue.send(*"abcd")
        world.clock.pass_seconds(10)
        held = {each["body"]: each for each in queue.receive()}
        queue.give_back(held["a"], held["b"], delay_seconds=seconds)
        world.clock.pass_seconds(2)
        queue.give_back(held["c"], delay_seconds=seconds)

        begin(queue)

        assert filled(queue) == [*"abcd"]

    @pytest.mark.parametrize("least", [0, 1], ids=["in the log", "in the bucket"])
    def test_messages_given_back_in_a_fair_queue_since_its_log_began_are_there_once(
        self, world: World, make_queue: MakeQueue, least: int
    ) -> None:
        """Of a group's parcel the log's record may be in another partition."""
        if least:
            give_bucket(world, least)
        queue = make_queue(fair=True, partitions=4)
        queue.client.put(f"{queue.path}/receivers/audit", {})
        bodies = [f"{n} is large" for n in range(8)]
        for body in bodies:
            queue.send(body, group=body[0])
        world.clock.pass_seconds(10)
        queue.give_back(*queue.receive_all(), delay_seconds=60)

        begin(queue)

        assert filled(queue) == bodies

    def test_a_message_put_off_stays_so(self, world: World, queue: TestQueue) -> None:
        (sent,) = queue.send("later")
        path = f"{queue.path}/messages/{sent['id']}"
        assert queue.client.patch(path, {"delay_seconds": 100}).status == 200

        begin(queue)

        assert filled(queue) == []
        world.clock.pass_seconds(100)
        assert queue.bodies(receiver="late") == ["later"]

    def test_messages_gone_before_are_not_in_it(self, world: World, make_queue: MakeQueue) -> None:
        make_queue("dead")
        queue = make_queue(rewind_seconds=3_600, dead_letter={"queue": "dead", "max_receives": 5})
        sent = queue.send("deleted", "dead", "left")
        queue.send("deleted whole", "deleted too")
        cancelled = queue.send("cancelled", delay_seconds=50)
        held = {each["body"]: each for each in queue.receive_all()}
        queue.delete(held["deleted"])
        queue.delete(held["deleted whole"], held["deleted too"])
        queue.act("dead-letter", held["dead"])
        assert queue.client.delete(f"{queue.path}/messages/{cancelled[0]['id']}").status == 204
        world.clock.pass_seconds(1)

        begin(queue)

        assert [each["id"] for each in fill(queue)] == [sent[2]["id"]]

    def test_a_filter_selects_of_it(self, queue: TestQueue) -> None:
        queue.try_send(
            [
                {"body": "r", "tags": ["red"]},
                {"body": "b" * 2_000, "tags": ["blue"]},
                {"body": "r" * 2_000, "tags": ["red", "blue"]},
                {"body": "none"},
            ]
        )

        begin(queue, filter={"tags": ["red"]})

        assert filled(queue) == ["r", "r" * 2_000]

    def test_dead_letters_tell_their_source(self, dead: TestQueue, make_queue: MakeQueue) -> None:
        queue = make_queue(dead_letter={"queue": "dead", "max_receives": 5})
        queue.send("x", "y")
        queue.act("dead-letter", *queue.receive(), reason="no good")

        begin(dead)

        received = fill(dead)
        assert sorted(each["body"] for each in received) == ["x", "y"]
        assert {each["dead_letter"]["reason"] for each in received} == {"no good"}

    def test_an_ordered_queues_groups_keep_their_order(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(ordered=True, partitions=2, delay_seconds=5)
        for number in range(6):
            queue.send(f"{number}", f"{number}+", group=f"g{number % 2}")
        world.clock.pass_seconds(5)
        held = queue.receive()
        begin(queue)
        queue.send("later", group="g0")
        queue.delete(*held)

        world.settle()
        world.clock.pass_seconds(5)
        got: dict[str, list[str]] = {}
        for message in queue.receive_all(receiver="late"):
            got.setdefault(message["group"], []).append(message["body"])

        assert got == {
            "g0": ["0", "0+", "2", "2+", "4", "4+", "later"],
            "g1": ["1", "1+", "3", "3+", "5", "5+"],
        }


class Acts:
    """What consumers and their owner do with the backlog before a new receiver is given it."""

    def __init__(self, queue: TestQueue) -> None:
        self.queue = queue

    def delete_all(self) -> None:
        self.queue.delete(*self.queue.receive_all())

    def delete_some(self) -> None:
        self.queue.delete(*self.queue.receive_all()[::2])

    def give_back_at_once(self) -> None:
        self.queue.client.world.clock.pass_seconds(3)
        self.queue.give_back(*self.queue.receive_all()[:16], delay_seconds=0)

    def give_back_then_delete(self) -> None:
        self.queue.client.world.clock.pass_seconds(3)
        for _ in range(3):
            self.queue.give_back(*self.queue.receive_all()[:2], delay_seconds=0)
            self.queue.client.world.clock.pass_seconds(4)
        self.queue.delete(*self.queue.receive_all())

    def put_off_for_long(self) -> None:
        self.queue.client.world.clock.pass_seconds(3)
        self.queue.give_back(*self.queue.receive_all()[:3], delay_seconds=5_000)

    def give_up(self) -> None:
        self.queue.act("dead-letter", *self.queue.receive_all()[:3])

    def move_to_another(self) -> None:
        self.queue.start("redrive", to="dead")
        world = self.queue.client.world
        world.run(*world.invoked.pop())  # before the other operation

    def change_due_times(self) -> None:
        for message in self.queue.peek():
            path = f"{self.queue.path}/messages/{message['id']}"
            assert self.queue.client.patch(path, {"delay_seconds": 2}).status == 200


FEW = [(0, 1, 0), (200, 400, 5), (0, 400, 3_600)]
"""Seconds since the sends, bytes of a body, and the seconds that a queue can be rewound."""
AT_ONCE_AND_LATER = [
    pytest.param(*each, marks=() if each in FEW else pytest.mark.long)
    for each in product((0, 200), (1, 400), (0, 5, 3_600))
]


class TestConsumersMeanwhile:
    @pytest.mark.few(7)
    @pytest.mark.parametrize(("ago", "size", "rewind_seconds"), AT_ONCE_AND_LATER)
    @pytest.mark.parametrize("act", [name for name in vars(Acts) if name[0] != "_"])
    def test_consumers_take_nothing_from_the_backlog(
        self,
        world: World,
        make_queue: MakeQueue,
        act: str,
        ago: int,
        size: int,
        rewind_seconds: int,
    ) -> None:
        make_queue("dead")
        queue = make_queue(
            partitions=2,
            rewind_seconds=rewind_seconds,
            dead_letter={"queue": "dead", "max_receives": 50},
        )
        bodies = [f"{n}" * size for n in range(9)]
        queue.send(*bodies[:5])
        queue.send(*bodies[5:8])
        queue.send(bodies[8])
        world.clock.pass_seconds(ago)
        begin(queue)
        world.clock.pass_seconds(0.1)

        getattr(Acts(queue), act)()

        world.clock.pass_seconds(10)
        received = fill(queue)
        world.clock.pass_seconds(10)
        received += queue.receive_all(receiver="late")
        assert sorted(each["body"] for each in received) == bodies

    def test_a_function_running_meanwhile_takes_nothing_from_it(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(invoke={"function": "handler"}, visibility_timeout_seconds=100)
        calls = 0

        def handle(event: dict[str, Any]) -> dict[str, Any]:
            nonlocal calls
            calls += 1
            if calls == 1:
                begin(queue)
                world.clock.pass_seconds(5)
            failed = [each["messageId"] for each in event["Records"] if each["body"] == "fails"]
            return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}

        world.handle = handle
        queue.send("works", "fails")
        queue.send("works alone")

        assert filled(queue) == ["fails", "works", "works alone"]
        assert calls > 0

    def test_a_cancelled_message_is_gone(self, world: World, queue: TestQueue) -> None:
        (sent,) = queue.send("x", delay_seconds=100)
        begin(queue)

        assert queue.client.delete(f"{queue.path}/messages/{sent['id']}").status == 204

        world.clock.pass_seconds(100)
        assert filled(queue) == []

    def test_a_purge_takes_all(self, world: World, queue: TestQueue) -> None:
        queue.send("a", "b" * 2_000)
        begin(queue)

        queue.start("purge")

        assert filled(queue) == []
        world.clock.pass_seconds(1)
        assert queue.bodies() == []

    def test_a_rewind_waits_until_the_backlog_is_given(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(rewind_seconds=3_600)
        queue.send("a")
        queue.send("b")
        begin(queue)
        world.clock.pass_seconds(1)
        queue.delete(*queue.receive_all())
        world.clock.pass_seconds(1)
        operation = queue.start("rewind", to=world.clock.now_ms() // 1000 - 60)
        world.run(*world.invoked.pop())
        assert queue.client.get(f"/operations/{operation}").json["state"] == "running"

        assert filled(queue) == ["a", "b"]

        assert queue.client.get(f"/operations/{operation}").json["state"] == "succeeded"
        assert queue.bodies() == ["a", "b"]

    def test_a_message_sent_meanwhile_comes_behind(self, world: World, queue: TestQueue) -> None:
        queue.send("old")
        shown = begin(queue)
        backfill = world.invoked.popleft()  # it is late
        queue.send("new")
        world.settle()
        path = f"{queue.path}/receivers/late"
        assert queue.receive_all(receiver="late") == []
        assert queue.client.get(path).json["operation"] == shown["operation"]

        world.invoked.append(backfill)

        assert filled(queue) == ["new", "old"]
        assert "operation" not in queue.client.get(path).json
        done = queue.client.get(f"/operations/{shown['operation']}").json
        assert (done["kind"], done["state"], done["done"]) == ("backfill", "succeeded", 2)

    def test_two_receivers_begin_one_after_the_other(self, world: World, queue: TestQueue) -> None:
        queue.send(*"abc")
        world.clock.pass_seconds(10)
        begin(queue)
        first = world.invoked.popleft()
        held = {each["body"]: each for each in queue.receive()}
        queue.give_back(held["a"], delay_seconds=0)
        queue.delete(held["b"])
        world.clock.pass_seconds(5)
        begin(queue, "later")
        world.clock.pass_seconds(1)
        queue.give_back(*queue.receive(), delay_seconds=100)
        world.settle()
        assert queue.bodies(receiver="later") == ["a", "c"]
        assert queue.receive_all(receiver="late") == []

        world.invoked.append(first)

        assert get_queue(world.core, "alice", "orders").backlog_readers
        assert filled(queue) == ["a", "b", "c"]
        assert get_queue(world.core, "alice", "orders").backlog_readers == []


class TestFailures:
    @pytest.mark.few(1)
    @pytest.mark.parametrize("applied", [False, True])
    @pytest.mark.parametrize("ordered", [False, True])
    def test_an_operation_stopping_anywhere_gives_everything_once(
        self,
        world: World,
        make_queue: MakeQueue,
        monkeypatch: pytest.MonkeyPatch,
        applied: bool,
        ordered: bool,
    ) -> None:
        queue = make_queue(ordered=ordered, partitions=2)
        for calls in range(0, 200, 3):
            with monkeypatch.context() as patch:
                name = f"late{calls}"
                for n in range(3):
                    queue.send(f"{calls} {n}", f"{calls} {n} large" * 100, group=f"{n}")
                begin(queue, name)
                queue.send(f"{calls} later", group="0")
                broke = crash(world, patch, calls, applied=applied)
            queue.delete(*queue.receive_all())
            mine = [each for each in queue.bodies(receiver=name) if each.startswith(f"{calls} ")]
            assert len(mine) == len(set(mine)) == 7, calls
            assert queue.client.delete(f"{queue.path}/receivers/{name}").status == 204
            assert queue.client.delete(queue.path).status == 204
            make_queue(ordered=ordered, partitions=2)
            if not broke:
                return
        raise AssertionError("200 calls were not enough")

    @pytest.mark.parametrize("applied", [False, True])
    def test_a_creation_stopping_anywhere_leaves_a_receiver_with_the_backlog_or_none(
        self, world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch, applied: bool
    ) -> None:
        queue = make_queue()
        store = BrokenStore(world, monkeypatch)
        for calls in range(40):
            queue.send("old", "deleted")
            store.break_after(calls, applied=applied)
            queue.client.put(f"{queue.path}/receivers/late", {"start": "earliest"})
            store.mend()
            if queue.client.get(f"{queue.path}/receivers/late").status == 200:
                # Without an answer, it has what was there when all knew of it.
                world.clock.pass_seconds(60)
                held = {each["body"]: each for each in queue.receive()}
                queue.delete(held["deleted"])
                world.run("sweep")
                assert filled(queue) == ["deleted", "old"]
            assert queue.client.delete(queue.path).status == 204
            make_queue()
            if not store.failed:
                return
        raise AssertionError("40 calls were not enough")

    def test_it_goes_on_from_one_run_to_the_next(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue(partitions=4)
        for n in range(20):
            queue.send(f"{n:02}")
        begin(queue)

        assert run_in_small_steps(world) > 8

        assert queue.bodies(receiver="late") == [f"{n:02}" for n in range(20)]

    def test_one_of_the_same_name_has_nothing_of_an_earlier_ones_operation(
        self, world: World, queue: TestQueue
    ) -> None:
        queue.send("a", "b")
        shown = begin(queue)
        world.clock.pass_seconds(1)
        assert queue.client.delete(f"{queue.path}/receivers/late").status == 204
        again = begin(queue)

        assert filled(queue) == ["a", "b"]

        states = [
            queue.client.get(f"/operations/{each['operation']}").json["state"]
            for each in (shown, again)
        ]
        assert states == ["failed", "succeeded"]
        queue.delete(*queue.receive_all())
        assert not [item for item in world.items() if item["pk"]["S"].startswith(f"{ARCHIVE}#")]

    def test_a_deleted_queue_ends_it(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue()
        queue.send("old")
        shown = begin(queue)
        assert queue.client.delete(queue.path).status == 204
        queue = make_queue()
        world.settle()

        assert queue.client.get(f"/operations/{shown['operation']}").json["state"] == "failed"
        assert queue.receive_all() == []


class TestCost:
    def test_messages_cost_more_only_while_it_runs(self, world: World, queue: TestQueue) -> None:
        def life() -> float:
            queue.send("x")
            world.settle()
            held = queue.receive()
            return world.write_units(lambda: queue.delete(*held))

        queue.send("old")
        (old,) = queue.receive()
        begin(queue)
        assert world.write_units(lambda: queue.delete(old)) == 4  # into the archive
        assert filled(queue) == ["old"]

        assert life() == 1

    def test_a_copy_costs_a_write_unit_for_messages_sent_together(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        def cost(count: int) -> float:
            queue = make_queue(f"with-{count}", partitions=1)
            for n in range(count):
                queue.send(*(f"{n} {m}" for m in range(8)))
            begin(queue)
            world.engine.reset_capacity()
            world.settle()
            used = world.engine.capacity()["by_table"][world.tables.messages]
            assert len(queue.receive_all(receiver="late")) == 8 * count
            return float(used["write_units"])

        assert cost(30) - cost(10) == 20
