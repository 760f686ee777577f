"""boto3's calls on messages, unmodified."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from botocore.exceptions import ClientError
from tests.dialects.test_sqs_queues import arn, redrive_policy

from cirrusmq_local.testing import Client, World

Message = dict[str, Any]


def receive(sqs: Any, url: str, limit: int = 10, **given: Any) -> list[Message]:
    found: list[Message] = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=limit, **given
    ).get("Messages", [])
    return found


def receive_all(sqs: Any, url: str, **given: Any) -> list[Message]:
    found: list[Message] = []
    while some := receive(sqs, url, WaitTimeSeconds=1, **given):
        found += some
    return found


def test_a_message_is_sent_received_and_deleted(world: World, sqs: Any, url: str) -> None:
    sent = sqs.send_message(QueueUrl=url, MessageBody="hello")
    assert sent["MD5OfMessageBody"] == "5d41402abc4b2a76b9719d911017c592"
    assert not {"SequenceNumber", "MD5OfMessageAttributes"} & set(sent)
    (message,) = receive(sqs, url)
    assert set(message) == {"MessageId", "ReceiptHandle", "MD5OfBody", "Body"}
    assert message["MessageId"] == sent["MessageId"]
    assert len(message["ReceiptHandle"]) <= 1_024
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    world.clock.pass_seconds(60)
    assert receive(sqs, url) == []


def test_an_undeleted_message_comes_again_with_another_handle(
    world: World, sqs: Any, url: str
) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="hello")
    (first,) = receive(sqs, url, AttributeNames=["ApproximateReceiveCount"])
    assert receive(sqs, url) == []
    world.clock.pass_seconds(30)
    (again,) = receive(sqs, url, AttributeNames=["ApproximateReceiveCount"])
    assert first["Attributes"] == {"ApproximateReceiveCount": "1"}
    assert again["Attributes"] == {"ApproximateReceiveCount": "2"}
    assert again["ReceiptHandle"] != first["ReceiptHandle"]
    # A stale handle is taken, and ends nothing.
    sqs.delete_message(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"])
    world.clock.pass_seconds(30)
    assert len(receive(sqs, url)) == 1


def test_a_message_has_system_attributes(world: World, sqs: Any, url: str) -> None:
    begun = world.clock.now_ms()
    sqs.send_message(
        QueueUrl=url,
        MessageBody="hello",
        MessageGroupId="group",
        MessageSystemAttributes={
            "AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5e-7"}
        },
    )
    world.clock.pass_seconds(2)
    (message,) = receive(sqs, url, MessageSystemAttributeNames=["All"])
    assert message["Attributes"] == {
        "SenderId": "shop",
        "SentTimestamp": str(begun),
        "ApproximateReceiveCount": "1",
        "ApproximateFirstReceiveTimestamp": str(begun + 2_000),
        "AWSTraceHeader": "Root=1-5e-7",
        "MessageGroupId": "group",
    }
    with pytest.raises(sqs.exceptions.InvalidAttributeName, match="Unknown Attribute"):
        receive(sqs, url, MessageSystemAttributeNames=["Colour"])


ATTRIBUTES = {
    "n-1.x": {"DataType": "Number", "StringValue": "1"},
    "b": {"DataType": "Binary", "BinaryValue": b"\0\1"},
    "kind.of": {"DataType": "String.json", "StringValue": "{}"},
}


def test_attributes_come_back_with_names_types_and_digest(sqs: Any, url: str) -> None:
    some = {name: ATTRIBUTES[name] for name in ("n-1.x", "b")}
    sent = sqs.send_message(QueueUrl=url, MessageBody="hello", MessageAttributes=some)
    assert sent["MD5OfMessageAttributes"] == "9826482dd098c680385bb6736547e946"
    (message,) = receive(sqs, url, MessageAttributeNames=["All"])
    assert message["MessageAttributes"] == some
    assert message["MD5OfMessageAttributes"] == "9826482dd098c680385bb6736547e946"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ([], set()),
        (["All"], set(ATTRIBUTES)),
        ([".*"], set(ATTRIBUTES)),
        (["b"], {"b"}),
        (["*"], set(ATTRIBUTES)),
        (["nothing", "*"], set(ATTRIBUTES)),
        (["kind.*", "nothing"], {"kind.of"}),
        (["n-1.*", "b"], {"n-1.x", "b"}),
        (["ki.*"], {"kind.of"}),
        (["b.*"], {"b"}),
        (["n-1.x.*"], {"n-1.x"}),
        (["n-1.x.y.*"], set()),
        (["B.*", "kind*"], set()),
        (["nothing"], set()),
        (["AWS.", "..a"], set()),
    ],
)
def test_a_receiver_gets_the_requested_attributes(
    sqs: Any, url: str, asked: list[str], found: set[str]
) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="hello", MessageAttributes=ATTRIBUTES)
    (message,) = receive(sqs, url, MessageAttributeNames=asked)
    assert set(message.get("MessageAttributes", {})) == found
    assert ("MD5OfMessageAttributes" in message) == bool(found)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            (name, {"DataType": "String", "StringValue": "x"})
            for name in (
                *("a b", "AWS.x", "aWs.-x", "AMAZON.-x", "a..b", ".a", ".-x", "x.", "L" * 257),
                *(f"I-{each}-a" for each in '!"§(?'),
            )
        ),
        ("a", {"DataType": "Text", "StringValue": "x"}),
        ("a", {"DataType": "String", "StringValue": ""}),
        ("a", {"DataType": "", "StringValue": "x"}),
        ("a", {"DataType": "Number", "StringValue": "one"}),
        ("a", {"DataType": "Binary", "StringValue": "x"}),
        ("a" * 65, {"DataType": "String", "StringValue": "x"}),
        ("a", {"DataType": "String", "StringValue": "\x01"}),
    ],
)
def test_invalid_attributes_are_refused(
    sqs: Any, url: str, name: str, value: dict[str, str]
) -> None:
    with pytest.raises(ClientError) as refused:
        sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes={name: value})
    code = refused.value.response["Error"]["Code"]
    is_odd_text = value.get("StringValue") == "\x01"
    assert code == ("InvalidMessageContents" if is_odd_text else "InvalidParameterValue")
    entry = {"Id": "1", "MessageBody": "x", "MessageAttributes": {name: value}}
    batch = sqs.send_message_batch(QueueUrl=url, Entries=[entry, {"Id": "2", "MessageBody": "y"}])
    (failed,) = batch["Failed"]
    assert (failed["Id"], failed["SenderFault"], failed["Code"]) == ("1", True, code)
    assert [each["Body"] for each in receive_all(sqs, url)] == ["y"]


def test_ten_attributes_and_no_more_come_back_beside_a_trace(sqs: Any, url: str) -> None:
    typed = {f"n.{n}": {"DataType": "Number.int", "StringValue": "1"} for n in range(10)}
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-2-3"}}
    system = ["AWSTraceHeader"]
    sqs.send_message(
        QueueUrl=url, MessageBody="x", MessageAttributes=typed, MessageSystemAttributes=trace
    )
    (message,) = receive(
        sqs, url, MessageAttributeNames=["All"], MessageSystemAttributeNames=system
    )
    assert message["MessageAttributes"] == typed
    assert message["Attributes"] == {"AWSTraceHeader": "Root=1-2-3"}
    more = {**typed, "n.10": typed["n.9"]}
    with pytest.raises(ClientError, match="exceeds the allowed maximum"):
        sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=more)


def test_a_message_may_be_all_attributes(sqs: Any, url: str) -> None:
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"MaximumMessageSize": "262144"})
    room = 262_144 - len("x" + "a" + "String" + "b" + "Binary")
    given = {
        "a": {"DataType": "String", "StringValue": "ü" * (room // 4)},
        "b": {"DataType": "Binary", "BinaryValue": bytes(room - 2 * (room // 4))},
    }
    sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=given)
    (message,) = receive(sqs, url, MessageAttributeNames=["All"])
    assert message["MessageAttributes"] == given
    with pytest.raises(ClientError, match="must be shorter than 262144 bytes"):
        sqs.send_message(QueueUrl=url, MessageBody="xx", MessageAttributes=given)


def test_attributes_over_the_bound_of_a_call_are_refused(sqs: Any) -> None:
    url = sqs.create_queue(QueueName="large", Attributes={"MaximumMessageSize": "1048576"})[
        "QueueUrl"
    ]
    half = {"a": {"DataType": "String", "StringValue": "x" * 131_072}}
    whole = {**half, "b": {"DataType": "String", "StringValue": "x" * 131_071}}
    with pytest.raises(ClientError, match=r"\(InvalidParameterValue\) .*262,144 are the most"):
        sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=whole)
    entries = [{"Id": n, "MessageBody": "x", "MessageAttributes": half} for n in "12"]
    with pytest.raises(sqs.exceptions.BatchRequestTooLong):
        sqs.send_message_batch(QueueUrl=url, Entries=entries)
    assert receive(sqs, url) == []
    sqs.send_message(QueueUrl=url, MessageBody="x" * 262_144, MessageAttributes=half)
    assert receive(sqs, url, MessageAttributeNames=["All"])[0]["MessageAttributes"] == half


@pytest.mark.parametrize(
    "body",
    ["tab\tand\r\nline", "  ", "ü漢字😀", "\ue000\ufffd", '{"a": [null, 1.5]}', "a" * 262_144],
)
def test_bodies_come_back_as_they_were(sqs: Any, url: str, body: str) -> None:
    sent = sqs.send_message(QueueUrl=url, MessageBody=body)
    assert sent["MD5OfMessageBody"] == hashlib.md5(body.encode()).hexdigest()
    (message,) = receive(sqs, url)
    assert message["Body"] == body


@pytest.mark.parametrize("body", ["\0", "a\x08", "\x1f", "\ufffe", "\uffff"])
def test_characters_invalid_in_a_message_are_refused(sqs: Any, url: str, body: str) -> None:
    with pytest.raises(sqs.exceptions.InvalidMessageContents):
        sqs.send_message(QueueUrl=url, MessageBody=body)


def test_a_body_over_the_queues_limit_is_refused(sqs: Any, url: str) -> None:
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"MaximumMessageSize": "262144"})
    for body in ("a" * 262_145, "ü" * 131_073):
        with pytest.raises(ClientError, match=r"\(InvalidParameterValue\) .* than 262144 bytes"):
            sqs.send_message(QueueUrl=url, MessageBody=body)


def test_messages_of_a_mebibyte_pass_if_the_queue_takes_them(sqs: Any) -> None:
    largest = {"MaximumMessageSize": "1048576"}
    url = sqs.create_queue(QueueName="large", Attributes=largest)["QueueUrl"]
    body = "<ü&>" * 209_715
    sqs.send_message(QueueUrl=url, MessageBody=body)
    (message,) = receive(sqs, url)
    assert message["Body"] == body
    with pytest.raises(sqs.exceptions.BatchRequestTooLong):
        sqs.send_message_batch(
            QueueUrl=url,
            Entries=[{"Id": str(n), "MessageBody": "a" * 600_000} for n in range(2)],
        )


def test_a_batch_is_settled_entry_by_entry(sqs: Any, url: str) -> None:
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"MaximumMessageSize": "262144"})
    entries = [
        {"Id": "good", "MessageBody": "1"},
        {"Id": "odd", "MessageBody": "\0"},
        {"Id": "late", "MessageBody": "2", "DelaySeconds": 901},
        {"Id": "large", "MessageBody": "a" * 262_145},
        {"Id": "fine", "MessageBody": "3", "MessageAttributes": ATTRIBUTES},
    ]
    answer = sqs.send_message_batch(QueueUrl=url, Entries=entries)
    assert {each["Id"] for each in answer["Successful"]} == {"good", "fine"}
    codes = {each["Id"]: each["Code"] for each in answer["Failed"]}
    assert codes == {
        "odd": "InvalidMessageContents",
        "late": "InvalidParameterValue",
        "large": "InvalidParameterValue",
    }
    assert all(each["SenderFault"] for each in answer["Failed"])
    assert sorted(each["Body"] for each in receive_all(sqs, url)) == ["1", "3"]


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ([], "EmptyBatchRequest"),
        ([{"Id": str(n)} for n in range(11)], "TooManyEntriesInBatchRequest"),
        ([{"Id": "1"}, {"Id": "1"}], "BatchEntryIdsNotDistinct"),
        *(([{"Id": odd}], "InvalidBatchEntryId") for odd in ("", "a b", "a:b", "x" * 81)),
    ],
)
def test_a_batch_of_a_wrong_shape_is_refused_whole(
    sqs: Any, url: str, entries: list[dict[str, Any]], code: str
) -> None:
    calls: dict[Any, dict[str, Any]] = {
        sqs.send_message_batch: {"MessageBody": "x"},
        sqs.delete_message_batch: {"ReceiptHandle": "x"},
        sqs.change_message_visibility_batch: {"ReceiptHandle": "x", "VisibilityTimeout": 1},
    }
    for call, more in calls.items():
        with pytest.raises(ClientError) as refused:
            call(QueueUrl=url, Entries=[{**each, **more} for each in entries])
        told = refused.value.response["Error"]["Code"]
        assert told == f"AWS.SimpleQueueService.{code}"
    assert receive(sqs, url) == []


def test_deletes_of_a_batch(world: World, sqs: Any, url: str) -> None:
    for number in range(3):
        sqs.send_message(QueueUrl=url, MessageBody=str(number))
    held = receive_all(sqs, url)
    entries = [{"Id": f"m{n}", "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(held)]
    bad = {"Id": "bad", "ReceiptHandle": "no handle"}
    answer = sqs.delete_message_batch(QueueUrl=url, Entries=[*entries, bad])
    assert [each["Id"] for each in answer["Successful"]] == ["m0", "m1", "m2"]
    (failed,) = answer["Failed"]
    assert (failed["Id"], failed["Code"]) == ("bad", "ReceiptHandleIsInvalid")
    # Once more: it is as in SQS.
    assert len(sqs.delete_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == 3
    world.clock.pass_seconds(60)
    assert receive(sqs, url) == []


def test_the_visibility_of_a_message_is_changed(world: World, sqs: Any, url: str) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="x")
    (held,) = receive(sqs, url)
    named = {"QueueUrl": url, "ReceiptHandle": held["ReceiptHandle"]}
    sqs.change_message_visibility(**named, VisibilityTimeout=100)
    world.clock.pass_seconds(99)
    assert receive(sqs, url) == []
    sqs.change_message_visibility(**named, VisibilityTimeout=0)
    (again,) = receive(sqs, url)
    sqs.change_message_visibility(**named, VisibilityTimeout=0)  # as a repeated call
    with pytest.raises(ClientError, match=r"InvalidParameterValue.*Message does not exist"):
        sqs.change_message_visibility(**named, VisibilityTimeout=5)
    assert receive(sqs, url) == []
    with pytest.raises(sqs.exceptions.ReceiptHandleIsInvalid):
        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle="x", VisibilityTimeout=5)
    with pytest.raises(ClientError, match="InvalidParameterValue"):
        sqs.change_message_visibility(
            QueueUrl=url, ReceiptHandle=again["ReceiptHandle"], VisibilityTimeout=43_201
        )


def test_visibilities_of_a_batch(world: World, sqs: Any, url: str) -> None:
    for number in range(2):
        sqs.send_message(QueueUrl=url, MessageBody=str(number))
    first, second = receive_all(sqs, url)
    sqs.delete_message(QueueUrl=url, ReceiptHandle=second["ReceiptHandle"])
    answer = sqs.change_message_visibility_batch(
        QueueUrl=url,
        Entries=[
            {"Id": "held", "ReceiptHandle": first["ReceiptHandle"], "VisibilityTimeout": 0},
            {"Id": "gone", "ReceiptHandle": second["ReceiptHandle"], "VisibilityTimeout": 1},
            {"Id": "over", "ReceiptHandle": second["ReceiptHandle"], "VisibilityTimeout": 0},
            {"Id": "long", "ReceiptHandle": first["ReceiptHandle"], "VisibilityTimeout": 50_000},
            {"Id": "none", "ReceiptHandle": "x", "VisibilityTimeout": 1},
        ],
    )
    assert answer["Successful"] == [{"Id": "held"}, {"Id": "over"}]
    assert {each["Id"]: each["Code"] for each in answer["Failed"]} == {
        "gone": "InvalidParameterValue",
        "long": "InvalidParameterValue",
        "none": "ReceiptHandleIsInvalid",
    }
    assert len(receive(sqs, url)) == 1


def test_a_receive_hiding_for_no_time_leaves_the_message_to_others(sqs: Any, url: str) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="x")
    assert len(receive(sqs, url, VisibilityTimeout=0)) == 1
    assert len(receive(sqs, url, VisibilityTimeout=60)) == 1
    assert receive(sqs, url) == []


def test_delays_of_messages_and_of_the_queue(world: World, sqs: Any) -> None:
    url = sqs.create_queue(QueueName="slow", Attributes={"DelaySeconds": "5"})["QueueUrl"]
    for body, given in {
        "queue": {},
        "own": {"DelaySeconds": 10},
        "none": {"DelaySeconds": 0},
    }.items():
        sqs.send_message(QueueUrl=url, MessageBody=body, **given)
    found = []
    for seconds in (0, 5, 5):
        world.clock.pass_seconds(seconds)
        found.append([each["Body"] for each in receive_all(sqs, url)])
    assert found[0] == ["none"]
    assert "queue" in found[1] + found[2]
    assert [body for bodies in found for body in bodies].count("own") == 1


def test_the_wait_is_the_calls_or_the_queues(world: World, sqs: Any) -> None:
    longest = {"ReceiveMessageWaitTimeSeconds": "7"}
    url = sqs.create_queue(QueueName="patient", Attributes=longest)["QueueUrl"]

    def waited(**given: Any) -> float:
        begun = world.clock.now_ms()
        assert receive(sqs, url, **given) == []
        return (world.clock.now_ms() - begun) / 1000

    assert waited() == pytest.approx(7, abs=0.2)
    assert waited(WaitTimeSeconds=3) == pytest.approx(3, abs=0.2)
    assert waited(WaitTimeSeconds=0) == 0


def test_dead_letters_move_and_tell_their_source(world: World, sqs: Any, url: str) -> None:
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes=redrive_policy("dead", 2))
    sent = sqs.send_message(QueueUrl=url, MessageBody="bad", MessageAttributes=ATTRIBUTES)
    for _ in range(2):
        assert len(receive(sqs, url)) == 1
        world.clock.pass_seconds(31)
    assert receive(sqs, url) == []
    world.settle()
    (message,) = receive(sqs, dead, AttributeNames=["All"], MessageAttributeNames=["All"])
    assert message["MessageId"] == sent["MessageId"]
    assert message["Attributes"]["DeadLetterQueueSourceArn"] == arn("orders")
    assert message["MessageAttributes"] == ATTRIBUTES


def test_native_programs_and_boto3_share_a_queue(sqs: Any, url: str, shop: Client) -> None:
    shop.send("orders", "native", attributes={"region": "eu", "raw": {"base64": "AQ=="}})
    (message,) = receive(sqs, url, MessageAttributeNames=["All"])
    assert message["Body"] == "native"
    assert message["MessageAttributes"] == {
        "region": {"DataType": "String", "StringValue": "eu"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\1"},
    }
    sqs.send_message(QueueUrl=url, MessageBody="theirs", MessageAttributes=ATTRIBUTES)
    (received,) = shop.receive("orders")
    assert received["body"] == "theirs"
    assert received["attributes"]["b"] == {"base64": "AAE="}
    data = {"messages": [{"body_base64": "AAE="}]}
    assert shop.post("/queues/orders/messages", data).status == 201
    (shown,) = receive(sqs, url)
    assert shown["Body"] == "AAE="
    assert shown["MD5OfBody"] == hashlib.md5(b"AAE=").hexdigest()


def test_messages_too_large_for_an_answer_are_passed_over(
    world: World, sqs: Any, shop: Client
) -> None:
    """They come from programs that call the HTTP API."""
    shop.put("/queues/dead", {"max_message_bytes": 4_194_304})
    policy = {"queue": "dead", "max_receives": 5}
    shop.put("/queues/mixed", {"max_message_bytes": 4_194_304, "dead_letter": policy})
    shop.gzips = True
    shop.send("mixed", "\x01" * 800_000)
    shop.gzips = False
    shop.send("mixed", "small")
    url = sqs.get_queue_url(QueueName="mixed")["QueueUrl"]
    (message,) = receive(sqs, url)
    assert message["Body"] == "small"
    assert receive(sqs, url, WaitTimeSeconds=1) == []
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    world.clock.pass_seconds(30)
    assert receive(sqs, url) == []
    assert shop.get("/queues/dead").json["counts"]["active"] == 1
