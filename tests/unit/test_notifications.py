"""SNS's notification of a message: its text, its ARNs, and the numbers of FIFO topics."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from tests.unit import topics
from tests.unit.parcels import parcel

from cirrusmq.base import ulid
from cirrusmq.base.reserved_attributes import SUBJECT
from cirrusmq.base.sdk_attributes import Typed, write
from cirrusmq.model.message import Message
from cirrusmq.model.notification import (
    Notifier,
    as_attribute,
    function_record,
    is_uuid,
    notification,
    notification_of,
    notifier_in,
    notifier_of,
    own_part,
    sequence_number,
    uuid_of,
)
from cirrusmq.model.parcel import message_id
from cirrusmq.model.topic import Subscription

SENT_MS = 1_795_000_000_123
SEND_ID = ulid.encode(SENT_MS, b"\x00\x02" + b"\xff" * 8)
FIRST_ID = message_id(SEND_ID, 0)
UUID = "8b0e2a51-4c1f-4d5e-9a3b-0123456789ab"
URL = "https://sns.example.com"
TOPIC_ARN = "arn:aws:sns:eu-west-1:alice:news"
UNSUBSCRIBE_URL = (
    f"{URL}/?Action=Unsubscribe"
    "&SubscriptionArn=arn%3Aaws%3Asns%3Aeu-west-1%3Aalice%3Anews%3Areaders"
)
NOTIFIER = Notifier(own=b"readers", topic="news", region="eu-west-1", url=URL)
FIFO_NOTIFIER = Notifier(own=b"readers", topic="news.fifo", region="eu-west-1", url=URL)


def subscription(name: str = "readers", **given: Any) -> Subscription:
    """A subscription of a queue that a call of SNS made."""
    return topics.subscription(
        "queue", name=name, **{"sdk": {"region": "eu-west-1", "url": URL}, **given}
    )


def shown(
    message: Message, notifier: Notifier = NOTIFIER, identifier: str = FIRST_ID, **given: Any
) -> dict[str, Any]:
    """The members of a message's notification."""
    text = notification(notifier, "alice", message, identifier, **given)
    members: dict[str, Any] = json.loads(text)
    return members


# ---- the text -----------------------------------------------------------------------------------


def test_a_plain_message_has_these_members_and_no_others() -> None:
    text = notification(NOTIFIER, "alice", Message(body='"é"'), FIRST_ID)

    assert text == (
        '{"Type":"Notification",'
        f'"MessageId":"{uuid_of(FIRST_ID)}",'
        f'"TopicArn":"{TOPIC_ARN}",'
        r'"Message":"\"é\"",'
        '"Timestamp":"2026-11-18T11:06:40.123Z",'
        f'"UnsubscribeURL":"{UNSUBSCRIBE_URL}"}}'
    )


def test_messages_of_a_send_have_their_own_ids_and_the_same_time() -> None:
    first, last = (shown(Message(body="x"), identifier=message_id(SEND_ID, n)) for n in (0, 15))

    assert first["Timestamp"] == last["Timestamp"]
    assert first["MessageId"] != last["MessageId"]


def test_a_fifo_topic_tells_the_sequence_number() -> None:
    members = shown(Message(body="x"), FIFO_NOTIFIER)

    assert members["SequenceNumber"] == "17950000001230000032"
    assert members["TopicArn"] == f"{TOPIC_ARN}.fifo"
    assert "SequenceNumber" not in shown(Message(body="x"))


@pytest.mark.parametrize(
    ("attributes", "subject"),
    [({"$subject": "News"}, "News"), ({"$subject": ""}, ""), ({"$subject": b"News"}, None)],
)
def test_a_subject_is_shown_if_it_is_text(attributes: Any, subject: str | None) -> None:
    members = shown(Message(body="x", attributes=attributes))

    assert members.get("Subject") == subject
    assert ("Subject" in members) is (subject is not None)
    assert "MessageAttributes" not in members


def test_attributes_are_shown_by_their_sent_names_and_types() -> None:
    sent = {
        "colour": Typed("String", "red"),
        "dots.in-names": Typed("String", "é"),
        "weight": Typed("Number", "1.5"),
        "blob": Typed("Binary", b"\xff\xfe\x00"),
        "list": Typed("String.Array", "[1]"),
    }

    assert shown(Message(body="x", attributes=write(sent)))["MessageAttributes"] == {
        "colour": {"Type": "String", "Value": "red"},
        "dots.in-names": {"Type": "String", "Value": "é"},
        "weight": {"Type": "Number", "Value": "1.5"},
        "blob": {"Type": "Binary", "Value": "//4A"},
        "list": {"Type": "String.Array", "Value": "[1]"},
    }


def test_a_body_of_bytes_is_shown_as_base64() -> None:
    assert shown(Message(body=b"\xff\xfe\x00"))["Message"] == "//4A"


@pytest.mark.parametrize("subject", [None, "a subject"])
def test_a_functions_record_has_all_members_and_the_url_in_the_functions_spelling(
    subject: str | None,
) -> None:
    given = {} if subject is None else {SUBJECT: subject}
    typed = write({"weight": Typed("Number", "1.5")})
    record = function_record(
        NOTIFIER, "alice", Message(body="x", attributes={**typed, **given}), FIRST_ID
    )
    told = shown(Message(body="x", attributes={**typed, **given}))
    del told["UnsubscribeURL"]
    assert record == {
        "EventSource": "aws:sns",
        "EventVersion": "1.0",
        "EventSubscriptionArn": f"{TOPIC_ARN}:readers",
        "Sns": {
            **told,
            "Subject": subject,
            "UnsubscribeUrl": UNSUBSCRIBE_URL,
            "MessageAttributes": {"weight": {"Type": "Number", "Value": "1.5"}},
        },
    }
    plain = function_record(NOTIFIER, "alice", Message(body="x"), FIRST_ID)
    assert plain["Sns"]["MessageAttributes"] == {}


