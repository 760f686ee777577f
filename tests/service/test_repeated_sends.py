"""Sending once what is sent twice: attempts and deduplication ids."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from tests.service.conftest import MakeQueue, TestQueue, usage
from tests.service.crashes import before_each_call

from cirrusmq.base import ulid
from cirrusmq_local.engine import EngineError
from cirrusmq_local.testing import World


def attempt(world: World, seconds: float = 0, entropy: int = 1) -> str:
    """A ULID made `seconds` from now."""
    at_ms = world.clock.now_ms() + round(seconds * 1000)
    return ulid.encode(at_ms, random.Random(entropy).randbytes(10))


def text(size: int, seed: int = 1) -> str:
    """A body that does not become much smaller when it is packed."""
    return random.Random(seed).randbytes(size // 2).hex()


@pytest.fixture
def token(world: World) -> str:
    """An attempt that begins with the test."""
    return attempt(world)


LARGE = [{"body": text(5_000)}]
MESSAGES: list[dict[str, Any]] = [
    {"body": "a", "tags": ["t"]},
    {"body": "b", "attributes": {"x": "1", "y": "2"}},
]


class TestAttempts:
    def test_a_repeat_stores_nothing_and_answers_the_same(
        self, world: World, queue: TestQueue, token: str
    ) -> None:
        first = queue.try_send(MESSAGES, attempt=token)
        before = world.items()
        world.clock.pass_seconds(100)

        second = queue.try_send(MESSAGES, attempt=token)

        assert (first.status, second.status) == (201, 201)
        assert second.json == first.json
        assert world.items() == before
        assert queue.bodies() == ["a", "b"]

    @pytest.mark.parametrize("size", [1, 5_000])
    def test_a_repeat_finds_held_or_partly_deleted_messages(
        self, world: World, queue: TestQueue, token: str, size: int
    ) -> None:
        messages = [{"body": "a" * size}, {"body": "b" * size, "delay_seconds": 1}]
        first = queue.try_send(messages, attempt=token)
        world.clock.pass_seconds(1)
        held = queue.receive_all()
        queue.delete(held[0])

        assert (
            queue.try_send(messages, attempt=token).json["messages"][1]
            == (first.json["messages"][1])
        )

        world.clock.pass_seconds(30)
        ids = [message["id"] for message in queue.receive_all()]
        assert len(ids) == len(set(ids))
        assert set(ids) <= {each["id"] for each in first.json["messages"]}

    def test_consumed_messages_come_again_under_the_same_id(
        self, queue: TestQueue, token: str
    ) -> None:
        first = queue.try_send(MESSAGES, attempt=token)
        queue.delete(*queue.receive_all())

        second = queue.try_send(MESSAGES, attempt=token)

        assert [each["id"] for each in second.json["messages"]] == [
            each["id"] for each in first.json["messages"]
        ]
        assert queue.bodies() == ["a", "b"]

    @pytest.mark.parametrize("seconds", [-120.001, 2.001])
    def test_another_time_is_refused_telling_the_servers(
        self, world: World, queue: TestQueue, seconds: float
    ) -> None:
        reply = queue.try_send(MESSAGES, attempt=attempt(world, seconds))

        assert (reply.code, reply.json["parameter"]) == ("InvalidParameter", "attempt")
        assert "2026-11-18T11:06:40.000Z" in reply.json["detail"]
        assert world.items() == []

    def test_another_request_is_another_send(self, queue: TestQueue, token: str) -> None:
        ids = set()
        for messages in (MESSAGES, MESSAGES[:1], [{"body": "b"}]):
            sent = queue.try_send(messages, attempt=token).json["messages"]
            ids |= {each["id"] for each in sent}

        assert len(ids) == 4
        assert queue.bodies() == ["a", "a", "b", "b"]

    def test_another_queues_send_is_another_send(self, make_queue: MakeQueue, token: str) -> None:
        ids = {
            make_queue(name).try_send(MESSAGES, attempt=token).json["messages"][0]["id"]
            for name in ("one", "two")
        }
        assert len(ids) == 2

    def test_the_order_of_fields_does_not_count(self, queue: TestQueue, token: str) -> None:
        queue.try_send(MESSAGES, attempt=token)

        again = [
            {"tags": ["t"], "body": "a"},
            {"attributes": {"y": "2", "x": "1"}, "body": "b"},
        ]
        queue.try_send(again, attempt=token)

        assert queue.bodies() == ["a", "b"]

    def test_times_are_the_servers_whatever_the_attempt_says(
        self, world: World, queue: TestQueue
    ) -> None:
        for number, seconds in enumerate((-120, 2)):
            token = attempt(world, seconds, number)
            queue.try_send([{"body": "x", "delay_seconds": 10}], attempt=token)

        world.clock.pass_seconds(9.999)
        assert queue.receive() == []
        world.clock.pass_seconds(0.001)
        received = queue.receive_all()
        assert len(received) == 2
        assert {message["sent_at"] for message in received} == {"2026-11-18T11:06:40.000Z"}

    def test_a_repeat_finds_the_first_after_the_partitions_grew(
        self, world: World, queue: TestQueue
    ) -> None:
        sends = [attempt(world, -number / 10, number) for number in range(40)]
        for number, token in enumerate(sends):
            queue.try_send([{"body": f"{number}"}], attempt=token)
        for partitions in (5, 50, 255):
            queue.patch(partitions=partitions)
            world.clock.pass_seconds(10)
            for number, token in enumerate(sends):
                queue.try_send([{"body": f"{number}"}], attempt=token)

        assert len(queue.receive_all()) == 40

    def test_a_repeat_after_the_delay_changed_tells_the_same_duplicates(
        self, world: World, queue: TestQueue
    ) -> None:
        """The first one's messages are found under their key, but some were another's."""
        queue.try_send([{"body": "earlier", "deduplication_id": "1"}])
        messages = [
            {"body": "a", "deduplication_id": "0"},
            {"body": "b", "deduplication_id": "1"},
            {"body": "c"},
            {"body": "d", "deduplication_id": "0"},
        ]
        token = attempt(world)
        first = queue.try_send(messages, attempt=token)
        world.clock.pass_seconds(1)
        queue.patch(delay_seconds=5)
        world.clock.pass_seconds(1)
        before = world.items()

        second = queue.try_send(messages, attempt=token)

        assert second.json == first.json
        assert world.items() == before

    def test_a_repeat_finds_the_first_after_the_delay_changed(
        self, world: World, queue: TestQueue, token: str
    ) -> None:
        first = queue.try_send(MESSAGES, attempt=token)
        queue.patch(delay_seconds=5)

        second = queue.try_send(MESSAGES, attempt=token)

        assert second.json == first.json
        world.clock.pass_seconds(5)
        assert queue.bodies() == ["a", "b"]

    @pytest.mark.parametrize("size", [1, 2_000])
    def test_a_repeat_finds_messages_moved_to_a_retrys_wait(
        self, world: World, queue: TestQueue, token: str, size: int
    ) -> None:
        queue.try_send([{"body": "x" * size}], attempt=token)
        queue.give_back(*queue.receive(), delay_seconds=100)
        world.clock.pass_seconds(99)

        queue.try_send([{"body": "x" * size}], attempt=token)

        assert queue.receive_all() == []
        world.clock.pass_seconds(1)
        assert len(queue.receive_all()) == 1

    def test_the_memory_of_moved_messages_is_cleared_when_no_attempt_can_be_so_old(
        self, world: World, queue: TestQueue
    ) -> None:
        queue.try_send([{"body": "x"}], attempt=attempt(world))
        queue.give_back(*queue.receive(), delay_seconds=100)
        world.clock.pass_seconds(200)

        queue.delete(*queue.receive_all())
        queue.receive_all()
        world.settle()

        assert world.items() == []

    def test_a_repeat_finds_messages_among_the_dead_letters(
        self, make_queue: MakeQueue, dead: TestQueue, token: str
    ) -> None:
        queue = make_queue(dead_letter={"queue": "dead", "max_receives": 1})
        queue.try_send([{"body": "x"}], attempt=token)
        queue.act("dead-letter", *queue.receive())

        queue.try_send([{"body": "x"}], attempt=token)

        assert queue.receive_all() == []
        assert len(dead.receive_all()) == 1

    def test_an_attempt_keeps_the_first_answer_with_deduplication_ids(
        self, queue: TestQueue, token: str
    ) -> None:
        (earlier,) = queue.send("earlier", deduplication_id="k")
        messages = [{"body": "a"}, {"body": "b", "deduplication_id": "k"}]

        first = queue.try_send(messages, attempt=token)
        second = queue.try_send(messages, attempt=token)

        assert second.json == first.json
        assert first.json["messages"][1]["id"] == earlier["id"]
        assert queue.bodies() == ["a", "earlier"]

    @pytest.mark.parametrize("size", [1, 5_000])
    def test_a_message_keeps_its_id_whichever_others_of_its_batch_are_duplicates(
        self, queue: TestQueue, token: str, size: int
    ) -> None:
        (earlier,) = queue.send("earlier", deduplication_id="b")
        bodies = [letter + text(size, seed) for seed, letter in enumerate("abc")]
        messages: list[dict[str, Any]] = [{"body": body} for body in bodies]
        messages[0]["deduplication_id"], messages[1]["deduplication_id"] = "a", "b"
        first = queue.try_send(messages, attempt=token).json

        second = queue.try_send(messages, attempt=token).json

        assert second == first
        ids = [each["id"] for each in first["messages"]]
        assert ids[1] == earlier["id"]
        received = {message["id"]: message["body"] for message in queue.receive_all()}
        assert received == dict(zip(ids, [bodies[0], "earlier", bodies[2]], strict=True))

    @pytest.mark.parametrize("receivers", [0, 1])
    @pytest.mark.parametrize("fields", [{}, {"deduplication_id": "k"}])
    @pytest.mark.parametrize("size", [2, 1_000])
    def test_not_atomic_a_message_refused_at_first_is_never_answered_as_stored(
        self,
        world: World,
        make_queue: MakeQueue,
        size: int,
        fields: dict[str, Any],
        receivers: int,
    ) -> None:
        queue, token = make_queue(max_message_bytes=1_024), attempt(world)
        for number in range(receivers):
            queue.add_receiver(f"r{number}")
        messages = [{"body": "x" * 1_025}, {"body": text(size), **fields}]
        first = queue.try_send(messages, attempt=token, atomic=False).json["messages"]
        queue.patch(max_message_bytes=2_048)

        second = queue.try_send(messages, attempt=token, atomic=False).json["messages"]

        assert first[0]["error"]["code"] == "MessageTooLarge"
        assert (second[0]["error"]["code"], second[1]) == ("InvalidParameter", first[1])
        assert queue.bodies() == [text(size)]

    def test_not_atomic_a_duplicate_of_a_message_refused_at_first_is_refused_like_it(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue, token = make_queue(max_message_bytes=1_024), attempt(world)
        large = {"body": "x" * 1_025, "deduplication_id": "k"}
        messages = [large, {"body": "small"}, large]
        queue.try_send(messages, attempt=token, atomic=False)
        queue.patch(max_message_bytes=2_048)

        again = queue.try_send(messages, attempt=token, atomic=False).json["messages"]

        assert [each.get("error", {}).get("code") for each in again] == [
            "InvalidParameter",
            None,
            "InvalidParameter",
        ]
        assert queue.bodies() == ["small"]

    @pytest.mark.parametrize("size", [1, 5_000])
    def test_not_atomic_a_message_refused_at_first_is_stored_if_it_has_its_own_key(
        self, world: World, make_queue: MakeQueue, size: int
    ) -> None:
        queue, token = make_queue(message_retention_seconds=60), attempt(world)
        messages = [
            {"body": "0" + text(size), "delay_seconds": 60},
            {"body": "1" + text(size), "delay_seconds": 1},
        ]
        first = queue.try_send(messages, attempt=token, atomic=False).json["messages"]
        queue.patch(message_retention_seconds=600)

        second = queue.try_send(messages, attempt=token, atomic=False).json["messages"]
        world.clock.pass_seconds(60)

        assert first[0]["error"]["code"] == "InvalidParameter"
        assert second[1] == first[1]
        (received,) = queue.receive_all()
        assert (received["id"], received["body"][0]) == (second[0]["id"], "0")

    def test_receivers_get_a_batch_without_its_duplicates(
        self, world: World, queue: TestQueue
    ) -> None:
        queue.add_receiver("r")
        queue.send("earlier", deduplication_id="b")
        messages = [{"body": "b", "deduplication_id": "b"}, {"body": "c"}, {"body": "d"}]
        sent = queue.try_send(messages).json["messages"]
        world.settle()

        received = {message["id"]: message["body"] for message in queue.receive_all(receiver="r")}
        bodies = ["earlier", "c", "d"]
        assert received == {each["id"]: body for each, body in zip(sent, bodies, strict=True)}


class TestAfterACrash:
    """The first try died between its log record and its parcel."""

    @pytest.fixture
    def crashed(
        self, world: World, make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
    ) -> TestQueue:
        queue = make_queue(message_retention_seconds=60)

        def fail(operation: str, request: Mapping[str, Any]) -> None:
            if operation == "PutItem" and request["Item"]["pk"]["S"].startswith("Q#"):
                raise EngineError("InternalServerError", "the store is broken", status=500)

        with monkeypatch.context() as patch:
            before_each_call(world, patch, fail)
            assert queue.try_send(LARGE, attempt=attempt(world)).status == 503
        assert len(world.items()) == 1
        return queue

    @pytest.mark.parametrize("seconds", [0, 60, 110])
    def test_a_repeat_stores_for_whoever_receives_since(
        self, world: World, crashed: TestQueue, token: str, seconds: float
    ) -> None:
        crashed.patch(message_retention_seconds=86_400)
        crashed.add_receiver("r")
        world.clock.pass_seconds(seconds)
        first = crashed.try_send(LARGE, attempt=token)
        assert crashed.try_send(LARGE, attempt=token).json == first.json
        world.settle()
        world.clock.pass_seconds(300)
        world.run("sweep")
        world.engine.remove_expired()

        for receiver in ("default", "r"):
            (received,) = crashed.receive_all(receiver=receiver)
            assert received["body"] == LARGE[0]["body"]
            assert received["id"] == first.json["messages"][0]["id"]

    @pytest.mark.parametrize("receivers", [0, 1])
    def test_a_repeat_stores_if_the_leftover_goes_meanwhile(
        self,
        world: World,
        crashed: TestQueue,
        monkeypatch: pytest.MonkeyPatch,
        receivers: int,
    ) -> None:
        token = attempt(world)
        for number in range(receivers):
            crashed.add_receiver(f"r{number}")
        crashed.patch(message_retention_seconds=86_400)
        execute = world.engine.execute
        refused: list[str] = []

        def vanish(operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
            try:
                return execute(operation, request)
            except EngineError:
                if not refused:
                    (left,) = world.items()
                    place = {name: left[name] for name in ("pk", "sk")}
                    execute("DeleteItem", {"TableName": world.tables.messages, "Key": place})
                refused.append(operation)
                raise

        monkeypatch.setattr(world.engine, "execute", vanish)

        assert crashed.try_send(LARGE, attempt=token).status == 201
        assert len(refused) == 2
        assert crashed.bodies() == [LARGE[0]["body"]]

    def test_a_repeat_lives_as_long_as_the_retention_is_by_then(
        self, world: World, crashed: TestQueue, token: str
    ) -> None:
        crashed.patch(message_retention_seconds=86_400)
        assert crashed.try_send(LARGE, attempt=token).status == 201
        world.clock.pass_seconds(86_399)
        world.engine.remove_expired()

        assert crashed.bodies() == [LARGE[0]["body"]]

    def test_a_shorter_retention_takes_no_body_from_the_first_send(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue, token = make_queue(message_retention_seconds=86_400), attempt(world)
        queue.try_send(LARGE, attempt=token)
        queue.patch(message_retention_seconds=60)
        queue.try_send(LARGE, attempt=token)
        world.clock.pass_seconds(86_399)
        world.engine.remove_expired()

        assert queue.bodies() == [LARGE[0]["body"]]


class TestDeduplication:
    @pytest.mark.parametrize("size", [1, 60_000])
    def test_two_sends_with_one_id_store_one_message(self, queue: TestQueue, size: int) -> None:
        (first,) = queue.send("1" * size, deduplication_id="k")

        (second,) = queue.send("2" * size, deduplication_id="k")

        assert second == first
        assert queue.bodies() == ["1" * size]

    @pytest.mark.parametrize(("seconds", "stored"), [(299.999, 1), (300, 2)])
    def test_an_id_counts_for_5_minutes(
        self, world: World, queue: TestQueue, seconds: float, stored: int
    ) -> None:
        queue.send("x", deduplication_id="k")
        world.clock.pass_seconds(seconds)

        queue.send("x", deduplication_id="k")

        assert len(queue.receive_all()) == stored

    def test_the_second_answers_the_id_of_a_consumed_first(
        self, world: World, queue: TestQueue
    ) -> None:
        (first,) = queue.send("x", deduplication_id="k")
        queue.delete(*queue.receive())
        before = world.items()

        assert queue.send("x", deduplication_id="k") == [first]

        assert world.items() == before
        assert queue.receive() == []

    def test_inside_one_batch_the_second_answers_the_firsts_id(self, queue: TestQueue) -> None:
        def message(body: str, key: str) -> dict[str, Any]:
            return {"body": body, "deduplication_id": key}

        sent = queue.try_send(
            [message("a", "k"), message("b", "l"), message("c", "k"), {"body": "d"}]
        ).json["messages"]

        assert sent[2] == sent[0]
        assert len({each["id"] for each in sent}) == 3
        assert queue.bodies() == ["a", "b", "d"]

    def test_some_of_a_batch_may_be_known(self, queue: TestQueue) -> None:
        (known,) = queue.send("old", deduplication_id="k")

        sent = queue.try_send(
            [{"body": "new"}, {"body": "dup", "deduplication_id": "k"}, {"body": "newer"}]
        ).json["messages"]

        assert sent[1] == known
        received = {message["id"]: message["body"] for message in queue.receive_all()}
        assert received == {sent[0]["id"]: "new", sent[1]["id"]: "old", sent[2]["id"]: "newer"}

    def test_ids_are_of_one_queue(self, make_queue: MakeQueue) -> None:
        one, two = make_queue("one"), make_queue("two")
        one.send("x", deduplication_id="k")
        two.send("x", deduplication_id="k")

        assert len(one.receive_all()) == len(two.receive_all()) == 1

    def test_an_id_may_have_1_to_128_characters(self, queue: TestQueue) -> None:
        for key in ("k", "é" * 128):
            assert queue.try_send([{"body": "x", "deduplication_id": key}]).status == 201

    def test_a_new_queue_of_the_name_knows_no_ids(self, make_queue: MakeQueue) -> None:
        queue = make_queue()
        queue.send("x", deduplication_id="k")
        queue.client.delete(queue.path)

        again = make_queue()
        again.send("y", deduplication_id="k")

        assert again.bodies() == ["y"]


class TestLongOnTheirWay:
    """Sends whose attempt is more than a second old: stored under a later key."""

    @pytest.mark.parametrize("size", [1, 3_000])
    def test_a_late_send_is_stored_once_however_often_it_is_repeated(
        self, world: World, queue: TestQueue, size: int
    ) -> None:
        attempt = ulid.encode(world.clock.now_ms(), bytes(10))
        messages = [{"body": "a" * size}, {"body": "b" * size}, {"body": "c", "delay_seconds": 9}]
        world.clock.pass_seconds(5)
        first = queue.try_send(messages, attempt=attempt)
        assert first.status == 201
        for _ in range(3):
            world.clock.pass_seconds(10)
            again = queue.try_send(messages, attempt=attempt)
            assert again.json == first.json
        received = queue.receive_all(visibility_timeout_seconds=1_000)
        assert sorted(message["body"][0] for message in received) == ["a", "b", "c"]
        assert {m["id"] for m in received} == {m["id"] for m in first.json["messages"]}
        queue.delete(*received)
        assert queue.try_send(messages, attempt=attempt).json == first.json
        assert queue.receive() == []
        world.settle()
        assert usage(world) == {
            "queue:orders deleted": 3,
            "queue:orders received": 3,
            "queue:orders sent": 3,
        }

    def test_it_costs_four_write_units(self, world: World, queue: TestQueue) -> None:
        attempt = ulid.encode(world.clock.now_ms() - 60_000, bytes(10))

        units = world.write_units(lambda: queue.try_send([{"body": "x"}], attempt=attempt))

        assert units == 4
