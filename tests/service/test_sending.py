"""Sending: batches, sizes, bodies and attributes."""

from __future__ import annotations

import base64
import hashlib
import random

import pytest
from tests.service.conftest import MakeQueue, TestQueue
from tests.service.test_costs import b64

from cirrusmq_local.testing import World


def test_answers_come_in_the_order_sent(queue: TestQueue) -> None:
    sent = queue.send(*"ponmlkjihgfedcba")

    assert [each["body_md5"] for each in sent] == [
        hashlib.md5(body.encode()).hexdigest() for body in "ponmlkjihgfedcba"
    ]
    received = {message["id"]: message["body"] for message in queue.receive_all()}
    assert [received[each["id"]] for each in sent] == list("ponmlkjihgfedcba")


def test_an_answer_has_the_id_the_md5_and_the_time(queue: TestQueue) -> None:
    reply = queue.try_send([{"body": "é"}])

    assert reply.status == 201
    (sent,) = reply.json["messages"]
    assert sent.keys() == {"id", "body_md5", "sent_at"}
    assert sent["body_md5"] == hashlib.md5("é".encode()).hexdigest()


class TestBodies:
    BODIES = (
        "x",
        " \t\r\n",
        "\0\x01\x1f\x7f",
        '"\\/',
        "é ü 漢字 🐘 \u2028 \ufeff",
        "e\u0301",
        "A" * 65_536,
        "".join(map(chr, range(1, 2_000))),
    )

    @pytest.mark.parametrize("body", BODIES)
    def test_text_comes_back_byte_for_byte(self, queue: TestQueue, body: str) -> None:
        queue.send(body)

        (message,) = queue.receive()

        assert message["body"] == body
        assert "body_base64" not in message

    @pytest.mark.parametrize(
        "body", [b"\0", bytes(range(256)) * 200, b"text", "é".encode(), b"\xff\xfe"]
    )
    def test_bytes_come_back_as_bytes(self, queue: TestQueue, body: bytes) -> None:
        (sent,) = queue.try_send([{"body_base64": b64(body)}]).json["messages"]

        (message,) = queue.receive()

        assert base64.b64decode(message["body_base64"]) == body
        assert "body" not in message
        assert sent["body_md5"] == hashlib.md5(body).hexdigest()

    def test_random_bytes_survive_every_way_of_storing(self, queue: TestQueue) -> None:
        chance = random.Random(1)
        bodies = [chance.randbytes(size) for size in (1, 100, 500, 900, 1_100, 5_000, 60_000)]
        for body in bodies:
            queue.try_send([{"body_base64": b64(body)}])
        queue.try_send([{"body_base64": b64(body)} for body in bodies])

        got = [base64.b64decode(message["body_base64"]) for message in queue.receive_all()]

        assert sorted(got) == sorted(bodies * 2)


class TestAttributesAndTags:
    def test_they_come_back_as_they_were_sent(self, queue: TestQueue) -> None:
        attributes = {
            "text": "é",
            "empty": "",
            "bytes": {"base64": b64(bytes(range(256)))},
            "_$a9": "v",
            "_": "x" * 1_024,
            "Z" * 64: {"base64": ""},
        }
        tags = ["a", "b" * 16, "ü"]
        queue.send("body", attributes=attributes, tags=tags)

        (message,) = queue.receive()

        assert message["attributes"] == attributes
        assert message["tags"] == tags

    def test_there_may_be_10_of_each(self, queue: TestQueue) -> None:
        attributes = {f"a{number}": str(number) for number in range(10)}
        tags = [f"t{number}" for number in range(10)]

        assert queue.try_send([{"body": "x", "attributes": attributes, "tags": tags}]).status == 201

    def test_a_group_comes_back_in_an_unordered_queue_too(self, queue: TestQueue) -> None:
        queue.try_send([{"body": "x", "group": "g" * 128}, {"body": "y"}])

        groups = {message["body"]: message.get("group") for message in queue.receive_all()}

        assert groups == {"x": "g" * 128, "y": None}


