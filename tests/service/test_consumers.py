"""Which access keys received from a queue, a receiver or a group, and when last."""

from __future__ import annotations

from typing import Any

import pytest
from tests.listings import key_id
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.faults import Throttled
from tests.service.test_access import FOREIGN, with_key
from tests.service.test_listings import pages
from tests.service.topics import TestTopic

from cirrusmq.access.key_cache import KeyCache
from cirrusmq.base.timestamps import format_time
from cirrusmq_local.testing import Client, World

WEEK_SECONDS = 7 * 86_400


def consumers(client: Client, path: str, query: str = "") -> list[dict[str, Any]]:
    reply = client.get(f"{path}/consumers", query)
    assert reply.status == 200, reply.text
    found: list[dict[str, Any]] = reply.json["consumers"]
    return found


def noted(world: World) -> list[dict[str, Any]]:
    return [item for item in world.items("usage") if item["pk"]["S"].startswith("T#received#")]


class TestWhatIsShown:
    @pytest.mark.parametrize("sent", [0, 1])
    def test_a_receive_is_shown_whether_or_not_a_message_came(
        self, world: World, alice: Client, queue: TestQueue, sent: int
    ) -> None:
        assert consumers(alice, queue.path) == []
        for _ in range(sent):
            queue.send("a")

        assert len(queue.receive()) == sent

        assert consumers(alice, queue.path) == [
            {
                "access_key_id": key_id(alice),
                "account": "alice",
                "last_received_at": format_time(world.clock.now_ms()),
            }
        ]

    def test_of_another_accounts_key_its_account_alone_is_shown(
        self, alice: Client, bob: Client, queue: TestQueue
    ) -> None:
        alice.put(f"{queue.path}/grants/bob", {"permission": "full"})
        TestQueue(bob, "alice:orders").receive()
        queue.receive()

        def seen(client: Client, path: str) -> set[tuple[str, str | None]]:
            found = consumers(client, path)
            return {(each["account"], each.get("access_key_id")) for each in found}

        assert seen(alice, queue.path) == {("alice", key_id(alice)), ("bob", None)}
        assert seen(bob, FOREIGN) == {("alice", None), ("bob", key_id(bob))}

    def test_a_receiver_and_its_queue_have_their_own(self, alice: Client, queue: TestQueue) -> None:
        alice.put(f"{queue.path}/receivers/audit")
        queue.receive(receiver="audit")

        assert consumers(alice, queue.path) == []
        assert len(consumers(alice, queue.path, "receiver=audit")) == 1

    def test_a_group_keeps_its_consumers_when_it_is_rewound(
        self, world: World, alice: Client, topic: TestTopic
    ) -> None:
        group = topic.subscribe()
        topic.publish("a")
        assert len(group.receive()) == 1
        group.start("rewind", to=format_time(world.clock.now_ms() - 1_000))
        world.settle()

        assert len(consumers(alice, group.path)) == 1

    def test_a_queue_made_anew_has_none_of_the_old_one(
        self, alice: Client, queue: TestQueue
    ) -> None:
        queue.receive()
        alice.delete(queue.path)
        alice.put(queue.path)

        assert consumers(alice, queue.path) == []

    def test_a_peek_a_look_up_and_a_refused_receive_do_not_count(
        self, alice: Client, queue: TestQueue
    ) -> None:
        (sent,) = queue.send("a")
        assert len(queue.peek()) == 1
        alice.get(f"{queue.path}/messages/{sent['id']}")
        path = f"{queue.path}/messages/receive"
        assert alice.post(path, {"max": 17}).status == 400
        assert alice.post(path, {"repeat": True}).status == 400

        assert consumers(alice, queue.path) == []

    def test_a_called_function_is_no_key(self, world: World, make_queue: MakeQueue) -> None:
        handed: list[object] = []
        world.handle = handed.append
        queue = make_queue(invoke={"function": "handler"})
        queue.send("a")
        world.settle()

        assert len(handed) == 1
        assert noted(world) == []

    def test_an_expired_consumer_is_not_shown_though_it_is_there(
        self, world: World, alice: Client, queue: TestQueue
    ) -> None:
        queue.receive()
        world.clock.pass_seconds(WEEK_SECONDS - 1)
        assert len(consumers(alice, queue.path)) == 1
        world.clock.pass_seconds(1)

        assert consumers(alice, queue.path) == []
        assert len(noted(world)) == 1


