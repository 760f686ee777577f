"""Peeking page by page over a whole queue, and choosing dead letters by their notes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service.conftest import MakeQueue, Message, TestQueue
from tests.service.topics import TestTopic

from cirrusmq.receiving import peek
from cirrusmq_local.testing import World


def pages(queue: TestQueue, **request: Any) -> list[list[Message]]:
    found: list[list[Message]] = []
    cursor: dict[str, Any] = {}
    while True:
        reply = queue.client.post(f"{queue.path}/messages/peek", {**request, **cursor})
        assert reply.status == 200, reply.text
        found.append(reply.json["messages"])
        if "cursor" not in reply.json:
            return found
        cursor = {"cursor": reply.json["cursor"]}


def bodies(queue: TestQueue, **wanted: Any) -> list[str]:
    request = {"dead_letter": wanted} if wanted else {}
    return sorted(each["body"] for page in pages(queue, max=16, **request) for each in page)


def give_up(queue: TestQueue, reason: str, **more: Any) -> None:
    for message in queue.receive_all(**more):
        assert queue.act("dead-letter", message, reason=reason)["failed"] == []


@pytest.mark.parametrize("limit", [1, 5, 16])
@pytest.mark.parametrize("attributes", [{}, {"partitions": 1}, {"ordered": True}])
def test_every_active_message_is_shown_once(
    make_queue: MakeQueue, limit: int, attributes: dict[str, Any]
) -> None:
    queue = make_queue("orders", **attributes)
    ids = [
        each["id"]
        for number in range(12)
        for each in queue.client.send("orders", "x", "y", "z", group=str(number % 5))
    ]
    held = {each["id"] for each in queue.receive(4)}
    if not attributes.get("ordered"):
        queue.send("later", delay_seconds=600)
    found = [each["id"] for page in pages(queue, max=limit) for each in page]
    if attributes.get("ordered"):
        # Of a held group nobody gets a later one.
        assert set(found) <= set(ids) - held
    else:
        assert sorted(found) == sorted(set(ids) - held)
    assert len(set(found)) == len(found)


def test_sends_and_deletes_between_pages_hide_nothing_else(make_queue: MakeQueue) -> None:
    queue = make_queue("orders", partitions=2)
    for number in range(10):
        queue.client.send("orders", *(f"{number}-{place}" for place in range(3)))
    reply = queue.client.post(f"{queue.path}/messages/peek", {"max": 2})
    seen = [each["body"] for each in reply.json["messages"]]
    gone = queue.receive(7)
    queue.act("delete", *gone)
    queue.send("new")
    while "cursor" in reply.json:
        request = {"max": 2, "cursor": reply.json["cursor"]}
        reply = queue.client.post(f"{queue.path}/messages/peek", request)
        seen += [each["body"] for each in reply.json["messages"]]
    left = {each["body"] for each in queue.receive_all()}
    assert left - {"new"} <= set(seen)
    assert len(set(seen)) == len(seen)


def test_large_messages_end_a_page_and_are_all_shown(make_queue: MakeQueue) -> None:
    queue = make_queue("orders", max_message_bytes=262_144, partitions=1)
    for _ in range(12):
        queue.client.send("orders", *["\x01" * 80_000] * 2)
    found = pages(queue, max=16)
    assert len(found) > 1
    assert len({each["id"] for page in found for each in page}) == 24


def test_a_page_passing_over_much_is_empty_and_has_a_cursor(
    world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peek, "PEEK_UNITS", 5.0)
    queue = make_queue("orders", partitions=1)
    for _ in range(100):
        queue.send("x" * 300)
    queue.receive_all(visibility_timeout_seconds=900)
    world.clock.pass_seconds(1)
    queue.send("active")
    world.engine.reset_capacity()
    first, *others = pages(queue)
    assert first == []
    assert len(others) >= 2
    assert [each["body"] for page in others for each in page] == ["active"]


class TestDeadLetters:
    def test_they_are_chosen_by_reason_source_and_age(
        self, world: World, make_queue: MakeQueue, dead: TestQueue
    ) -> None:
        first = make_queue("first", dead_letter={"queue": "dead", "max_receives": 5})
        second = make_queue("second", dead_letter={"queue": "dead", "max_receives": 5})
        second.add_receiver("copy")
        first.send("a")
        give_up(first, "odd")
        world.clock.pass_seconds(100)
        first.send("b")
        give_up(first, "worse")
        second.send("c")
        world.settle()
        give_up(second, "odd")
        give_up(second, "odd", receiver="copy")
        dead.send("never dead")
        world.clock.pass_seconds(10)
        assert bodies(dead) == ["a", "b", "c", "c", "never dead"]
        assert bodies(dead, reason="odd") == ["a", "c", "c"]
        assert bodies(dead, source_queue="first") == ["a", "b"]
        assert bodies(dead, source_queue="first", reason="odd") == ["a"]
        assert bodies(dead, receiver="copy") == ["c"]
        assert bodies(dead, older_than_seconds=11) == ["a"]
        assert bodies(dead, younger_than_seconds=11) == ["b", "c", "c"]
        assert bodies(dead, older_than_seconds=0) == ["a", "b", "c", "c"]
        assert bodies(dead, older_than_seconds=5, younger_than_seconds=6) == []

    def test_a_subscriptions_are_chosen_by_its_topic_and_name(
        self, topic: TestTopic, dead: TestQueue
    ) -> None:
        for name in ("one", "two"):
            group = topic.subscribe(name, dead_letter_queue="dead", filter={"tags": [name]})
            topic.publish(name, tags=[name])
            give_up(group, "odd")
        assert bodies(dead, source_queue="news") == ["one", "two"]
        assert bodies(dead, subscription="two") == ["two"]

    def test_young_ones_are_found_behind_old_ones_without_reading_them(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        dead = make_queue("dead", partitions=1)
        queue = make_queue("orders", dead_letter={"queue": "dead", "max_receives": 5})
        for _ in range(60):
            queue.send("old" * 100)
        give_up(queue, "odd")
        world.clock.pass_seconds(1_000)
        queue.send("young")
        give_up(queue, "odd")
        world.engine.reset_capacity()
        assert bodies(dead, younger_than_seconds=60) == ["young"]
        used = world.engine.capacity()["by_table"][world.tables.messages]["read_units"]
        assert used <= 2


def test_a_groups_messages_are_shown_page_by_page(topic: TestTopic) -> None:
    group = topic.subscribe("group")
    for number in range(20):
        topic.publish(str(number))
    found = [each["body"] for page in pages(group, max=3) for each in page]
    assert sorted(found, key=int) == [str(number) for number in range(20)]


def test_a_cursor_is_of_its_queue_alone(make_queue: MakeQueue) -> None:
    queue, other = make_queue("orders"), make_queue("other")
    queue.client.send("orders", "x", "y")
    path = f"{queue.path}/messages/peek"
    cursor = queue.client.post(path, {"max": 1}).json["cursor"]
    forged = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
    for reply in (
        queue.client.post(path, {"cursor": forged}),
        queue.client.post(f"{other.path}/messages/peek", {"cursor": cursor}),
    ):
        assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "cursor")
