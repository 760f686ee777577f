"""What a later release writes outside the tables: receipts, cursors, attempts, events, the secret.

Further fields are passed over, and what is signed stays signed. A higher format is refused.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.test_repeated_sends import attempt
from tests.service.topics import Schedules, TestTopic

from cirrusmq.base.errors import Unavailable
from cirrusmq.base.formats import FORMAT
from cirrusmq.model.receipt import decode
from cirrusmq.queues import operations
from cirrusmq.queues.queues import get_queue
from cirrusmq.runtime.secret import turned_over
from cirrusmq.storage import cursors
from cirrusmq_local.testing import Client, World

LATER = {"format": FORMAT + 1}
FURTHER: list[list[Any]] = [["more"], [7], [None, "x"], [{"format": 1}], [{"why": "x"}, b"1", 2.5]]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The levels of what was logged of later releases; nothing worse was logged."""
    caplog.set_level(logging.INFO)

    def levels() -> list[str]:
        assert not [each for each in caplog.records if each.levelno >= logging.ERROR]
        return [each.levelname for each in caplog.records if "later release" in each.getMessage()]

    return levels


def unpack(text: str) -> list[Any]:
    fields: list[Any] = msgspec.msgpack.decode(base64.urlsafe_b64decode(text + "=" * 3))
    return fields


def pack(fields: list[Any]) -> str:
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(fields)).decode().rstrip("=")


def extended(receipt: str, *further: Any) -> str:
    return pack([*unpack(receipt), *further])


class TestReceipts:
    @pytest.mark.parametrize("further", FURTHER, ids=str)
    def test_further_fields_are_passed_over(self, queue: TestQueue, further: list[Any]) -> None:
        queue.send("a", "b", "c", "d")
        first, *others = queue.receive(visibility_timeout_seconds=60)
        receipts = [{"receipt": extended(each["receipt"], *further)} for each in (first, *others)]

        assert queue.hold(receipts[0], 90)["failed"] == []
        queue.give_back(receipts[0])
        queue.delete(*receipts[1:])

        assert queue.bodies() == [first["body"]]

    def test_receipt_fields_are_compared_as_ever(self, world: World, queue: TestQueue) -> None:
        queue.send("a", "b")
        (message,) = queue.receive(1)
        fields = unpack(message["receipt"])
        forged = [
            {"receipt": pack([*fields[:place], value, *fields[place + 1 :], "more"])}
            for place, value in enumerate(["other", 3, f"{fields[2]}x", 1, 1, 5, bytes(16)])
        ]
        before = world.items()
        answer = queue.act("delete", *forged)
        assert [each["code"] for each in answer["failed"]] == ["ReceiptExpired"] * len(forged)
        assert world.items() == before

    def test_only_the_written_form_is_a_receipt(self, queue: TestQueue) -> None:
        queue.send("a")
        (message,) = queue.receive()
        text = extended(message["receipt"], "more")
        packed = base64.urlsafe_b64decode(text + "=" * 3)
        assert decode(text) is not None
        as_text = base64.urlsafe_b64encode
        others = [
            text + "=",
            f"{text[:9]}\n{text[9:]}",
            as_text(packed + b"\0").decode().rstrip("="),
            # The text "more" as one with a longer head, and one that is no UTF-8.
            as_text(packed[:-5] + b"\xd9\x04more").decode().rstrip("="),
            as_text(packed[:-4] + b"\xff\xff\xff\xff").decode().rstrip("="),
            pack([float(x) if x == 0 else x for x in unpack(text)]),
        ]
        assert [decode(each) for each in others] == [None] * len(others)

    def test_two_texts_of_one_receipt_settle_its_message_once(self, queue: TestQueue) -> None:
        queue.send("a")
        (message,) = queue.receive()
        twice = [message, {"receipt": extended(message["receipt"], "more")}]
        answer = queue.act("delete", *twice)
        assert len(answer["deleted"]) == 1
        assert [each["code"] for each in answer["failed"]] == ["ReceiptExpired"]

    @pytest.mark.parametrize("verb", ["delete", "give-back", "dead-letter", "visibility"])
    def test_a_higher_format_is_refused_and_changes_nothing(
        self, world: World, queue: TestQueue, verb: str, told: Callable[[], list[str]]
    ) -> None:
        queue.send("a", "b")
        first, second = queue.receive()
        receipts = [first["receipt"], extended(second["receipt"], "more", LATER)]
        body: dict[str, Any] = {"receipts": receipts}
        if verb == "visibility":
            body = {
                "entries": [{"receipt": each, "visibility_timeout_seconds": 5} for each in receipts]
            }
        before = world.items()
        reply = queue.client.post(f"{queue.path}/messages/{verb}", body)
        assert (reply.status, reply.code) == (503, "Unavailable")
        assert "later release" in reply.json["detail"]
        assert told() == ["WARNING"]
        assert world.items() == before


