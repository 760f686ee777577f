"""FIFO queues by boto3, unmodified: order, groups, deduplication, sequence numbers."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from tests.dialects.conftest import URL
from tests.dialects.test_sqs_messages import Message, receive
from tests.dialects.test_sqs_queues import attributes, redrive_policy

from cirrusmq_local.testing import Client, World

FIFO = {"FifoQueue": "true"}


@pytest.fixture
def url(sqs: Any) -> str:
    made: str = sqs.create_queue(QueueName="orders.fifo", Attributes=FIFO)["QueueUrl"]
    return made


def send(sqs: Any, url: str, body: str, group: str = "a", once: str | None = None) -> Message:
    sent: Message = sqs.send_message(
        QueueUrl=url,
        MessageBody=body,
        MessageGroupId=group,
        MessageDeduplicationId=once or f"{group}-{body}",
    )
    return sent


def delete(sqs: Any, url: str, *messages: Message) -> None:
    for each in messages:
        sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])


def bodies(messages: list[Message]) -> list[str]:
    return [each["Body"] for each in messages]


def test_a_fifo_queue_is_an_ordered_one(sqs: Any, url: str, shop: Client) -> None:
    assert url == f"{URL}/shop/orders.fifo"
    assert shop.get("/queues/orders.fifo").json["ordered"] is True
    assert shop.get("/queues/orders_fifo").status == 404
    assert sqs.list_queues()["QueueUrls"] == [url]
    assert sqs.get_queue_url(QueueName="orders.fifo")["QueueUrl"] == url
    shown = attributes(sqs, url)
    assert shown["QueueArn"].endswith(":shop:orders.fifo")
    assert {name: shown[name] for name in shown if "Fifo" in name or "Dedup" in name} == {
        "FifoQueue": "true",
        "ContentBasedDeduplication": "false",
        "DeduplicationScope": "queue",
        "FifoThroughputLimit": "perQueue",
    }
    for value in ("true", "false"):
        by_content = {"ContentBasedDeduplication": value}
        sqs.set_queue_attributes(QueueUrl=url, Attributes=by_content)
        assert attributes(sqs, url, *by_content) == by_content
    assert sqs.create_queue(QueueName="orders.fifo", Attributes=FIFO)["QueueUrl"] == url


@pytest.mark.parametrize(
    ("name", "fifo"), [("orders.fifo", None), ("orders", "true"), ("o.fifo", "false")]
)
def test_name_and_attribute_must_agree(sqs: Any, name: str, fifo: str | None) -> None:
    given = {} if fifo is None else {"FifoQueue": fifo}
    with pytest.raises(ClientError, match="InvalidParameterValue"):
        sqs.create_queue(QueueName=name, Attributes=given)


def test_a_queue_of_the_other_type_is_not_found_by_its_name(sqs: Any) -> None:
    """`a.fifo` and `a_fifo` are two names, as in SQS."""
    plain = sqs.create_queue(QueueName="plain_fifo")["QueueUrl"]
    as_fifo = plain.replace("_fifo", ".fifo")
    sqs.send_message(QueueUrl=plain, MessageBody="x")

    for call, more in (
        (sqs.get_queue_url, {"QueueName": "plain.fifo"}),
        (sqs.get_queue_attributes, {"QueueUrl": as_fifo, "AttributeNames": ["All"]}),
        (sqs.receive_message, {"QueueUrl": as_fifo}),
        (sqs.send_message, {"QueueUrl": as_fifo, "MessageBody": "x", "MessageGroupId": "a"}),
        (sqs.purge_queue, {"QueueUrl": as_fifo}),
        (sqs.delete_queue, {"QueueUrl": as_fifo}),
    ):
        with pytest.raises(sqs.exceptions.QueueDoesNotExist):
            call(**more)
    assert sqs.create_queue(QueueName="plain.fifo", Attributes=FIFO)["QueueUrl"] == as_fifo
    assert sorted(sqs.list_queues()["QueueUrls"]) == [as_fifo, plain]
    assert receive(sqs, as_fifo) == []
    assert bodies(receive(sqs, plain)) == ["x"]


def test_a_queue_made_under_the_older_name_keeps_it(sqs: Any, shop: Client) -> None:
    """Calls of SQS made `orders.fifo` as `orders_fifo` before."""
    assert shop.put("/queues/orders_fifo", {"ordered": True}).status == 201
    dead = sqs.create_queue(QueueName="dead.fifo", Attributes=FIFO)["QueueUrl"]

    url = sqs.create_queue(QueueName="orders.fifo", Attributes=FIFO)["QueueUrl"]
    send(sqs, url, "x")

    assert url == f"{URL}/shop/orders.fifo"
    assert sqs.get_queue_url(QueueName="orders.fifo")["QueueUrl"] == url
    assert sorted(sqs.list_queues(QueueNamePrefix="orders")["QueueUrls"]) == [url]
    assert attributes(sqs, url)["QueueArn"].endswith(":shop:orders.fifo")
    assert [each["name"] for each in shop.get("/queues").json["queues"]] == [
        "dead.fifo",
        "orders_fifo",
    ]
    assert shop.receive("orders_fifo")[0]["body"] == "x"
    sqs.delete_queue(QueueUrl=url)
    assert sqs.list_queues()["QueueUrls"] == [dead]
    # A new one has the exact name.
    sqs.create_queue(QueueName="orders.fifo", Attributes=FIFO)
    assert shop.get("/queues/orders.fifo").status == 200


def test_the_type_of_a_queue_does_not_change(sqs: Any, url: str) -> None:
    plain = sqs.create_queue(QueueName="plain")["QueueUrl"]

    sqs.set_queue_attributes(QueueUrl=url, Attributes={"FifoQueue": "true"})
    with pytest.raises(sqs.exceptions.InvalidAttributeValue, match="Modifying queue type is not"):
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"FifoQueue": "false"})
    for value in ("true", "false"):
        with pytest.raises(sqs.exceptions.InvalidAttributeName, match="Unknown Attribute"):
            sqs.set_queue_attributes(QueueUrl=plain, Attributes={"FifoQueue": value})
    with pytest.raises(sqs.exceptions.InvalidAttributeName, match="Unknown Attribute FifoQueue"):
        sqs.create_queue(QueueName="new", Attributes={"FifoQueue": "false"})


def test_a_standard_queue_has_none_of_their_attributes(sqs: Any) -> None:
    with pytest.raises(sqs.exceptions.InvalidAttributeName):
        sqs.create_queue(QueueName="plain", Attributes={"ContentBasedDeduplication": "true"})
    url = sqs.create_queue(QueueName="plain")["QueueUrl"]
    assert "FifoQueue" not in attributes(sqs, url)
    with pytest.raises(ClientError, match="not valid for this queue type"):
        sqs.send_message(QueueUrl=url, MessageBody="x", MessageDeduplicationId="1")


def test_an_undeleted_message_comes_again_before_its_followers(
    world: World, sqs: Any, url: str
) -> None:
    for number in range(2):
        send(sqs, url, str(number))
    assert bodies(receive(sqs, url, 1)) == ["0"]
    world.clock.pass_seconds(30)
    (again,) = receive(sqs, url, 1)
    assert again["Body"] == "0"
    sqs.change_message_visibility(
        QueueUrl=url, ReceiptHandle=again["ReceiptHandle"], VisibilityTimeout=0
    )
    assert bodies(receive(sqs, url, 1)) == ["0"]


def test_sequence_numbers_grow_in_a_group_and_are_those_of_the_receiver(sqs: Any, url: str) -> None:
    sent = [send(sqs, url, "0")["SequenceNumber"]]
    entries = [
        {
            "Id": str(n),
            "MessageBody": str(n),
            "MessageGroupId": "a",
            "MessageDeduplicationId": str(n),
        }
        for n in range(1, 4)
    ]
    batch = sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]
    sent += [each["SequenceNumber"] for each in sorted(batch, key=lambda each: each["Id"])]
    sent.append(send(sqs, url, "4")["SequenceNumber"])
    assert sent == sorted(set(sent))
    assert all(len(each) == 20 and each.isdigit() for each in sent)
    found: list[Message] = []
    while some := receive(sqs, url, AttributeNames=["SequenceNumber", "MessageGroupId"]):
        delete(sqs, url, *some)
        found += some
    assert bodies(found) == ["0", "1", "2", "3", "4"]
    assert [each["Attributes"]["SequenceNumber"] for each in found] == sent
    assert {each["Attributes"]["MessageGroupId"] for each in found} == {"a"}


def test_a_duplicate_is_answered_as_the_first_and_stored_once(
    world: World, sqs: Any, url: str
) -> None:
    first = send(sqs, url, "hello", once="1")
    again = send(sqs, url, "another body", once="1")
    for name in ("MessageId", "SequenceNumber"):
        assert again[name] == first[name]
    (message,) = receive(sqs, url, AttributeNames=["All"])
    assert message["Body"] == "hello"
    assert message["Attributes"]["MessageDeduplicationId"] == "1"
    delete(sqs, url, message)
    assert send(sqs, url, "hello", once="1")["MessageId"] == first["MessageId"]
    assert receive(sqs, url) == []
    world.clock.pass_seconds(301)
    assert send(sqs, url, "hello", once="1")["MessageId"] != first["MessageId"]
    assert bodies(receive(sqs, url)) == ["hello"]


def test_a_queue_may_deduplicate_by_content(sqs: Any, url: str) -> None:
    given = {"QueueUrl": url, "MessageBody": "hello", "MessageGroupId": "a"}
    with pytest.raises(ClientError, match="ContentBasedDeduplication"):
        sqs.send_message(**given)
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"ContentBasedDeduplication": "true"})
    assert attributes(sqs, url, "ContentBasedDeduplication") == {
        "ContentBasedDeduplication": "true"
    }
    first = sqs.send_message(**given)
    assert sqs.send_message(**given)["MessageId"] == first["MessageId"]
    other = sqs.send_message(**{**given, "MessageDeduplicationId": "own"})
    assert other["MessageId"] != first["MessageId"]
    found = receive(sqs, url, AttributeNames=["MessageDeduplicationId"])
    assert [each["Attributes"]["MessageDeduplicationId"] for each in found] == [
        hashlib.sha256(b"hello").hexdigest(),
        "own",
    ]
    # It is no tag.
    assert sqs.list_queue_tags(QueueUrl=url).get("Tags", {}) == {}


def test_a_queue_may_deduplicate_in_each_group(sqs: Any) -> None:
    fast = {
        **FIFO,
        "DeduplicationScope": "messageGroup",
        "FifoThroughputLimit": "perMessageGroupId",
    }
    url = sqs.create_queue(QueueName="fast.fifo", Attributes=fast)["QueueUrl"]
    ids = {send(sqs, url, "x", group, once="1")["MessageId"] for group in ("a", "b", "a")}
    assert len(ids) == 2
    assert attributes(sqs, url, "DeduplicationScope") == {"DeduplicationScope": "messageGroup"}


def test_a_purge_frees_deduplication_ids(sqs: Any, url: str) -> None:
    first = send(sqs, url, "x", "a", "once")
    sqs.purge_queue(QueueUrl=url)

    second = send(sqs, url, "y", "a", "once")
    third = send(sqs, url, "z", "a", "once")

    assert second["MessageId"] != first["MessageId"]
    assert third["MessageId"] == second["MessageId"]
    assert bodies(receive(sqs, url)) == ["y"]


def test_missing_or_wrong_fields_of_a_fifo_message_are_told(sqs: Any, url: str) -> None:
    with pytest.raises(ClientError, match="MessageGroupId"):
        sqs.send_message(QueueUrl=url, MessageBody="x", MessageDeduplicationId="1")
    good = {"MessageBody": "x", "MessageGroupId": "a", "MessageDeduplicationId": "1"}
    for wrong in (
        {"DelaySeconds": 5},
        {"MessageGroupId": "a b"},
        {"MessageGroupId": "x" * 129},
        {"MessageDeduplicationId": "ü"},
        {"MessageDeduplicationId": "d" * 129},
    ):
        with pytest.raises(ClientError, match="InvalidParameterValue"):
            sqs.send_message(QueueUrl=url, **{**good, **wrong})
    # In a batch it refuses all of them, as in SQS; a delay its own entry alone.
    for lacks in ("MessageGroupId", "MessageDeduplicationId"):
        lacking = {name: held for name, held in good.items() if name != lacks}
        with pytest.raises(ClientError, match=lacks):
            sqs.send_message_batch(
                QueueUrl=url, Entries=[{"Id": "1", **good}, {"Id": "2", **lacking}]
            )
    assert receive(sqs, url) == []
    batch = sqs.send_message_batch(
        QueueUrl=url, Entries=[{"Id": "1", **good, "DelaySeconds": 5}, {"Id": "2", **good}]
    )
    assert [each["Code"] for each in batch["Failed"]] == ["InvalidParameterValue"]
    assert [each["Id"] for each in batch["Successful"]] == ["2"]


def test_dead_letters_of_a_fifo_queue_go_to_another(world: World, sqs: Any, url: str) -> None:
    dead = sqs.create_queue(QueueName="dead.fifo", Attributes=FIFO)["QueueUrl"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes=redrive_policy("dead.fifo", 1))
    assert "dead.fifo" in attributes(sqs, url, "RedrivePolicy")["RedrivePolicy"]
    send(sqs, url, "bad")
    send(sqs, url, "good")
    assert bodies(receive(sqs, url, 1)) == ["bad"]
    world.clock.pass_seconds(31)
    assert bodies(receive(sqs, url, 1)) == ["good"]
    (message,) = receive(sqs, dead, AttributeNames=["All"])
    assert message["Body"] == "bad"
    assert message["Attributes"]["DeadLetterQueueSourceArn"].endswith(":orders.fifo")


def test_a_dead_letter_queue_is_of_the_type_of_its_source(sqs: Any, url: str) -> None:
    plain = sqs.create_queue(QueueName="plain")["QueueUrl"]
    sqs.create_queue(QueueName="dead.fifo", Attributes=FIFO)
    to_plain, to_fifo = redrive_policy("plain", 1), redrive_policy("dead.fifo", 1)

    for call, given in (
        (sqs.set_queue_attributes, {"QueueUrl": url, "Attributes": to_plain}),
        (sqs.create_queue, {"QueueName": "new.fifo", "Attributes": {**FIFO, **to_plain}}),
        (sqs.set_queue_attributes, {"QueueUrl": plain, "Attributes": to_fifo}),
        (sqs.create_queue, {"QueueName": "new", "Attributes": to_fifo}),
    ):
        told = r"\(InvalidParameterValue\) .* must be same type of queue"
        with pytest.raises(ClientError, match=told):
            call(**given)


def test_a_native_queue_of_the_name_is_found(world: World, sqs: Any, shop: Client) -> None:
    given = {"ordered": True, "dead_letter": {"queue": "dead.fifo", "max_receives": 3}}
    assert shop.put("/queues/dead.fifo", {"ordered": True}).status == 201
    assert shop.put("/queues/orders.fifo", given).status == 201
    url = sqs.get_queue_url(QueueName="orders.fifo")["QueueUrl"]
    assert url.endswith("/shop/orders.fifo")
    assert (
        sqs.create_queue(QueueName="orders.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
        == url
    )
    sqs.send_message(QueueUrl=url, MessageBody="a", MessageGroupId="g", MessageDeduplicationId="d")
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    assert message["Body"] == "a"
    shown = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert shown["QueueArn"].endswith(":shop:orders.fifo")
    assert ":shop:dead.fifo" in shown["RedrivePolicy"]
    policy = {"RedrivePolicy": shown["RedrivePolicy"]}
    sqs.set_queue_attributes(QueueUrl=url, Attributes=policy)
    assert shop.get("/queues/orders.fifo").json["dead_letter"]["queue"] == "dead.fifo"
    dead = sqs.get_queue_url(QueueName="dead.fifo")["QueueUrl"]
    allow = {"redrivePermission": "byQueue", "sourceQueueArns": [shown["QueueArn"]]}
    sqs.set_queue_attributes(QueueUrl=dead, Attributes={"RedriveAllowPolicy": json.dumps(allow)})
    sqs.set_queue_attributes(QueueUrl=url, Attributes=policy)
    assert sqs.list_queues(QueueNamePrefix="orders.f")["QueueUrls"] == [url]
    sqs.delete_queue(QueueUrl=url)
    assert [each["name"] for each in shop.get("/queues").json["queues"]] == ["dead.fifo"]