class TestSizes:
    @pytest.mark.few(6)
    @pytest.mark.parametrize("limit", [1_024, 65_536, 262_144, 4_194_304])
    def test_a_body_may_have_exactly_max_message_bytes(
        self, world: World, make_queue: MakeQueue, limit: int
    ) -> None:
        queue = make_queue(max_message_bytes=limit)
        assert queue.try_send([{"body": "x" * limit}]).status == 201
        before = world.items()

        for body in ("x" * (limit + 1), "é" * (limit // 2) + "x"):
            reply = queue.try_send([{"body": body}])
            expected = "MessageTooLarge" if len(body.encode()) <= 4_194_304 else "BatchTooLarge"
            assert (reply.status, reply.code) == (413, expected)
        assert world.items() == before
        assert [len(message["body"]) for message in queue.receive()] == [limit]

    def test_only_the_body_counts_towards_max_message_bytes(self, make_queue: MakeQueue) -> None:
        queue = make_queue(max_message_bytes=1_024)

        message = {"body": "x" * 1_024, "attributes": {"a": "y" * 1_024}, "tags": ["t"]}

        assert queue.try_send([message]).status == 201

    def test_a_batch_has_4_mib_of_bodies_attributes_and_tags(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(max_message_bytes=4_194_304)
        extra = {"attributes": {"name": "value"}, "tags": ["tag"]}  # 12 bytes
        fits = [{"body": "x" * 2_097_152}, {"body": "x" * (2_097_152 - 12), **extra}]
        assert queue.try_send(fits).status == 201
        before = world.items()

        beyond = [{"body": "x" * 2_097_152}, {"body": "x" * (2_097_152 - 11), **extra}]
        for atomic in (True, False):
            reply = queue.try_send(beyond, atomic=atomic)
            assert (reply.status, reply.code) == (413, "BatchTooLarge")
        assert world.items() == before

    def test_of_both_the_batchs_error_comes_first(self, make_queue: MakeQueue) -> None:
        queue = make_queue(max_message_bytes=1_024)

        assert queue.try_send([{"body": "x" * 1_025}]).code == "MessageTooLarge"
        assert queue.try_send([{"body": "x" * 4_194_305}]).code == "BatchTooLarge"
        assert queue.try_send([{"body": "x" * 1_025}] * 17).code == "BatchTooLarge"

    def test_a_full_batch_of_incompressible_bytes_is_kept(self, make_queue: MakeQueue) -> None:
        queue = make_queue(max_message_bytes=262_144)
        body = random.Random(3).randbytes(262_144)

        assert queue.try_send([{"body_base64": b64(body)}]).status == 201

        (message,) = queue.receive()
        assert base64.b64decode(message["body_base64"]) == body


BAD = {"body": "x" * 2_000}


class TestAtomicity:
    def test_one_bad_message_refuses_an_atomic_batch(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(max_message_bytes=1_024)

        reply = queue.try_send([{"body": "fine"}, BAD])

        assert reply.code == "MessageTooLarge"
        assert world.items() == []

    def test_without_atomic_size_delay_and_group_are_judged_per_entry(
        self, make_queue: MakeQueue
    ) -> None:
        queue = make_queue(max_message_bytes=1_024, message_retention_seconds=100)

        reply = queue.try_send(
            [{"body": "a"}, BAD, {"body": "b"}, {"body": "c", "delay_seconds": 100}],
            atomic=False,
        )

        assert reply.status == 200
        entries = reply.json["messages"]
        codes = [entry.get("error", {}).get("code") for entry in entries]
        assert codes == [None, "MessageTooLarge", None, "InvalidParameter"]
        error = entries[1]["error"]
        assert error["status"] == 413
        assert error["parameter"] == "messages[1].body"
        assert error.keys() >= {"type", "title", "detail", "request_id"}
        received = {message["id"]: message["body"] for message in queue.receive_all()}
        assert received == {entries[0]["id"]: "a", entries[2]["id"]: "b"}

    def test_without_atomic_a_group_is_judged_per_entry(self, make_queue: MakeQueue) -> None:
        queue = make_queue(ordered=True)

        reply = queue.try_send([{"body": "a", "group": "g"}, {"body": "b"}], atomic=False)

        assert [entry.get("error", {}).get("parameter") for entry in reply.json["messages"]] == [
            None,
            "messages[1].group",
        ]
        assert queue.bodies() == ["a"]

    def test_without_atomic_all_may_be_refused(self, world: World, make_queue: MakeQueue) -> None:
        queue = make_queue(max_message_bytes=1_024)

        reply = queue.try_send([BAD, BAD], atomic=False)

        assert reply.status == 200
        assert all("error" in entry for entry in reply.json["messages"])
        assert world.items() == []

    def test_without_atomic_a_bad_shape_refuses_the_call(
        self, world: World, queue: TestQueue
    ) -> None:
        for bad in ({"body": ""}, {"body": "x", "tags": ["x" * 17]}, {"body": "x", "group": ""}):
            assert queue.try_send([{"body": "a"}, bad], atomic=False).code == "InvalidParameter"
        assert world.items() == []

    def test_messages_of_one_send_may_have_different_delays(
        self, world: World, queue: TestQueue
    ) -> None:
        sent = queue.try_send(
            [{"body": f"b{seconds}" * 50, "delay_seconds": seconds} for seconds in range(16)]
        ).json["messages"]
        got: list[str] = []
        for _ in range(16):
            received = queue.receive_all()
            got += [message["id"] for message in received]
            queue.delete(*received)
            world.clock.pass_seconds(1)

        assert got == [each["id"] for each in sent]
        assert world.items() == []