def with_fields(world: World, cursor: str, listing: tuple[str, ...], *fields: str) -> str:
    """The cursor as a later release would have signed it."""
    known = cursors.read(world.core, cursor, *listing)
    assert known is not None
    return cursors.make(world.core, cursors.FURTHER.join([known, *fields]), *listing)


class TestCursors:
    @staticmethod
    def listings(world: World, alice: Client) -> dict[str, tuple[str, tuple[str, ...], Any]]:
        """For each: a cursor, what it is bound to, and a call that shows the page behind one."""
        topic = TestTopic(alice)
        for name in ("a", "b", "c"):
            alice.put(f"/queues/{name}")
            topic.publish(name)
        alice.send("a", "1", "2", "3")
        world.clock.pass_seconds(10)
        queue_id, topic_id = alice.get("/queues/a").json["id"], topic.shown["id"]
        peek = alice.post("/queues/a/messages/peek", {"max": 1}).json
        queues = alice.get("/queues", "limit=1").json
        return {
            "queues": (
                queues["cursor"],
                ("queues", "alice", ""),
                lambda cursor: alice.get("/queues", f"limit=1&cursor={cursor}"),
            ),
            "peek": (
                peek["cursor"],
                ("peek", queue_id),
                lambda cursor: alice.post("/queues/a/messages/peek", {"max": 1, "cursor": cursor}),
            ),
            "log": (
                topic.log(limit=1)["cursor"],
                ("log", topic_id, ""),
                lambda cursor: alice.get("/topics/news/messages", f"limit=1&after={cursor}"),
            ),
        }

    @pytest.mark.parametrize("name", ["queues", "peek", "log"])
    def test_further_fields_are_passed_over_and_signed(
        self, world: World, alice: Client, name: str, told: Callable[[], list[str]]
    ) -> None:
        cursor, listing, page = self.listings(world, alice)[name]
        later = with_fields(world, cursor, listing, "more", "5/6")
        assert page(later).json == page(cursor).json
        # The field is signed: one that was put in by somebody else is none of ours.
        mac = base64.urlsafe_b64decode(cursor + "=" * 3)
        forged = base64.urlsafe_b64encode(mac + b"\nmore").decode().rstrip("=")
        assert page(forged).status == 400
        assert told() == []

    @pytest.mark.parametrize("name", ["queues", "peek", "log"])
    def test_a_higher_format_is_refused(
        self, world: World, alice: Client, name: str, told: Callable[[], list[str]]
    ) -> None:
        cursor, listing, page = self.listings(world, alice)[name]
        reply = page(with_fields(world, cursor, listing, "more", f"format={FORMAT + 1}"))
        assert (reply.status, reply.code) == (503, "Unavailable")
        assert told() == ["WARNING"]
        assert page(with_fields(world, cursor, listing, "format=1")).status == 200


class TestAttempts:
    def test_further_fields_are_passed_over_and_are_repeated_with_it(
        self, queue: TestQueue, world: World
    ) -> None:
        own = f"{attempt(world)}.more"
        sent = [queue.try_send([{"body": "a"}], attempt=own).json for _ in range(2)]
        assert sent[0]["messages"][0]["id"] == sent[1]["messages"][0]["id"]
        received = [queue.receive(attempt=own, repeat=repeat) for repeat in (False, True)]
        assert received[0] == received[1] != []
        assert queue.bodies() == []

    def test_the_first_part_is_a_ulid_as_ever(self, queue: TestQueue, world: World) -> None:
        own = attempt(world)
        for wrong in (f"{own}x", f"{own[1:]}.x", f".{own}", f"{own}.{'x' * 200}", "."):
            assert queue.try_send([{"body": "a"}], attempt=wrong).status == 400

    def test_a_higher_format_is_refused(
        self, queue: TestQueue, world: World, told: Callable[[], list[str]]
    ) -> None:
        reply = queue.try_send([{"body": "a"}], attempt=f"{attempt(world)}.x.format={FORMAT + 1}")
        assert (reply.status, reply.code) == (503, "Unavailable")
        assert told() == ["WARNING"]
        assert world.items() == []


