"""Behaviours of SQS that the public suites of two emulators have recorded: `sqs_behaviours.md`.

Those of them that no other test of the dialect plays.
"""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from tests.dialects.sns_calls import make_queue
from tests.dialects.test_sqs_fifo import bodies
from tests.dialects.test_sqs_queues import attributes

from cirrusmq_local.testing import World

COUNT = "ApproximateNumberOfMessages"
INVALID = "InvalidParameterValue"
BATCH = "AWS.SimpleQueueService."


def make_fifo(sqs: Any, name: str = "orders.fifo", **attributes: str) -> str:
    given = {"FifoQueue": "true", "ContentBasedDeduplication": "true", **attributes}
    return make_queue(sqs, name, **given)


@pytest.fixture
def fifo(sqs: Any) -> str:
    return make_fifo(sqs)


def send(sqs: Any, url: str, *bodies: str, world: World | None = None, **given: Any) -> None:
    """Sends each body; in a FIFO queue its group is the part before the dot."""
    for body in bodies:
        group = {"MessageGroupId": body.partition(".")[0]} if url.endswith(".fifo") else {}
        sqs.send_message(QueueUrl=url, MessageBody=body, **group, **given)
        if world is not None:
            world.clock.pass_seconds(0.01)


def take(sqs: Any, url: str, most: int = 1, **given: Any) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=most, **given
    ).get("Messages", [])
    return messages


def refused(call: Any, **given: Any) -> tuple[str, str]:
    """The code and the message of a refusal."""
    with pytest.raises(ClientError) as raised:
        call(**given)
    error = raised.value.response["Error"]
    return error["Code"], error["Message"]


def count(sqs: Any, url: str) -> int:
    return int(attributes(sqs, url, COUNT)[COUNT])


