"""EMQ on the wire: recorded messages and a checked signature, against the endpoint's own code."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dialects.conftest import Key
from tests.dialects.emq_wire import Emq, fields, message, read

from cirrusmq_dialects import signing
from cirrusmq_dialects.emq import protocol
from cirrusmq_dialects.emq.contract import of, result_of
from cirrusmq_dialects.emq.protocol import Head, Reader
from cirrusmq_local.stack.unread import receipts_of_emq
from cirrusmq_local.testing import World

SEND = bytes.fromhex(
    "800100010000000b73656e644d657373616765000000000c00010b000100000007646576312f74710b00020000"
    "000568656c6c6f080003000000020d00050b0c0000000200000001610b000100000006535452494e470b000200"
    "000001760000000001620b00010000000642494e4152590b0003000000020001000000"
)
RECEIVE = bytes.fromhex(
    "800100010000000e726563656976654d657373616765000000000c00010b000100000007646576312f74710800"
    "0200000064080003000000000b000600000001740000"
)
RECEIVED = bytes.fromhex(
    "800100020000000e726563656976654d657373616765000000000f00000c000000010b0001000000054d73672d"
    "310b00020000000272680b00030000000a68c3a46c6c6f20e4b8960d00040b0b000000010000000c7265636569"
    "7665436f756e7400000001310d00050b0c0000000100000001610b00010000000642494e4152590b0003000000"
    "020001000000"
)
REFUSED = bytes.fromhex(
    "800100020000000b64656c6574655175657565000000000c0001080001000000060b00020000000d6e6f207375"
    "63682071756575650b00040000000272310000"
)
TEXT = (
    "POST\n36d308d68f8e9f58d99a59528fa8efd7\napplication/x-thrift-binary\n\n"
    "x-xiaomi-date:Sat, 21 Nov 2026 19:43:54 GMT\nx-xiaomi-timestamp:1795290234\n/v1/api/message"
)


def test_a_recorded_send_is_read() -> None:
    reader = Reader(SEND)

    assert reader.head() == Head("sendMessage", 0)
    sent = reader.argument("SendMessage")
    assert (sent.queueName, sent.messageBody, sent.delaySeconds) == ("dev1/tq", "hello", 2)
    assert (sent.invisibilitySeconds, sent.topic, sent.priority) == (None, None, None)
    found = {name: vars(each) for name, each in sent.messageAttributes.items()}
    assert found == {
        "a": {"type": "STRING", "stringValue": "v", "binaryValue": None},
        "b": {"type": "BINARY", "stringValue": None, "binaryValue": b"\0\1"},
    }


def test_a_recorded_receive_is_read() -> None:
    reader = Reader(RECEIVE)

    assert reader.head().method == "receiveMessage"
    asked = reader.argument("ReceiveMessage")
    assert (asked.maxReceiveMessageNumber, asked.maxReceiveMessageWaitSeconds) == (100, 0)
    assert (asked.queueName, asked.tagName, asked.attributeName) == ("dev1/tq", "t", None)


def test_a_recorded_answer_is_written() -> None:
    given = of.Received(
        messageID="Msg-1",
        receiptHandle="rh",
        messageBody="hällo 世",
        attributes={"receiveCount": "1"},
        messageAttributes={"a": of.MessageAttribute(type="BINARY", binaryValue=b"\0\1")},
    )
    result = result_of("list<Received>")(success=[given])

    assert protocol.reply(Head("receiveMessage", 0), result) == RECEIVED
    assert receipts_of_emq(RECEIVED) == ["rh"]


def test_a_recorded_refusal_is_written() -> None:
    error = of.Error(errorCode=6, errMsg="no such queue", requestId="r1")

    assert protocol.reply(Head("deleteQueue", 0), result_of("void")(e=error)) == REFUSED


def test_no_other_answer_has_receipts() -> None:
    assert receipts_of_emq(REFUSED) == []
    assert receipts_of_emq(RECEIVED[:-9]) == []


def test_a_recorded_text_has_its_signature() -> None:
    assert signing.sign("secret", TEXT, "sha1") == "eYc6gqh5mnQ/ULvOqjm6SUwgrfs="


def test_the_hand_made_call_is_the_recorded_one() -> None:
    attributes = {
        "a": fields((1, "STRING"), (2, "v")),
        "b": fields((1, "BINARY"), (3, "\0\1")),
    }
    made = message("sendMessage", (1, "dev1/tq"), (2, "hello"), (3, 2), (5, attributes))

    assert made == SEND


@pytest.mark.parametrize("sequence", [1, 2**31 - 1])
def test_an_answer_has_the_sequence_number_of_its_call(sequence: int) -> None:
    reader = Reader(message("deleteQueue", (1, "a/b"), sequence=sequence))
    written = protocol.reply(reader.head(), result_of("void")())

    assert written[-5:-1] == sequence.to_bytes(4, "big")


def test_unknown_fields_are_skipped_whatever_they_hold() -> None:
    deep: Any = fields((1, "x"))
    for _ in range(6):
        deep = fields((-3, deep), (900, [1, 2]), (901, {"a": "b"}), (902, "text"))
    reader = Reader(message("deleteQueue", (-1, "other"), (9, deep), (1, "a/b"), (2, 2**40)))

    assert (reader.head().method, reader.argument("OfQueue").queueName) == ("deleteQueue", "a/b")


def test_a_field_of_another_type_is_as_if_it_were_not_given() -> None:
    reader = Reader(message("deleteQueue", (1, 5)))
    reader.head()

    assert reader.argument("OfQueue").queueName is None


def test_the_version_is_answered_by_all_services(world: World, key: Key) -> None:
    emq = Emq(world, key)

    for service in ("queue", "message", "statistics"):
        assert emq.call(service, "getServiceVersion")[5].startswith("CirrusMQ ")
        assert emq.call(service, "validClientVersion", (1, 1)) is None


def test_a_reply_of_type_2_is_read_back() -> None:
    assert read(RECEIVED)[:2] == (2, "receiveMessage")