# ---- ids, ARNs and URLs -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("readers", "readers"),
        (f"sns-{UUID}", UUID),
        ("sns-readers", "sns-readers"),
        (UUID, UUID),
        (f"sns-sns-{UUID}", f"sns-sns-{UUID}"),
        (f"sns-{UUID.upper()}", f"sns-{UUID.upper()}"),
        (f"{UUID}-x", f"{UUID}-x"),
    ],
)
def test_an_arn_ends_with_the_name_or_with_the_uuid_drawn_by_sns(name: str, part: str) -> None:
    made = notifier_of(subscription(name))

    assert own_part(name) == part
    assert made.arn("alice") == f"{TOPIC_ARN}:{part}"
    assert made.topic_arn("bob") == "arn:aws:sns:eu-west-1:bob:news"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (UUID, True),
        (UUID.upper(), False),
        (UUID[:-1], False),
        (UUID + "0", False),
        (UUID.replace("-", ""), False),
        (UUID.replace("8", "g"), False),
        ("", False),
    ],
)
def test_a_uuid_is_written_in_small_letters_with_hyphens(text: str, expected: bool) -> None:
    assert is_uuid(text) is expected


def test_a_uuid_takes_17_bytes_in_a_parcel() -> None:
    assert notifier_of(subscription(f"sns-{UUID}")).own == b"\0" + uuid.UUID(UUID).bytes


def test_the_unsubscribe_url_has_the_arn_and_any_token() -> None:
    assert NOTIFIER.unsubscribe_url("alice") == UNSUBSCRIBE_URL
    assert NOTIFIER.unsubscribe_url("alice", "abc") == f"{UNSUBSCRIBE_URL}&Token=abc"
    members = shown(Message(body="x"), unsubscribe_token="abc")
    assert members["UnsubscribeURL"] == f"{UNSUBSCRIBE_URL}&Token=abc"


def test_a_subscription_of_the_native_api_has_no_region_and_no_url() -> None:
    made = notifier_of(subscription(sdk={}))

    assert (made.region, made.url) == ("", "")
    assert made.arn("alice") == "arn:aws:sns::alice:news:readers"


# ---- sequence numbers ---------------------------------------------------------------------------


def test_sequence_numbers_are_in_the_order_of_the_log() -> None:
    """By the send's time, by chance within it, and by the place in the send."""
    sends = [
        ulid.encode(time_ms, chance.to_bytes(2, "big") + b"\x80" * 8)
        for time_ms in (0, 1, SENT_MS, SENT_MS + 1, 9_999_999_999_999)
        for chance in (0, 1, 255, 256, 0x1234, 0xFFFF)
    ]
    assert sends == sorted(sends)

    numbers = [
        sequence_number(message_id(send, position)) for send in sends for position in (0, 1, 15)
    ]

    assert numbers == sorted(set(numbers))
    assert {len(number) for number in numbers} == {20}
    assert all(number.isdecimal() for number in numbers)


def test_a_sequence_number_is_the_time_and_the_place_among_its_sends() -> None:
    assert sequence_number(message_id(SEND_ID, 5)) == "1795000000123" + "0000037"
    last = ulid.encode(SENT_MS, b"\xff" * 10)
    assert sequence_number(message_id(last, 15)) == "1795000000123" + "1048575"


# ---- in a parcel --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["readers", f"sns-{UUID}", "ünlike"])
def test_a_parcel_names_the_subscription_of_its_messages(name: str) -> None:
    made = subscription(name)
    held = parcel(2, parcel_id=SEND_ID, others=as_attribute(made))

    assert list(held.others) == ["N"]
    assert notifier_in(held) == notifier_of(made)


def test_a_message_of_such_a_parcel_is_shown_by_its_own_id() -> None:
    held = parcel(2, parcel_id=SEND_ID, others=as_attribute(subscription()))
    message = Message(body="x")

    assert notification_of(held, 1, message, "alice") == notification(
        NOTIFIER, "alice", message, message_id(SEND_ID, 1)
    )


def test_messages_of_other_parcels_are_shown_as_they_are() -> None:
    for held in (parcel(), parcel(others={"flags": {"N": "1"}})):
        assert notifier_in(held) is None
        assert notification_of(held, 0, Message(body="x"), "alice") is None


@pytest.mark.parametrize(("name", "text"), [("a", "x"), ("a", "Ω" * 3)])
def test_the_text_is_within_the_told_bytes_of_its_parcel(name: str, text: str) -> None:
    message = Message(body=text * 1_000, attributes={name: '"' * 200})
    held = parcel(
        parcel_id=SEND_ID,
        sizes=(message.size_bytes,),
        answer_percent=message.answer_percent,
        others=as_attribute(subscription()),
    )

    escaped = json.dumps(notification_of(held, 0, message, "alice"), ensure_ascii=False)

    assert len(escaped.encode()) <= held.answer_bytes(0)