class TestWhatIsWritten:
    def test_a_key_and_source_cost_one_unit_in_five_minutes(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue, other = make_queue(), make_queue("other")
        queue.peek()  # the use of the key, once a day

        def units(of: TestQueue) -> float:
            return world.write_units(of.receive)

        assert [units(queue), units(queue), units(other), units(other)] == [1, 0, 1, 0]
        world.clock.pass_seconds(299)
        assert units(queue) == 0
        world.clock.pass_seconds(1)
        assert [units(queue), units(queue)] == [1, 0]

    def test_a_later_receive_is_told_after_six_minutes(
        self, world: World, alice: Client, queue: TestQueue
    ) -> None:
        queue.receive()
        first_ms = world.clock.now_ms()
        world.clock.pass_seconds(240)
        queue.receive()
        (shown,) = consumers(alice, queue.path)
        assert shown["last_received_at"] == format_time(first_ms)
        world.clock.pass_seconds(120)
        queue.receive()

        (shown,) = consumers(alice, queue.path)
        assert shown["last_received_at"] == format_time(first_ms + 360_000)
        (item,) = noted(world)
        assert int(item["expires_at"]["N"]) == (first_ms + 360_000) // 1_000 + WEEK_SECONDS

    def test_an_environment_behind_takes_nothing_back(
        self, world: World, alice: Client, queue: TestQueue
    ) -> None:
        queue.receive()
        (shown,) = consumers(alice, queue.path)
        world.core.memories.clear()
        world.clock.pass_seconds(-1)
        queue.receive()

        assert consumers(alice, queue.path) == [shown]

    def test_a_failing_write_leaves_the_receive_as_it_is(
        self, world: World, alice: Client, queue: TestQueue
    ) -> None:
        queue.send("a")
        failing = Throttled(
            world,
            lambda operation, request: operation == "UpdateItem" and "T#received#" in str(request),
        )
        assert len(queue.receive()) == 1
        assert failing.refused
        failing.end()
        assert consumers(alice, queue.path) == []
        world.clock.pass_seconds(300)
        queue.receive()
        assert len(consumers(alice, queue.path)) == 1

    def test_the_memory_of_an_environment_is_bounded(self) -> None:
        known = KeyCache()
        assert all(known.first_note(str(number), 0, 300_000) for number in range(10_000))
        assert not known.first_note("0", 299_999, 599_999)
        assert known.first_note("one more", 0, 300_000)
        assert known.first_note("0", 1, 300_001), "it has forgotten all"


class TestPages:
    def test_pages_have_each_key_once_and_tell_no_other_accounts_key(
        self, world: World, alice: Client, bob: Client, queue: TestQueue
    ) -> None:
        alice.put(f"{queue.path}/grants/bob", {"permission": "receive"})
        keys = [alice.post("/keys").json for _ in range(5)]
        for key in keys:
            TestQueue(with_key(world, key), queue.name).receive()
        TestQueue(bob, "alice:orders").receive()

        found = pages(alice, "limit=2", f"{queue.path}/consumers")

        assert len(found) == 3
        shown = [each for page in found for each in page]
        ids = [each["access_key_id"] for each in shown if "access_key_id" in each]
        assert sorted(ids) == sorted(key["access_key_id"] for key in keys)
        assert [each["account"] for each in shown].count("bob") == 1
        assert key_id(bob) not in {item["sk"]["S"] for item in noted(world)}

    def test_a_page_goes_on_behind_expired_consumers(
        self, world: World, alice: Client, queue: TestQueue
    ) -> None:
        for _ in range(4):
            TestQueue(with_key(world, alice.post("/keys").json), queue.name).receive()
        world.clock.pass_seconds(WEEK_SECONDS)
        queue.receive()

        reply = alice.get(f"{queue.path}/consumers", "limit=1")

        assert [each["access_key_id"] for each in reply.json["consumers"]] == [key_id(alice)]
        assert "cursor" not in reply.json

    def test_a_cursor_is_of_its_source_alone(
        self, world: World, alice: Client, make_queue: MakeQueue
    ) -> None:
        queue, other = make_queue(), make_queue("other")
        queue.receive()
        TestQueue(with_key(world, alice.post("/keys").json), queue.name).receive()
        cursor = alice.get(f"{queue.path}/consumers", "limit=1").json["cursor"]

        reply = alice.get(f"{other.path}/consumers", f"cursor={cursor}")

        assert (reply.status, reply.json["parameter"]) == (400, "cursor")
