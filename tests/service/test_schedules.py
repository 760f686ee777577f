"""Schedules: each time is fired once, at its minute, whatever stops in between."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, bodies
from tests.service.crashes import BrokenStore, before_transactions

from cirrusmq.base.timestamps import format_time, parse_time
from cirrusmq.maintenance.sweep import sweep
from cirrusmq.schedules.firing import fire_due
from cirrusmq_local.testing import Client, Reply, World

MINUTE: dict[str, Any] = {"every_seconds": 60}


def put(client: Client, name: str = "ticks", **fields: Any) -> Reply:
    message = fields.pop("message", {"body": "tick"})
    return client.put(f"/schedules/{name}", {"message": message, **fields})


def made(client: Client, name: str = "ticks", **fields: Any) -> dict[str, Any]:
    reply = put(client, name, **fields)
    assert reply.status in (200, 201), reply.text
    shown: dict[str, Any] = reply.json
    return shown


def due_at(client: Client, name: str = "ticks") -> int:
    """Milliseconds of the next time, as it is shown."""
    return parse_time("next_at", client.get(f"/schedules/{name}").json["next_at"])


def go_to(world: World, time_ms: int) -> None:
    world.clock.pass_seconds((time_ms - world.clock.now_ms()) / 1000)


def due_soon(world: World, client: Client, seconds: float = 90, **fields: Any) -> int:
    """Make a schedule of each hour, and sweep so long before its first time; returns that."""
    made(client, every_seconds=3_600, **fields)
    first_ms = due_at(client)
    go_to(world, first_ms - round(1_000 * seconds))
    world.run("sweep")
    return first_ms


def sweep_for(world: World, minutes: int) -> None:
    """Minutes with a sweep in each."""
    for _ in range(minutes):
        world.run("sweep")
        world.settle()
        world.clock.pass_seconds(60)


def marks(world: World) -> list[dict[str, Any]]:
    return [item for item in world.items("directory") if item["pk"]["S"].startswith("D#")]


def parcels(world: World) -> list[dict[str, Any]]:
    return [item for item in world.items() if item["pk"]["S"].startswith("Q#")]


class TestFiring:
    def test_a_message_is_there_at_its_minute(
        self, world: World, queue: TestQueue, alice: Client
    ) -> None:
        first_ms = due_soon(world, alice, queue=queue.name)

        go_to(world, first_ms - 1)
        assert queue.bodies() == []
        go_to(world, first_ms)
        assert queue.bodies() == ["tick"]
        assert due_at(alice) == first_ms + 3_600_000
        assert len(marks(world)) == 1

    def test_each_minute_has_one(self, world: World, queue: TestQueue, alice: Client) -> None:
        made(alice, queue=queue.name, **MINUTE)
        begun_ms = due_at(alice)
        sweep_for(world, 20)
        minutes = (world.clock.now_ms() - begun_ms) // 60_000 + 1

        assert len(queue.bodies()) == minutes

    def test_it_costs_six_write_units(self, world: World, queue: TestQueue, alice: Client) -> None:
        first_ms = due_soon(world, alice, queue=queue.name)
        go_to(world, first_ms + 3_600_000 - 90_000)
        fire = partial(fire_due, world.core, world.clock.now_ms() + 60_000, 0)

        assert world.write_units(fire) == 6

    def test_a_topic_delivers_it_at_its_minute(
        self, world: World, queue: TestQueue, alice: Client
    ) -> None:
        assert alice.put("/topics/news", {}).status == 201
        subscription = {"protocol": "queue", "endpoint": queue.name}
        assert alice.put("/topics/news/subscriptions/all", subscription).status == 201
        first_ms = due_soon(world, alice, topic="news")
        world.settle()

        go_to(world, first_ms - 1)
        assert queue.bodies() == []
        go_to(world, first_ms)
        assert queue.bodies() == ["tick"]

    @pytest.mark.parametrize(
        ("attributes", "message"),
        [
            ({"fair": True}, {"body": "tick", "group": "g"}),
            ({"priorities": 3}, {"body": "tick", "priority": 2}),
            ({"paused": True}, {"body": "tick"}),
            ({"send_rate": 1}, {"body": "tick"}),
            ({"delay_seconds": 900}, {"body": "tick"}),
        ],
    )
    def test_kinds_of_queues(
        self,
        world: World,
        make_queue: MakeQueue,
        alice: Client,
        attributes: dict[str, Any],
        message: dict[str, Any],
    ) -> None:
        queue = make_queue("some", **attributes)
        due_soon(world, alice, queue="some", message=message)
        world.clock.pass_seconds(90)
        queue.patch(paused=False)

        (received,) = queue.receive_all(wait_seconds=0)
        assert received["body"] == "tick"
        assert received.get("group") == message.get("group")

    def test_a_receiver_of_the_queue_gets_it(
        self, world: World, queue: TestQueue, alice: Client
    ) -> None:
        assert alice.put(f"{queue.path}/receivers/audit").status == 201
        world.clock.pass_seconds(120)
        due_soon(world, alice, queue=queue.name)
        world.settle()
        world.clock.pass_seconds(90)

        assert bodies(queue.receive_all(receiver="audit", wait_seconds=0)) == ["tick"]
        assert queue.bodies() == ["tick"]

    def test_its_message_is_found_by_its_id(
        self, world: World, queue: TestQueue, alice: Client
    ) -> None:
        due_soon(world, alice, 90.123, queue=queue.name)
        (waiting,) = alice.post(f"{queue.path}/messages/peek", {"state": "delayed"}).json[
            "messages"
        ]

        assert alice.delete(f"{queue.path}/messages/{waiting['id']}").status == 204
        world.clock.pass_seconds(120)
        assert queue.bodies() == []

    def test_without_schedules_a_sweep_reads_no_marks(self, world: World) -> None:
        world.run("sweep")
        before = world.units(lambda: world.run("sweep"))
        assert made(world.client("alice"), queue=_queue(world), every_seconds=86_400)
        world.run("sweep")

        with_marks = world.units(lambda: world.run("sweep"))
        assert with_marks[0] == before[0]
        assert 0 < with_marks[1] - before[1] <= 8

    @pytest.mark.long
    def test_the_flag_goes_after_the_last_schedule(
        self, world: World, queue: TestQueue, alice: Client
    ) -> None:
        made(alice, queue=queue.name, every_seconds=3_600)
        assert alice.delete("/schedules/ticks").status == 204
        sweep_for(world, 130)

        assert marks(world) == []
        (rounds,) = (
            item
            for item in world.items("usage")
            if (item["pk"]["S"], item["sk"]["S"]) == ("sweep", "rounds")
        )
        assert "scheduled" not in rounds
        made(alice, queue=queue.name, **MINUTE)
        sweep_for(world, 6)
        assert queue.bodies()


def _queue(world: World) -> str:
    assert world.client("alice").put("/queues/plain", {}).status == 201
    return "plain"


class TestCrashes:
    @pytest.mark.few(7)
    @pytest.mark.parametrize("applied", [False, True])
    @pytest.mark.parametrize("calls", range(16))
    def test_a_time_is_fired_once_wherever_a_sweep_stops(
        self,
        world: World,
        queue: TestQueue,
        alice: Client,
        monkeypatch: pytest.MonkeyPatch,
        calls: int,
        applied: bool,
    ) -> None:
        made(alice, queue=queue.name, every_seconds=3_600)
        first_ms = due_at(alice)
        store = BrokenStore(world, monkeypatch)
        go_to(world, first_ms - 110_000)
        store.break_after(calls, applied=applied)
        with contextlib.suppress(Exception):
            world.run("sweep")
        store.mend()
        go_to(world, first_ms - 50_000)
        sweep_for(world, 3)

        assert queue.bodies() == ["tick"]
        assert len(marks(world)) == 1

    def test_two_sweeps_read_the_same_mark(
        self, world: World, queue: TestQueue, alice: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made(alice, queue=queue.name, every_seconds=3_600)
        go_to(world, due_at(alice) - 90_000)
        inside: list[object] = []
        before_transactions(world, monkeypatch, lambda: inside.append(world.run("sweep")))
        world.run("sweep")
        world.clock.pass_seconds(120)

        assert inside
        assert queue.bodies() == ["tick"]


class TestMissedTimes:
    @pytest.mark.parametrize(("missed", "count"), [("one", 1), ("all", 61), ("none", 0)])
    def test_a_late_sweep(
        self, world: World, queue: TestQueue, alice: Client, missed: str, count: int
    ) -> None:
        made(alice, queue=queue.name, missed=missed, **MINUTE)
        first_ms = due_at(alice)
        # The last time is over for just more than a minute.
        go_to(world, first_ms + 61 * 60_000 + 1)
        world.run("sweep")
        late = len(queue.bodies())

        # The next minute's is not missed: it is over for a minute at most.
        assert late == count + 1

    def test_a_sweep_tells_how_late_its_latest_message_is(
        self, world: World, queue: TestQueue, alice: Client
    ) -> None:
        made(alice, queue=queue.name, **MINUTE)
        first_ms = due_at(alice)
        go_to(world, first_ms - 60_000)
        assert sweep(world.core, 60_000).late_ms == 0
        go_to(world, first_ms + 10 * 60_000 + 5_000)
        assert sweep(world.core, 60_000).late_ms == 5_000 + 60_000  # the last, and one before it
        assert sweep(world.core, 60_000).late_ms == 0

    def test_all_are_at_most_a_hundred(self, world: World, queue: TestQueue, alice: Client) -> None:
        made(alice, queue=queue.name, missed="all", **MINUTE)
        go_to(world, due_at(alice) + 300 * 60_000 + 1)
        world.run("sweep")

        assert len(queue.bodies()) == 101

    def test_a_clock_set_back_fires_nothing_again(
        self, world: World, queue: TestQueue, alice: Client
    ) -> None:
        due_soon(world, alice, 60, queue=queue.name)
        world.clock.pass_seconds(-600)
        sweep_for(world, 12)

        assert queue.bodies() == ["tick"]


class TestChanges:
    @pytest.mark.few(2)
    @pytest.mark.parametrize("seconds", range(0, 240, 20))
    def test_a_change_at_any_moment_loses_and_doubles_no_time(
        self, world: World, queue: TestQueue, alice: Client, seconds: int
    ) -> None:
        made(alice, queue=queue.name, **MINUTE)
        first_ms = due_at(alice)
        sweep_for(world, 3)
        world.clock.pass_seconds(seconds % 60)
        for number in range(3):
            made(alice, queue=queue.name, message={"body": f"change {number}"}, **MINUTE)
            world.clock.pass_seconds(seconds / 3)
            world.run("sweep")
        sweep_for(world, 8)
        world.run("sweep")
        minutes = (world.clock.now_ms() - first_ms) // 60_000 + 1

        assert len(queue.bodies()) == minutes

    def test_times_behind_three_minutes_have_the_new_message(
        self, world: World, queue: TestQueue, alice: Client
    ) -> None:
        made(alice, queue=queue.name, **MINUTE)
        sweep_for(world, 5)
        shown = made(alice, queue=queue.name, message={"body": "new"}, **MINUTE)
        assert shown["in_force_from"] == format_time(world.clock.now_ms() + 180_000)
        world.run("sweep")
        sweep_for(world, 3)
        receipts = [each["receipt"] for each in queue.receive_all(wait_seconds=0)]
        deleted = alice.post(f"{queue.path}/messages/delete", {"receipts": receipts})
        assert deleted.status == 200
        sweep_for(world, 3)

        assert set(queue.bodies()) == {"new"}

    def test_the_same_again_changes_nothing(self, queue: TestQueue, alice: Client) -> None:
        first = put(alice, queue=queue.name, **MINUTE)
        again = put(alice, queue=queue.name, **MINUTE)

        assert (first.status, again.status) == (201, 200)
        assert first.json == again.json

    def test_too_many_changes_are_refused(self, queue: TestQueue, alice: Client) -> None:
        replies = [
            put(alice, queue=queue.name, message={"body": f"{number}"}, **MINUTE)
            for number in range(7)
        ]

        assert [each.status for each in replies] == [201, 200, 200, 200, 200, 200, 429]

    def test_deleted_ones_fire_no_more(self, world: World, queue: TestQueue, alice: Client) -> None:
        made(alice, queue=queue.name, **MINUTE)
        assert alice.delete("/schedules/ticks").status == 204
        sweep_for(world, 6)

        assert queue.bodies() == []
        assert marks(world) == []
        assert alice.get("/schedules/ticks").code == "ScheduleNotFound"
        assert alice.delete("/schedules/ticks").code == "ScheduleNotFound"


class TestErrors:
    @pytest.mark.parametrize("cleared_by", ["the next time", "a change"])
    def test_a_deleted_queue_is_told_until_a_time_succeeds_or_the_schedule_changes(
        self,
        world: World,
        queue: TestQueue,
        make_queue: MakeQueue,
        alice: Client,
        cleared_by: str,
    ) -> None:
        made(alice, queue=queue.name, **MINUTE)
        due_ms = due_at(alice)
        assert alice.delete(queue.path).status == 204
        world.clock.pass_seconds(120)
        world.run("sweep")
        failed = alice.get("/schedules/ticks").json["last_error"]
        assert failed["code"] == "QueueNotFound"
        assert parse_time("due_at", failed["due_at"]) >= due_ms

        if cleared_by == "a change":
            make_queue("other")
            assert made(alice, queue="other", **MINUTE)["last_error"] is None
            return
        again = make_queue(queue.name)
        world.clock.pass_seconds(180)
        world.run("sweep")
        assert alice.get("/schedules/ticks").json["last_error"] is None
        world.clock.pass_seconds(120)
        assert again.bodies()

    def test_an_answer_has_the_message_as_it_was_given(
        self, queue: TestQueue, alice: Client
    ) -> None:
        given = {
            "body_base64": "AAE=",
            "attributes": {"kind": "tick", "raw": {"base64": "AAE="}},
            "tags": ["red"],
        }

        shown = made(alice, queue=queue.name, message=given, **MINUTE)

        assert shown["message"] == given
        assert alice.get("/schedules/ticks").json["message"] == given

    def test_an_account_has_a_thousand(
        self, queue: TestQueue, alice: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("cirrusmq.base.limits.SCHEDULES_PER_ACCOUNT", 2)
        for name in ("a", "b"):
            made(alice, name, queue=queue.name, **MINUTE)

        assert put(alice, "c", queue=queue.name, **MINUTE).code == "LimitExceeded"
        assert alice.delete("/schedules/a").status == 204
        made(alice, "c", queue=queue.name, **MINUTE)


class TestListings:
    @pytest.fixture
    def names(self, queue: TestQueue, alice: Client) -> list[str]:
        names = ["Days", "hours", "minutes"]
        for name in names:
            made(alice, name, queue=queue.name, every_seconds=3_600)
        return names

    def test_pages(self, alice: Client, names: list[str]) -> None:
        first = alice.get("/schedules", "limit=2").json
        second = alice.get("/schedules", f"limit=2&cursor={first['cursor']}").json

        shown = [each["name"] for each in first["schedules"] + second["schedules"]]
        assert shown == names
        assert [each["name"] for each in alice.get("/schedules", "prefix=h").json["schedules"]] == [
            "hours"
        ]

    def test_names_ignore_case(self, queue: TestQueue, alice: Client, names: list[str]) -> None:
        reply = put(alice, "DAYS", queue=queue.name, every_seconds=3_600)

        assert reply.code == "AlreadyExists"
