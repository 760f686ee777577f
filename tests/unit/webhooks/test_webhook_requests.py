"""The requests that subscribers get: headers and bodies to the letter."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

import pytest
from tests.unit.topics import subscription

from cirrusmq.model.message import Message
from cirrusmq.model.topic import Subscription
from cirrusmq.webhooks import requests
from cirrusmq.webhooks.requests import confirmation, delivery

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOW_S = 1_795_160_000


def delivered(message: Message, **changed: Any) -> tuple[dict[str, str], bytes]:
    arguments: dict[str, Any] = {
        "message_id": "01JD0000000000000000000000-3",
        "published_ms": 1_795_159_999_999,
        "secrets": [SECRET],
        "request_id": "request-1",
        "now_s": NOW_S,
    }
    arguments |= changed
    return delivery(billing(arguments.pop("content_format", "json")), message=message, **arguments)


def billing(content_format: str = "json") -> Subscription:
    return subscription(
        "http", account="acme", topic="orders", name="billing", content_format=content_format
    )


def test_a_json_delivery_names_the_source_of_its_message() -> None:
    headers, body = delivered(Message(body='täxt "1"\n', tags=("red", "blue")))
    assert json.loads(body) == {
        "TopicOwner": "acme",
        "topicName": "orders",
        "subscriptionName": "billing",
        "msgId": "01JD0000000000000000000000-3",
        "msgBody": 'täxt "1"\n',
        "publishTime": 1_795_159_999,
        "msgTags": ["red", "blue"],
    }
    assert headers == {
        "Content-Type": "text/plain; charset=utf-8",
        "x-cmq-request-id": "request-1",
        "x-cmq-message-id": "01JD0000000000000000000000-3",
        "x-cmq-message-tag": "red, blue",
        "webhook-id": "01JD0000000000000000000000-3",
        "webhook-timestamp": str(NOW_S),
        "webhook-signature": requests.sign(SECRET, "01JD0000000000000000000000-3", NOW_S, body),
    }


def test_a_binary_body_travels_as_base64_and_says_so() -> None:
    _, body = delivered(Message(body=b"\x00\xff\xfe"))
    content = json.loads(body)
    assert content["bodyEncoding"] == "base64"
    assert base64.b64decode(content["msgBody"]) == b"\x00\xff\xfe"


@pytest.mark.parametrize("body", ["täxt", b"\x00\xff\xfe"])
def test_a_simplified_delivery_is_the_raw_body_signed_as_it_is(body: str | bytes) -> None:
    raw = body.encode() if isinstance(body, str) else body
    headers, sent = delivered(Message(body=body), content_format="simplified")
    assert sent == raw
    assert headers["webhook-signature"] == requests.sign(SECRET, headers["webhook-id"], NOW_S, raw)


def test_without_tags_there_is_no_header_of_tags() -> None:
    headers, _ = delivered(Message(body="x"))
    assert "x-cmq-message-tag" not in headers


def test_every_text_survives_as_a_tag_in_plain_ascii() -> None:
    tags = ("größe", "a, b", "100%", " ", "日本", "😀", "a||b", "\x85\u2028", "%2C", "~!'\"")
    headers, _ = delivered(Message(body="x", tags=tags))
    value = headers["x-cmq-message-tag"]
    assert value.isascii()
    assert value.isprintable()
    assert tuple(map(unquote, value.split(", "))) == tags


def attribute_headers(attributes: dict[str, str | bytes]) -> dict[str, str]:
    headers, body = delivered(Message(body="x", attributes=attributes), content_format="simplified")
    assert body == b"x"
    assert not [name for name in headers if not name.isascii()]
    return {name: value for name, value in headers.items() if name.startswith("x-cmq-attribute")}


def test_a_json_delivery_has_the_attributes_in_its_body_alone() -> None:
    attributes: dict[str, str | bytes] = {"region": 'tä"xt\r\n', "raw": b"\xff\x00", "empty": ""}
    headers, body = delivered(Message(body="x", attributes=attributes))
    told = json.loads(body)["msgAttributes"]
    assert told == {"region": 'tä"xt\r\n', "raw": {"base64": "/wA="}, "empty": ""}
    assert not [name for name in headers if "attribute" in name]
    _, bare = delivered(Message(body="x"))
    assert json.loads(bare).keys().isdisjoint({"msgAttributes", "msgTags"})


def test_every_value_survives_as_a_header_of_a_simplified_delivery() -> None:
    attributes: dict[str, str | bytes] = {
        "a": "plain",
        "B_2": "größe, 100%",
        "$c": "line\r\nx-cmq-message-id: forged",
        "d": b"\xff\x00\n",
        "e": "",
        "f": " blanks ",
        "g": "😀\x00\x7f\x85\u2028",
    }
    headers = attribute_headers(attributes)
    assert headers["x-cmq-attribute-a"] == "plain"
    assert headers["x-cmq-attribute-e"] == ""
    for name, value in attributes.items():
        held = headers[f"x-cmq-attribute-{name}"]
        assert held.isascii()
        assert " " not in held
        assert held == "" or held.isprintable()
        data = value.encode() if isinstance(value, str) else value
        assert unquote_to_bytes(held) == data
    assert len(headers) == len(attributes)


def test_headers_of_attributes_are_bounded_and_count_the_left_out_ones() -> None:
    attributes: dict[str, str | bytes] = {f"a{n}": "é" * 512 for n in range(9)}
    attributes["small"] = "here"
    headers = attribute_headers(attributes)
    # A value of 1,024 bytes of two-byte letters is 3,072 bytes of a header.
    assert headers == {
        "x-cmq-attribute-a0": "%C3%A9" * 512,
        "x-cmq-attribute-small": "here",
        "x-cmq-attributes-left-out": "8",
    }
    assert "x-cmq-attributes-left-out" not in attribute_headers({"a": "x" * 1_024})
    plain = attribute_headers({f"a{n}": "x" * 1_024 for n in range(10)})
    size = sum(len(name) + len(value) for name, value in plain.items())
    assert len(plain) == 4
    assert size < 4_096 + 30
    _, body = delivered(Message(body="x", attributes=attributes))
    assert len(json.loads(body)["msgAttributes"]) == 10


def test_attributes_fill_the_headers_room_left_by_long_tags() -> None:
    attributes: dict[str, str | bytes] = {f"a{n}": "x" * 1_000 for n in range(4)}
    few = Message(body="x", attributes=attributes, tags=("t" * 64,) * 10)
    many = Message(body="x", attributes=attributes, tags=("é" * 64,) * 10)
    limit = Message(body="x", attributes=attributes, tags=("😀" * 64,) * 10)
    for message, held in ((few, 4), (many, 2), (limit, 0)):
        headers, _ = delivered(message, content_format="simplified")
        named = [name for name in headers if name.startswith("x-cmq-attribute-")]
        assert len(named) == held
        assert headers.get("x-cmq-attributes-left-out", "0") == str(4 - held)
        tags = headers["x-cmq-message-tag"].split(", ")
        assert [unquote_to_bytes(tag).decode() for tag in tags] == list(message.tags)


def test_a_retry_has_the_same_webhook_id_under_another_request_id() -> None:
    first, _ = delivered(Message(body="x"))
    second, _ = delivered(Message(body="x"), request_id="request-2", now_s=NOW_S + 60)
    assert first["webhook-id"] == second["webhook-id"]
    assert first["x-cmq-request-id"] != second["x-cmq-request-id"]
    assert second["webhook-timestamp"] == str(NOW_S + 60)


def test_a_confirmation_is_signed_and_says_how_to_confirm() -> None:
    headers, body = confirmation(
        billing(),
        "t0k3n",
        confirm_url="https://mq.example/confirm",
        expires_ms=1_795_160_000_123,
        secrets=[SECRET],
        request_id="request-1",
        now_s=NOW_S,
    )
    assert json.loads(body) == {
        "Type": "SubscriptionConfirmation",
        "TopicOwner": "acme",
        "topicName": "orders",
        "subscriptionName": "billing",
        "token": "t0k3n",
        "confirmUrl": "https://mq.example/confirm",
        "expiresAt": "2026-11-20T07:33:20.123Z",
    }
    assert headers == {
        "Content-Type": "text/plain; charset=utf-8",
        "x-cmq-type": "SubscriptionConfirmation",
        "x-cmq-request-id": "request-1",
        "webhook-id": "request-1",
        "webhook-timestamp": str(NOW_S),
        "webhook-signature": requests.sign(SECRET, "request-1", NOW_S, body),
    }
