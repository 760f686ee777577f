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

    def test_attributes_that_are_0_or_not_given_stay(self, emq: Emq, shop: Client) -> None:
        shop.patch("/queues/q", {"delay_seconds": 5, "labels": {"a": "b"}})
        emq.queue("setQueueAttribute", Q, (2, fields((1, 0), (2, 0), (3, 7), (5, 600))))

        made = shop.get("/queues/q").json
        assert (made["delay_seconds"], made["visibility_timeout_seconds"]) == (0, 30)
        assert (made["receive_wait_seconds"], made["message_retention_seconds"]) == (7, 600)
        assert made["labels"] == {"a": "b"}

    @pytest.mark.parametrize(
        ("number", "value"),
        [(1, 901), (2, 1), (2, 43_201), (3, 21), (4, 101), (5, 59), (6, 1_023), (7, 256), (1, -1)],
    )
    def test_attributes_out_of_their_range_are_rejected(
        self, emq: Emq, number: int, value: int
    ) -> None:
        given = (2, fields((number, value)))

        assert emq.code("queue", "setQueueAttribute", Q, given) == 2
        assert emq.code("queue", "createQueue", (1, "other"), given) == 2

    @pytest.mark.parametrize(
        ("name", "code"),
        [("", 5), ("q", 2), ("/q", 2), ("shop/", 2), ("a/b/c", 2), ("shop/a:b", 2), ("shop/?", 2)],
    )
    def test_names_of_another_form_are_rejected(self, emq: Emq, name: str, code: int) -> None:
        assert emq.code("queue", "getQueueInfo", (1, name)) == code

    def test_a_queue_that_exists_is_not_made_again(self, emq: Emq) -> None:
        assert emq.code("queue", "createQueue", (1, "shop/q")) == 4

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

    @pytest.mark.parametrize("rate", [0, 10_001, -1])
    def test_a_rate_that_is_not_possible_is_rejected(self, emq: Emq, rate: int) -> None:
        # Made as an i64, as the contract has it.
        quota = fields((2, b"\x0a\0\1" + rate.to_bytes(8, "big", signed=True) + b"\0"))

        assert emq.code("queue", "setQueueQuota", Q, (2, quota)) == 2

    def test_a_dead_letter_queue_of_another_account_is_rejected(self, emq: Emq) -> None:
        for name in ("other/d", "d", "", "shop/"):
            policy = fields((1, name), (2, 2))
            assert emq.code("queue", "setQueueRedrivePolicy", Q, (2, policy)) == 2

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

    @pytest.mark.parametrize("permission", [7, 9, 10, 11, -1])
    def test_permissions_of_two_meanings_are_rejected(self, emq: Emq, permission: int) -> None:
        assert emq.code("queue", "setPermission", Q, (2, "partner"), (3, permission)) == 2


class TestTags:
    def test_a_tag_is_a_receiver(self, emq: Emq, shop: Client) -> None:
        value = fields((1, "STRING"), (2, "it's"))
        emq.queue("createTag", Q, (2, "t"), (5, "kind"), (6, value), (7, {"a": "b"}))

        made = shop.get("/queues/q/receivers/t").json
        assert made["filter"] == {"sql": "kind = 'it''s'"}
        assert made["labels"] == {"a": "b"}
        told = emq.queue("getTagInfo", Q, (2, "t"))
        assert (told[6], told[7][2], told[8]) == ("kind", "it's", {"a": "b"})

    def test_the_same_call_ends_what_one_left_half_done(self, emq: Emq, shop: Client) -> None:
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

    @pytest.mark.parametrize(
        "given",
        [
            [(5, "a b"), (6, fields((1, "STRING"), (2, "x")))],
            [(5, "a"), (6, fields((1, "empty")))],
            [(5, "a"), (6, fields((1, "BINARY"), (3, "x")))],
            [(5, "a")],
            [(5, "AND"), (6, fields((1, "STRING"), (2, "x")))],
        ],
    )
    def test_filters_that_are_not_possible_are_rejected(
        self, emq: Emq, given: list[tuple[int, Any]]
    ) -> None:
        assert emq.code("queue", "createTag", Q, (2, "t"), *given) == 2
        assert emq.queue("listTag", Q) == {1: "shop/q", 2: []}

    def test_a_tag_that_is_not_there_is_rejected(self, emq: Emq) -> None:
        assert emq.code("message", "receiveMessage", Q, (3, 0), (6, "none")) == 2
        assert emq.code("queue", "deleteTag", Q, (2, "none")) == 2


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

    @pytest.mark.parametrize(
        "value", [fields((1, "Number"), (2, "1")), fields((1, "STRING")), fields((2, "x"))]
    )
    def test_attributes_of_no_type_or_value_are_rejected(self, emq: Emq, value: bytes) -> None:
        assert emq.code("message", "sendMessage", Q, (2, "x"), (5, {"a": value})) == 2

    @pytest.mark.parametrize(
        ("given", "code"),
        [
            ([(2, "")], 10),
            ([], 10),
            ([(2, "x"), (3, 901)], 2),
            ([(2, "x"), (4, 1)], 2),
            ([(2, "x"), (7, 3)], 2),
            ([(2, "x"), (7, 17)], 2),
        ],
    )
    def test_messages_that_are_not_possible_are_rejected(
        self, emq: Emq, given: list[tuple[int, Any]], code: int
    ) -> None:
        assert emq.code("message", "sendMessage", Q, *given) == code

    def test_a_batch_is_all_or_nothing(self, emq: Emq) -> None:
        entries = [fields((1, "1"), (2, "x")), fields((1, "2"), (2, ""))]
        same = [fields((1, "1"), (2, "x"))] * 2
        many = [fields((1, str(number)), (2, "x")) for number in range(17)]

        assert emq.code("message", "sendMessageBatch", Q, (2, entries)) == 10
        assert emq.code("message", "sendMessageBatch", Q, (2, same)) == 2
        assert emq.code("message", "sendMessageBatch", Q, (2, many)) == 2
        assert emq.code("message", "sendMessageBatch", Q, (2, [])) == 2
        assert emq.message("receiveMessage", Q, (3, 0)) == []

    def test_a_receive_has_16_messages_or_what_the_queue_allows(self, emq: Emq) -> None:
        for _ in range(2):
            entries = [fields((1, str(number)), (2, "x")) for number in range(16)]
            emq.message("sendMessageBatch", Q, (2, entries))

        received = emq.message("receiveMessage", Q, (2, 100), (3, 0))
        assert 1 <= len(received) <= 16
        emq.queue("setQueueAttribute", Q, (2, fields((4, 1))))
        assert len(emq.message("receiveMessage", Q, (2, 100), (3, 0))) == 1

    def test_handles_that_ran_out_are_no_error_and_do_nothing(self, emq: Emq, world: World) -> None:
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
        many = [fields((1, f"handle-{number}")) for number in range(101)]
        assert emq.code("message", "deleteMessageBatch", Q, (2, many)) == 2
        assert emq.code("message", "deleteMessageBatch", Q, (2, [handles[0]] * 2)) == 2

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