def later_events(world: World, **members: Any) -> int:
    """Put members into all that functions are told of at once; how many events there are."""
    events = [(role, _inside(event, members)) for role, event in world.invoked]
    world.invoked.clear()
    world.invoked.extend(events)
    return len(events)


def _inside(event: Any, members: dict[str, Any]) -> Any:
    if not isinstance(event, dict):
        return event
    return {**{name: _inside(value, members) for name, value in event.items()}, **members}


class TestEvents:
    """Of each kind of event between functions."""

    def test_unknown_members_are_passed_over(
        self, world: World, alice: Client, dead: TestQueue, make_queue: MakeQueue
    ) -> None:
        work = make_queue("work", dead_letter={"queue": "dead", "max_receives": 9})
        work.send("a")
        work.act("dead-letter", *work.receive())
        dead.start("redrive")
        assert later_events(world, later={"a": 1}) == 1
        world.settle()
        assert work.bodies() == ["a"]
        topic = TestTopic(alice)
        topic.subscribe("hook", "http")
        topic.try_publish([{"body": "b"}])
        world.run_stream("fan_out")
        assert later_events(world, later={"a": 1}) == 1
        world.settle()
        assert [body for _, _, body in world.posts]

    def test_rounds_of_an_execution_pass_them_on(self, world: World, topic: TestTopic) -> None:
        topic.subscribe("hook", "http", retry={"policy": "custom", "waits": [60, 60]})
        world.endpoint = lambda url: "status 500"
        topic.publish("a")
        ((_, given),) = world.executions
        given["retry"]["later"] = "kept"
        world.clock.pass_seconds(60)
        answer = world.run("push", json.loads(json.dumps(given)))
        assert answer["retry"]["later"] == "kept"

    @pytest.mark.parametrize("members", [LATER, None], ids=["format", "kind"])
    def test_others_are_left_to_the_sweep_without_an_error(
        self,
        world: World,
        topic: TestTopic,
        members: dict[str, Any] | None,
        told: Callable[[], list[str]],
    ) -> None:
        topic.subscribe("hook", "http")
        topic.try_publish([{"body": "b"}])
        world.run_stream("fan_out")
        for role, event in world.invoked:
            later = {**event, **members} if members else {"of_another_kind": event}
            world.run(role, later)
        world.invoked.clear()
        assert world.posts == []
        assert told() == ["WARNING"]
        assert world.run("replay", {"of_another_kind": 1}) is None
        assert told() == ["WARNING"] * 2

        Schedules(world, sweeps=True).pass_seconds(200)
        assert len(world.posts) == 1


class TestTheSecret:
    """It is not for a release that does not know all of it."""

    def test_an_unknown_member_is_refused(
        self, world: World, alice: Client, queue: TestQueue, told: Callable[[], list[str]]
    ) -> None:
        world.secret = json.dumps({**json.loads(world.secret), "algorithm": "x"})
        for name in ("a", "b"):
            alice.put(f"/queues/{name}")
        reply = alice.get("/queues", "limit=1")
        assert (reply.status, reply.code) == (503, "Unavailable")
        assert "later release" in reply.json["detail"]
        assert told() == ["WARNING"]
        # What is not signed goes on.
        assert queue.send("a")

    def test_a_turn_over_does_not_drop_it(self, world: World) -> None:
        held = json.dumps({**json.loads(world.secret), "algorithm": "x"})
        with pytest.raises(Unavailable, match="later release"):
            turned_over(held, world.clock.now_ms(), bytes(32))


def test_an_operation_with_later_receipts_waits_for_a_later_release(
    world: World, alice: Client, make_queue: MakeQueue, told: Callable[[], list[str]]
) -> None:
    make_queue("other")
    queue = make_queue()
    queue.send("a")
    (message,) = queue.receive(visibility_timeout_seconds=600)
    receipts = [extended(message["receipt"], LATER)]
    started = queue.start("redrive", to="other", receipts=receipts)
    world.settle()
    assert alice.get(f"/operations/{started}").json["state"] == "running"
    assert told() == ["WARNING"]
    assert len(list(operations.running(world.core))) == 1
    assert get_queue(world.core, "alice", "orders").id
