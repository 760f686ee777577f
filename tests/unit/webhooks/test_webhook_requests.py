"""The requests that subscribers get: headers and bodies to the letter."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import unquote

import pytest

from cirrusmq.model.message import Message
from cirrusmq.webhooks import signature
from cirrusmq.webhooks.requests import confirmation, delivery

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOW_S = 1_795_160_000


def delivered(message: Message, **changed: Any) -> tuple[dict[str, str], bytes]:
    arguments: dict[str, Any] = {
        "account": "acme",
        "topic": "orders",
        "subscription": "billing",
        "message_id": "01JD0000000000000000000000-3",
        "message": message,
        "published_ms": 1_795_159_999_999,
        "content_format": "json",
        "secrets": [SECRET],
        "request_id": "request-1",
        "now_s": NOW_S,
    }
    return delivery(**{**arguments, **changed})


def test_a_json_delivery_says_where_the_message_comes_from() -> None:
    headers, body = delivered(Message(body='täxt "1"\n', tags=("red", "blue")))
    assert json.loads(body) == {
        "TopicOwner": "acme",
        "topicName": "orders",
        "subscriptionName": "billing",
        "msgId": "01JD0000000000000000000000-3",
        "msgBody": 'täxt "1"\n',
        "publishTime": 1_795_159_999,
    }
    assert headers == {
        "Content-Type": "text/plain",
        "x-cmq-request-id": "request-1",
        "x-cmq-message-id": "01JD0000000000000000000000-3",
        "x-cmq-message-tag": "red, blue",
        "webhook-id": "01JD0000000000000000000000-3",
        "webhook-timestamp": str(NOW_S),
        "webhook-signature": signature.sign(SECRET, "01JD0000000000000000000000-3", NOW_S, body),
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
    assert headers["webhook-signature"] == signature.sign(SECRET, headers["webhook-id"], NOW_S, raw)


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


def test_a_retry_has_the_same_webhook_id_under_another_request_id() -> None:
    first, _ = delivered(Message(body="x"))
    second, _ = delivered(Message(body="x"), request_id="request-2", now_s=NOW_S + 60)
    assert first["webhook-id"] == second["webhook-id"]
    assert first["x-cmq-request-id"] != second["x-cmq-request-id"]
    assert second["webhook-timestamp"] == str(NOW_S + 60)


def test_a_confirmation_is_signed_and_says_how_to_confirm() -> None:
    headers, body = confirmation(
        account="acme",
        topic="orders",
        subscription="billing",
        token="t0k3n",
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
        "Content-Type": "text/plain",
        "x-cmq-type": "SubscriptionConfirmation",
        "x-cmq-request-id": "request-1",
        "webhook-id": "request-1",
        "webhook-timestamp": str(NOW_S),
        "webhook-signature": signature.sign(SECRET, "request-1", NOW_S, body),
    }
