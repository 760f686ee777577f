"""Rewinding: deleted messages become active again, once, through failures."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime

import pytest
from tests.service.conftest import MakeQueue, TestQueue, sweep, to_ms
from tests.service.crashes import amid, crash, run_in_small_steps

from cirrusmq.operations import runner
from cirrusmq.queues.operations import Pointer
from cirrusmq_local.testing import World

Now = Callable[..., str]


@pytest.fixture
def rewindable(make_queue: MakeQueue) -> TestQueue:
    """A queue that keeps deleted messages for an hour."""
    return make_queue("orders", rewind_seconds=3_600)


@pytest.mark.parametrize("size", [1, 3_000])
def test_deleted_messages_become_active_again(
    world: World, rewindable: TestQueue, start: str, size: int
) -> None:
    (sent,) = rewindable.send("x" * size, attributes={"a": "1"}, tags=["t"])
    (first,) = rewindable.receive()
    rewindable.delete(first)
    world.clock.pass_seconds(600)
    assert rewindable.counts() == {"rewindable": 1}

    operation = rewindable.run("rewind", to=start)

    assert (operation["kind"], operation["state"], operation["done"]) == ("rewind", "succeeded", 1)
    assert rewindable.counts() == {"active": 1}
    (again,) = rewindable.receive()
    assert again["receive_count"] == 1
    assert to_ms(again["first_received_at"]) == world.clock.now_ms()
    same = ("id", "body", "attributes", "tags", "sent_at", "expires_at")
    assert {name: again[name] for name in same} == {name: first[name] for name in same}
    assert again["id"] == sent["id"]
    assert rewindable.act("delete", first)["failed"][0]["code"] == "ReceiptExpired"
    rewindable.delete(again)


def test_only_messages_sent_at_the_time_or_later_come_back(
    world: World, rewindable: TestQueue, now: Now
) -> None:
    for body in "abc":
        rewindable.send(body)
        world.clock.pass_seconds(1)
    rewindable.consume()

    rewindable.run("rewind", to=now(-2))

    assert rewindable.bodies() == ["b", "c"]


def test_the_sending_time_counts_not_the_deleting_time(
    world: World, rewindable: TestQueue, now: Now
) -> None:
    rewindable.send("early")
    world.clock.pass_seconds(100)
    rewindable.consume()

    assert rewindable.run("rewind", to=now(-1))["done"] == 0
    assert rewindable.bodies() == []


def test_messages_still_in_the_queue_are_untouched(rewindable: TestQueue, start: str) -> None:
    rewindable.send(*"abcd")
    held = rewindable.receive(3)
    rewindable.delete(held[0])
    rewindable.send("delayed", delay_seconds=100)

    operation = rewindable.run("rewind", to=start)

    assert operation["done"] == 1
    assert rewindable.counts() == {"active": 2, "inactive": 2, "delayed": 1}
    assert sorted(rewindable.bodies()) == sorted({*"abcd"} - {m["body"] for m in held[1:]})
    rewindable.delete(*held[1:])


def test_a_message_deleted_whole_or_in_part_is_kept_until_the_window_ends(
    world: World, rewindable: TestQueue, start: str
) -> None:
    rewindable.send("a", "b")
    rewindable.send("c")
    for message in rewindable.receive_all():
        rewindable.delete(message)
    world.clock.pass_seconds(3_600 - 0.001)
    assert rewindable.counts() == {"rewindable": 3}

    world.clock.pass_seconds(0.001)

    assert rewindable.counts() == {}
    assert rewindable.run("rewind", to=start)["done"] == 0
    world.clock.pass_seconds(1)
    world.engine.remove_expired()
    assert [item for item in world.items() if item["pk"]["S"].startswith("R#")] == []


def test_nothing_is_rewound_past_its_expiry(
    world: World, make_queue: MakeQueue, start: str
) -> None:
    queue = make_queue(message_retention_seconds=100, rewind_seconds=100)
    queue.send("x")
    queue.consume()
    queue.patch(message_retention_seconds=1_000, rewind_seconds=1_000)
    world.clock.pass_seconds(100)

    assert queue.run("rewind", to=start)["done"] == 0
    assert queue.counts() == {}


@pytest.mark.parametrize("size", [10, 3_000], ids=["in parcels", "in the log"])
def test_with_one_partition_rewound_messages_come_in_order_of_sending(
    world: World, make_queue: MakeQueue, now: Now, size: int
) -> None:
    queue = make_queue("orders", rewind_seconds=3_600, partitions=1)
    start, chance = now(), random.Random(7)
    bodies = [f"{number:02d}".ljust(size, "x") for number in range(40)]
    at = 0
    while at < len(bodies):  # alone and in batches, some of which are consumed in part alone
        some = chance.choice([1, 1, 3, 5])
        queue.send(*bodies[at : at + some])
        at += some
        world.clock.pass_seconds(chance.choice([0.001, 0.5, 7]))
    held = queue.receive_all()
    chance.shuffle(held)
    for message in held[:33]:
        queue.delete(message)
        world.clock.pass_seconds(0.1)
    world.clock.pass_seconds(60)

    queue.run("rewind", to=start)

    deleted = {message["body"] for message in held[:33]}
    assert [each for each in queue.consume() if each in deleted] == sorted(deleted)


class TestWhatIsRefused:
    def test_a_queue_with_rewind_off_is_not_rewindable(self, queue: TestQueue, now: Now) -> None:
        reply = queue.client.post(f"{queue.path}/rewind", {"to": now()})

        assert (reply.status, reply.code) == (409, "NotRewindable")

    def test_the_time_lies_in_the_window(self, rewindable: TestQueue, now: Now) -> None:
        path = f"{rewindable.path}/rewind"

        assert rewindable.client.post(path, {"to": now(-3_600)}).status == 202
        assert rewindable.client.post(path, {"to": now()}).status == 202
        assert rewindable.client.post(path, {"to": now(-3_600.001)}).code == "NotRewindable"
        future = rewindable.client.post(path, {"to": now(0.001)})
        assert (future.code, future.json["parameter"]) == ("InvalidParameter", "to")

    def test_seconds_since_1970_are_understood(
        self, world: World, rewindable: TestQueue, now: Now
    ) -> None:
        path = f"{rewindable.path}/rewind"
        seconds = datetime.fromisoformat(now()).timestamp()
        for to in (seconds - 3_599.5, int(seconds), seconds - 0.001):
            assert rewindable.client.post(path, {"to": to}).status == 202
        assert rewindable.client.post(path, {"to": 0}).code == "NotRewindable"
        assert rewindable.client.post(path, {"to": seconds + 1}).code == "InvalidParameter"

        rewindable.send("before")
        world.clock.pass_seconds(10)
        moment = datetime.fromisoformat(now()).timestamp()
        rewindable.send("after")
        rewindable.consume()
        assert rewindable.run("rewind", to=moment)["done"] == 1
        assert rewindable.bodies() == ["after"]

    def test_other_offsets_are_understood(self, rewindable: TestQueue) -> None:
        rewindable.send("x")
        rewindable.consume()

        assert rewindable.run("rewind", to="2026-11-18T12:06:40+01:00")["done"] == 1


class TestTurningItOff:
    def test_rewindable_messages_are_dropped_at_once(self, rewindable: TestQueue, now: Now) -> None:
        start = now()
        rewindable.send("a", "b")
        rewindable.send("c")
        held = rewindable.receive_all()
        rewindable.delete(*[message for message in held if message["body"] in "ac"])
        rewindable.patch(rewind_seconds=0)
        assert rewindable.counts() == {"inactive": 1}
        rewindable.patch(rewind_seconds=3_600)

        assert rewindable.counts() == {"inactive": 1}
        assert rewindable.run("rewind", to=start)["done"] == 0

    def test_messages_deleted_while_it_was_off_do_not_come_back(
        self, world: World, make_queue: MakeQueue, start: str
    ) -> None:
        queue = make_queue()
        queue.send("a", "b")
        queue.delete(queue.receive(1)[0])
        world.clock.pass_seconds(1)
        queue.patch(rewind_seconds=3_600)

        assert queue.counts() == {"active": 1}
        assert queue.run("rewind", to=start)["done"] == 0

    def test_messages_deleted_after_it_was_turned_on_again_are_kept(
        self, world: World, rewindable: TestQueue, start: str
    ) -> None:
        rewindable.send("a", "b")
        rewindable.patch(rewind_seconds=0)
        world.clock.pass_seconds(1)
        rewindable.patch(rewind_seconds=3_600)
        world.clock.pass_seconds(1)
        rewindable.consume()

        assert rewindable.counts() == {"rewindable": 2}
        assert rewindable.run("rewind", to=start)["done"] == 2


def test_messages_come_back_for_all_consumers(
    world: World, rewindable: TestQueue, start: str
) -> None:
    rewindable.add_receiver("copy")
    rewindable.send("a", "b" * 3_000)
    world.settle()
    for receiver in ("default", "copy"):
        held = rewindable.receive_all(receiver=receiver)
        rewindable.delete(*held)

    operation = rewindable.run("rewind", to=start)

    assert operation["done"] == 4
    for receiver in ("default", "copy"):
        assert len(rewindable.receive_all(receiver=receiver)) == 2


def test_ordered_messages_come_back_in_the_order_of_sending(
    world: World, make_queue: MakeQueue, start: str
) -> None:
    queue = make_queue(ordered=True, rewind_seconds=3_600)
    for number in range(20):
        queue.send(f"{number:02}", group="g")
        world.clock.pass_seconds(0.5)
    assert queue.consume() == [f"{number:02}" for number in range(20)]

    queue.run("rewind", to=start)

    assert queue.consume() == [f"{number:02}" for number in range(20)]


def test_a_rewound_message_can_be_rewound_again(rewindable: TestQueue, start: str) -> None:
    rewindable.send("a", "b")
    for _ in range(3):
        assert len(rewindable.consume()) == 2
        assert rewindable.run("rewind", to=start)["done"] == 2
    assert rewindable.run("rewind", to=start)["done"] == 0
    assert len(rewindable.consume()) == 2


def test_a_message_can_be_rewound_after_waiting_for_a_retry(
    world: World, rewindable: TestQueue, start: str
) -> None:
    rewindable.send("a", "b" * 2_000, "c")
    rewindable.give_back(*rewindable.receive(), delay_seconds=100)
    world.clock.pass_seconds(200)
    rewindable.consume()

    assert rewindable.run("rewind", to=start)["done"] == 3
    assert rewindable.bodies() == ["a", "b" * 2_000, "c"]


def test_a_dead_letter_is_not_rewound_at_its_source(make_queue: MakeQueue, start: str) -> None:
    make_queue("dead")
    dead_letter = {"queue": "dead", "max_receives": 9}
    queue = make_queue(rewind_seconds=3_600, dead_letter=dead_letter)
    queue.send("a", "b")
    held = queue.receive()
    queue.act("dead-letter", held[0])
    queue.delete(held[1])

    assert queue.run("rewind", to=start)["done"] == 1
    assert queue.bodies() == [held[1]["body"]]


class TestFailures:
    """Rewinding survives the failure of any step, and never loses or doubles a message."""

    def fill(self, world: World, queue: TestQueue) -> None:
        """Messages in the archive, deleted in live parcels, and still there."""
        for number in range(6):
            queue.send(f"{number}a", f"{number}b")
            world.clock.pass_seconds(0.01)
        for message in queue.receive_all():
            if message["body"] not in ("0a", "3b"):
                queue.delete(message)
        world.clock.pass_seconds(60)

    EXPECTED = sorted(f"{number}{letter}" for number in range(6) for letter in "ab")

    def test_it_goes_on_after_running_out_of_time(
        self, world: World, rewindable: TestQueue, start: str
    ) -> None:
        self.fill(world, rewindable)
        operation = rewindable.start("rewind", to=start)

        assert run_in_small_steps(world) > 4

        shown = rewindable.client.get(f"/operations/{operation}").json
        assert (shown["state"], shown["done"]) == ("succeeded", 10)
        assert rewindable.bodies() == self.EXPECTED

    def test_a_message_consumed_while_it_runs_does_not_appear_twice(
        self, world: World, rewindable: TestQueue, start: str
    ) -> None:
        self.fill(world, rewindable)
        rewindable.start("rewind", to=start)
        consumed: list[str] = []
        while world.invoked:
            world.clock.pass_seconds(0.01)
            _, event = world.invoked.popleft()
            runner.run(world.core, Pointer(**event["operation"]), 0)
            consumed += rewindable.consume()

        assert sorted(consumed) == self.EXPECTED

    @pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.long)])
    @pytest.mark.parametrize("applied", [False, True])
    def test_it_survives_the_failure_of_any_call(
        self,
        world: World,
        make_queue: MakeQueue,
        monkeypatch: pytest.MonkeyPatch,
        now: Now,
        applied: bool,
        step: int,
    ) -> None:
        for calls in range(0, 40, step):
            queue = make_queue(f"q{calls}", rewind_seconds=3_600, partitions=2)
            start = now()
            self.fill(world, queue)
            operation = queue.start("rewind", to=start)

            failed = crash(world, monkeypatch, calls, applied=applied)

            shown = queue.client.get(f"/operations/{operation}").json
            assert shown["state"] == "succeeded"
            assert queue.bodies() == self.EXPECTED, calls
            if not failed:
                return
        raise AssertionError("40 calls were not enough to come to the end")


def test_a_run_out_of_time_stops_in_the_middle_of_a_page(
    world: World, make_queue: MakeQueue, start: str
) -> None:
    queue = make_queue(rewind_seconds=3_600, partitions=1)
    for n in range(50):
        queue.send(str(n))
    bodies = queue.consume()
    world.clock.pass_seconds(1)
    operation = queue.start("rewind", to=start)

    assert run_in_small_steps(world) > 3

    assert sorted(queue.consume()) == sorted(bodies)
    assert queue.client.get(f"/operations/{operation}").json["done"] == 50


def test_nothing_comes_back_once_rewinding_is_turned_off(
    world: World, rewindable: TestQueue, start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewindable.add_receiver("copy")
    for n in range(40):
        rewindable.send(str(n))
    world.settle()
    rewindable.delete(*rewindable.receive_all())
    rewindable.delete(*rewindable.receive_all(receiver="copy"))
    world.clock.pass_seconds(1)
    rewindable.start("rewind", to=start)

    amid(world, monkeypatch, 12, lambda: rewindable.patch(rewind_seconds=0))

    back = len(rewindable.receive_all()) + len(rewindable.receive_all(receiver="copy"))
    assert back == 12


def test_rewinds_of_a_queue_run_one_after_the_other(
    world: World, rewindable: TestQueue, start: str
) -> None:
    rewindable.send("a")
    rewindable.consume()
    first = rewindable.client.post("/queues/orders/rewind", {"to": start}).json["operation"]
    world.invoked.clear()  # its runner is lost; the sweep starts it again
    world.clock.pass_seconds(1)
    rewindable.send("b")
    rewindable.consume()
    world.clock.pass_seconds(1)
    second = rewindable.client.post("/queues/orders/rewind", {"to": start}).json["operation"]
    world.settle()

    def state(operation: str) -> str:
        return str(rewindable.client.get(f"/operations/{operation}").json["state"])

    assert (state(first), state(second)) == ("running", "running")
    assert rewindable.counts() == {"rewindable": 2}
    sweep(world)
    assert (state(first), state(second)) == ("succeeded", "succeeded")
    assert sorted(rewindable.bodies()) == ["a", "b"]
