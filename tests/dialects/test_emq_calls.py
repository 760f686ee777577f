"""EMQ's calls beside the native ones: what one makes, the other sees."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dialects.conftest import Key, MakeKey
from tests.dialects.emq_wire import Emq, fields

from cirrusmq_local.testing import Client, World

Q = (1, "shop/q")


@pytest.fixture
def emq(world: World, key: Key) -> Emq:
    """A program with a queue `q` that it made."""
    emq = Emq(world, key)
    emq.queue("createQueue", (1, "q"))
    return emq


def bodies(received: list[dict[int, Any]]) -> list[str]:
    return [each[3] for each in received]


class TestQueues:
    def test_a_queue_is_made_with_emqs_defaults(self, emq: Emq, shop: Client) -> None:
        made = shop.get("/queues/q").json

        assert made["message_retention_seconds"] == 345_600
        assert made["max_message_bytes"] == 262_144
        assert (made["receive_wait_seconds"], made["visibility_timeout_seconds"]) == (0, 30)

    def test_omitted_and_out_of_range_0_attributes_stay(self, emq: Emq, shop: Client) -> None:
        shop.patch("/queues/q", {"delay_seconds": 5, "labels": {"a": "b"}})
        emq.queue("setQueueAttribute", Q, (2, fields((1, 0), (2, 0), (3, 7), (5, 600))))

        made = shop.get("/queues/q").json
        assert (made["delay_seconds"], made["visibility_timeout_seconds"]) == (0, 30)
        assert (made["receive_wait_seconds"], made["message_retention_seconds"]) == (7, 600)
        assert made["labels"] == {"a": "b"}

    def test_a_policy_of_sqs_stays_beside_emqs_texts(self, emq: Emq, sqs: Any) -> None:
        url = sqs.get_queue_url(QueueName="q")["QueueUrl"]
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"KmsMasterKeyId": "alias/x"})
        emq.queue("setQueueAttribute", Q, (2, fields((4, 3))))
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "50"})

        told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        assert told["KmsMasterKeyId"] == "alias/x"
        assert not [name for name in told if name.startswith("Emq")]
        info = emq.queue("getQueueInfo", Q)[2]
        assert (info[2], info[4]) == (50, 3)

    def test_a_partner_works_by_its_grant(self, emq: Emq, make_key: MakeKey, world: World) -> None:
        partner = Emq(world, make_key("partner"))
        emq.queue("setPermission", Q, (2, "partner"), (3, 3))

        partner.message("sendMessage", Q, (2, "from afar"))
        (got,) = emq.message("receiveMessage", Q, (3, 0))
        assert got[4]["senderId"] == "partner"
        assert partner.queue("queryPermission", Q) == {1: 3}
        assert partner.code("queue", "getQueueInfo", Q) == 13
        emq.queue("setPermission", Q, (2, "partner"), (3, 0))
        assert partner.code("message", "sendMessage", Q, (2, "x")) == 13


class TestTags:
    def test_a_tag_is_a_receiver(self, emq: Emq, shop: Client) -> None:
        value = fields((1, "STRING"), (2, "it's"))
        emq.queue("createTag", Q, (2, "t"), (5, "kind"), (6, value), (7, {"a": "b"}))

        made = shop.get("/queues/q/receivers/t").json
        assert made["filter"] == {"sql": "kind = 'it''s'"}
        assert made["labels"] == {"a": "b"}
        told = emq.queue("getTagInfo", Q, (2, "t"))
        assert (told[6], told[7][2], told[8]) == ("kind", "it's", {"a": "b"})

    def test_a_repeated_call_ends_a_half_done_one(self, emq: Emq, shop: Client) -> None:
        assert shop.put("/queues/q/receivers/t", {}).status == 201

        emq.queue("createTag", Q, (2, "t"), (7, {"a": "b"}))
        assert shop.get("/queues/q/receivers/t").json["labels"] == {"a": "b"}
        assert emq.code("queue", "createTag", Q, (2, "t"), (7, {"a": "c"})) == 12

    def test_the_default_tag_has_a_name(self, emq: Emq) -> None:
        emq.queue("createQueue", (1, "named"), (8, "main"))
        named = (1, "shop/named")
        emq.message("sendMessage", named, (2, "x"))

        assert bodies(emq.message("receiveMessage", named, (3, 0), (6, "main"))) == ["x"]
        assert emq.queue("getTagInfo", named, (2, "main"))[2] == "main"


class TestMessages:
    def test_types_of_attributes_come_back(self, emq: Emq, shop: Client) -> None:
        given = {
            "a": fields((1, "STRING"), (2, "v")),
            "b": fields((1, "binary.gz"), (3, "\0\1")),
            "c d": fields((1, "STRING.int"), (2, "5")),
        }
        emq.message("sendMessage", Q, (2, "x"), (5, given))
        shop.post("/queues/q/messages", {"messages": [{"body_base64": "AAH/"}]})

        received = emq.message("receiveMessage", Q, (3, 0))
        told = {each[3]: each[5] for each in received}
        assert told["x"] == {
            "a": {1: "STRING", 2: "v"},
            "b": {1: "binary.gz", 3: "\0\1"},
            "c d": {1: "STRING.int", 2: "5"},
        }
        assert told["AAH/"] == {}

    def test_a_receive_has_16_messages_or_the_limit_of_the_queue(self, emq: Emq) -> None:
        for _ in range(2):
            entries = [fields((1, str(number)), (2, "x")) for number in range(16)]
            emq.message("sendMessageBatch", Q, (2, entries))

        received = emq.message("receiveMessage", Q, (2, 100), (3, 0))
        assert 1 <= len(received) <= 16
        emq.queue("setQueueAttribute", Q, (2, fields((4, 1))))
        assert len(emq.message("receiveMessage", Q, (2, 100), (3, 0))) == 1

    def test_expired_handles_do_nothing_and_are_no_error(self, emq: Emq, world: World) -> None:
        emq.message("sendMessage", Q, (2, "x"), (4, 2))
        (first,) = emq.message("receiveMessage", Q, (3, 0))
        world.clock.pass_seconds(3)
        (second,) = emq.message("receiveMessage", Q, (3, 0))

        for handle in (first[2], "junk"):
            emq.message("deleteMessage", Q, (2, handle))
            emq.message("deadMessage", Q, (2, handle))
            emq.message("changeMessageVisibilitySeconds", Q, (2, handle), (3, 0))
        assert emq.message("receiveMessage", Q, (3, 0)) == []
        assert second[4]["receiveCount"] == "2"
        assert second[4]["firstReceiveTimestamp"] == first[4]["firstReceiveTimestamp"]

    def test_more_handles_than_a_native_call_has_are_settled(self, emq: Emq) -> None:
        handles = [fields((1, f"handle-{number}")) for number in range(40)]

        answer = emq.message("deleteMessageBatch", Q, (2, handles))
        assert (len(answer[1]), answer[2]) == (40, [])

    def test_a_dead_message_without_a_dead_letter_queue_is_told(self, emq: Emq) -> None:
        emq.message("sendMessage", Q, (2, "x"))
        (got,) = emq.message("receiveMessage", Q, (3, 0))

        assert emq.code("message", "deadMessage", Q, (2, got[2])) == 2
        answer = emq.message("deadMessageBatch", Q, (2, [fields((1, got[2]))]))
        assert (answer[1], answer[2][0][1], answer[2][0][2][1]) == ([], got[2], 2)

    def test_a_topic_queue_needs_a_topic(self, emq: Emq) -> None:
        emq.queue("createQueue", (1, "t"), (6, True))

        assert emq.code("message", "sendMessage", (1, "shop/t"), (2, "x")) == 2
        emq.message("sendMessage", (1, "shop/t"), (2, "x"), (3, 0), (6, "a"))
        assert emq.code("queue", "createQueue", (1, "both"), (5, True), (6, True)) == 2

    def test_a_receive_by_an_attribute_finds_it_among_others(self, emq: Emq) -> None:
        for number in range(40):
            value = fields((1, "STRING"), (2, str(number % 20)))
            emq.message("sendMessage", Q, (2, str(number)), (5, {"n": value}))

        wanted = (5, fields((1, "STRING"), (2, "7")))
        found = emq.message("receiveMessage", Q, (3, 5), (4, "n"), wanted)
        assert sorted(bodies(found)) == ["27", "7"]