def test_refusals_have_the_words_of_sqs(sqs: Any) -> None:
    url, fifo = make_queue(sqs), make_fifo(sqs, ContentBasedDeduplication="false")
    entries = [{"Id": f"m-{number}", "MessageBody": "x"} for number in range(20)]
    whole = {"Id": "1", "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}
    odd_id = (
        f"{BATCH}InvalidBatchEntryId",
        "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can"
        " be at most 80 letters long.",
    )
    too_many = (
        f"{BATCH}TooManyEntriesInBatchRequest",
        "Maximum number of entries per request are 10. You have sent 20.",
    )
    no_id = (
        INVALID,
        "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId"
        " provided explicitly",
    )
    no_group = "The request must contain the parameter MessageGroupId."

    assert refused(sqs.receive_message, QueueUrl=url, MaxNumberOfMessages=11) == (
        INVALID,
        "Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10,"
        " if provided.",
    )
    assert refused(sqs.send_message_batch, QueueUrl=url, Entries=entries) == too_many
    settled = [{"Id": each["Id"], "ReceiptHandle": "x"} for each in entries]
    assert refused(sqs.delete_message_batch, QueueUrl=url, Entries=settled) == too_many
    longer = [{**each, "VisibilityTimeout": 1} for each in settled]
    assert refused(sqs.change_message_visibility_batch, QueueUrl=url, Entries=longer) == too_many
    for wrong in ("", "testLongId" * 10, "invalid:id"):
        entry = [{"Id": wrong, "ReceiptHandle": "x"}]
        assert refused(sqs.delete_message_batch, QueueUrl=url, Entries=entry) == odd_id
    assert refused(sqs.delete_message, QueueUrl=url, ReceiptHandle="garbage") == (
        "ReceiptHandleIsInvalid",
        'The input receipt handle "garbage" is not a valid receipt handle.',
    )
    given = {"MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}
    assert refused(sqs.send_message, QueueUrl=fifo, DelaySeconds=2, **given) == (
        INVALID,
        "Value 2 for parameter DelaySeconds is invalid. Reason: The request include parameter that"
        " is not valid for this queue type.",
    )
    without_id = [whole, {"Id": "2", "MessageBody": "x", "MessageGroupId": "g"}]
    assert refused(sqs.send_message_batch, QueueUrl=fifo, Entries=without_id) == no_id
    without_group = [whole, {"Id": "2", "MessageBody": "x", "MessageDeduplicationId": "e"}]
    assert refused(sqs.send_message_batch, QueueUrl=fifo, Entries=without_group) == (
        INVALID,
        no_group,
    )
    del given["MessageGroupId"]
    assert refused(sqs.send_message, QueueUrl=fifo, **given) == ("MissingParameter", no_group)
    empty = {"ErrorDetails": {"DataType": "String", "StringValue": ""}}
    assert refused(sqs.send_message, QueueUrl=url, MessageBody="x", MessageAttributes=empty) == (
        INVALID,
        "Message (user) attribute 'ErrorDetails' must contain a non-empty value of type 'String'.",
    )


def test_a_batch_keeps_to_the_bound_of_a_call_and_not_of_the_queue(sqs: Any) -> None:
    url = make_queue(sqs, MaximumMessageSize="2048")
    beside = {"k": {"DataType": "String", "StringValue": "x"}}
    first = {"Id": "1", "MessageBody": "a" * 2_040, "MessageAttributes": beside}
    sent = sqs.send_message_batch(QueueUrl=url, Entries=[first, {"Id": "2", "MessageBody": "a"}])
    assert [each["Id"] for each in sent["Successful"]] == ["1", "2"]
    large = {"MessageBody": "a" * 2_041, "MessageAttributes": beside}
    assert refused(sqs.send_message, QueueUrl=url, **large) == (
        INVALID,
        "One or more parameters are invalid. Reason: Message must be shorter than 2048 bytes.",
    )


def test_names_of_attributes_have_letters_of_every_language(sqs: Any, url: str) -> None:
    sent = {"attr.1øßä": {"DataType": "String", "StringValue": "x"}}
    sqs.send_message(QueueUrl=url, MessageBody="a", MessageAttributes=sent)
    (message,) = take(sqs, url, MessageAttributeNames=["All"])
    assert message["MessageAttributes"] == sent


def test_a_visibility_is_extended_again_and_again(sqs: Any, world: World) -> None:
    url = make_queue(sqs, VisibilityTimeout="2")
    send(sqs, url, "a")
    (held,) = take(sqs, url)
    for _ in range(4):
        world.clock.pass_seconds(1)
        handle = {"ReceiptHandle": held["ReceiptHandle"]}
        sqs.change_message_visibility(QueueUrl=url, VisibilityTimeout=2, **handle)
        assert take(sqs, url) == []
    assert bodies(take(sqs, url, WaitTimeSeconds=5)) == ["a"]


class TestGroups:
    """Messages of several groups of a FIFO queue."""

    def test_a_receive_returns_the_longest_waiting_group_first(
        self, sqs: Any, world: World
    ) -> None:
        for turn in range(6):
            url = make_fifo(sqs, f"q{turn}.fifo")
            send(sqs, url, "g1.1", "g2.1", "g1.2", "g1.3", world=world)
            assert bodies(take(sqs, url, 10)) == ["g1.1", "g1.2", "g1.3", "g2.1"]

    def test_a_group_with_an_expired_lease_goes_behind_waiting_groups(
        self, sqs: Any, world: World
    ) -> None:
        url = make_fifo(sqs, VisibilityTimeout="1")
        send(sqs, url, "g1.1", "g1.2", "g1.3", "g1.4", "g2.1", "g3.1", world=world)
        assert bodies(take(sqs, url, 2)) == ["g1.1", "g1.2"]
        world.clock.pass_seconds(0.01)
        assert bodies(take(sqs, url)) == ["g2.1"]
        world.clock.pass_seconds(2)
        again = take(sqs, url, 10, VisibilityTimeout=0)
        assert bodies(again) == ["g3.1", "g1.1", "g1.2", "g1.3", "g1.4", "g2.1"]

    def test_messages_hidden_for_no_time_go_behind_as_well(
        self, sqs: Any, world: World, fifo: str
    ) -> None:
        send(sqs, fifo, "g1.1", "g2.1", "g2.2", "g3.1", "g1.2", world=world)
        assert bodies(take(sqs, fifo, 3, VisibilityTimeout=0)) == ["g1.1", "g1.2", "g2.1"]
        world.clock.pass_seconds(0.01)
        again = take(sqs, fifo, 10, VisibilityTimeout=0)
        assert bodies(again) == ["g3.1", "g1.1", "g1.2", "g2.1", "g2.2"]

    @pytest.mark.parametrize("seconds", [0, 1])
    def test_the_first_of_a_group_is_free_beside_a_held_second(
        self, sqs: Any, world: World, seconds: int, fifo: str
    ) -> None:
        send(sqs, fifo, "g1.1", "g1.2", "g2.1", world=world)
        first, _ = take(sqs, fifo, 2)
        handle = {"ReceiptHandle": first["ReceiptHandle"]}
        sqs.change_message_visibility(QueueUrl=fifo, VisibilityTimeout=seconds, **handle)
        world.clock.pass_seconds(seconds + 0.01)
        assert bodies(take(sqs, fifo, 3)) == ["g2.1", "g1.1"]

    @pytest.mark.parametrize(
        ("deleted", "left"),
        [(2, ["g2.1", "g2.2", "g1.3", "g1.4", "g3.1"]), (1, ["g2.1", "g2.2", "g3.1"])],
    )
    def test_a_group_goes_on_when_all_its_received_messages_are_deleted(
        self, sqs: Any, world: World, deleted: int, left: list[str], fifo: str
    ) -> None:
        send(sqs, fifo, "g1.1", "g2.1", "g1.2", "g2.2", "g1.3", "g1.4", "g3.1", world=world)
        held = take(sqs, fifo, 2)
        assert bodies(held) == ["g1.1", "g1.2"]
        for each in held[:deleted]:
            sqs.delete_message(QueueUrl=fifo, ReceiptHandle=each["ReceiptHandle"])
        assert bodies(take(sqs, fifo, 10)) == left

    def test_a_receive_takes_from_all_groups(self, sqs: Any, fifo: str) -> None:
        send(sqs, fifo, "g1.1", "g1.2", "g1.3", "g2.1", "g3.1")
        held = take(sqs, fifo, 4)
        assert (len(held), count(sqs, fifo)) == (4, 1)
        for each in held:
            sqs.delete_message(QueueUrl=fifo, ReceiptHandle=each["ReceiptHandle"])
        assert count(sqs, fifo) == 1

    def test_receivers_of_the_same_groups_lose_no_message(
        self, sqs: Any, world: World, fifo: str
    ) -> None:
        """Each of twenty receivers begins where it may: each message is received once."""
        send(sqs, fifo, *(f"g{number}.1" for number in range(40)), world=world)
        received = [body for _ in range(20) for body in bodies(take(sqs, fifo, 2))]
        assert sorted(received) == sorted(f"g{number}.1" for number in range(40))

    def test_a_delay_of_the_queue_is_one_of_its_groups(self, sqs: Any, world: World) -> None:
        url = make_fifo(sqs, DelaySeconds="2")
        send(sqs, url, "g.1", "g.2", "g.3")
        assert take(sqs, url, WaitTimeSeconds=1) == []
        world.clock.pass_seconds(3)
        assert bodies(take(sqs, url, 3)) == ["g.1", "g.2", "g.3"]


@pytest.mark.parametrize(
    ("given", "partitions"),
    [
        ({}, 1),
        ({"FifoThroughputLimit": "perQueue"}, 1),
        ({"FifoThroughputLimit": "perMessageGroupId", "DeduplicationScope": "messageGroup"}, 4),
    ],
)
def test_a_fifo_queue_has_one_partition_unless_its_limit_is_by_group(
    sqs: Any, shop: Any, given: dict[str, str], partitions: int
) -> None:
    make_fifo(sqs, **given)
    assert shop.get("/queues/orders.fifo").json["partitions"] == partitions
