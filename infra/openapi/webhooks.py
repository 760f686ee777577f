"""The requests that subscribers get: `webhooks` of the document."""

from __future__ import annotations

from typing import Any

from cirrusmq.model.trace_context import TRACEPARENT, TRACESTATE
from cirrusmq.webhooks.client import TIMEOUT_SECONDS
from cirrusmq.webhooks.requests import (
    ATTRIBUTE_HEADER_BYTES,
    ATTRIBUTE_PREFIX,
    ATTRIBUTES_LEFT_OUT,
    CONFIRMATION,
    CONTENT_TYPE,
    MESSAGE_HEADER_BYTES,
)

from .policies import one_line

_SIGNED = """\
Signed as Standard Webhooks has it: `webhook-signature` holds, for each secret in force, `v1,` and
the base64 of HMAC-SHA256 over `<webhook-id>.<webhook-timestamp>.<body>`; the key is what the base64
behind `whsec_` stands for."""
_TAKEN = f"""\
Taken. Any 2xx counts, as soon as its status and headers are there, within {TIMEOUT_SECONDS:g} s of
the attempt's start."""
_FAILED = """\
Any other status, a redirect, or no answer in time: the attempt failed, and the subscription's
retry policy says when the next one is."""
_TEXT: dict[str, Any] = {"type": "string"}
_SIGNATURE = {
    "webhook-id": "the message's id, the same in each attempt; of a confirmation the request's own",
    "webhook-timestamp": "seconds since the epoch",
    "webhook-signature": "one signature for each secret in force, separated by blanks",
    "x-cmq-request-id": "new in each attempt",
}


def webhooks() -> dict[str, Any]:
    """What a URL is posted: messages, in one of two formats, and the request to confirm."""
    return {
        "message": _post(
            "A message",
            "A message of a topic, to a subscription of protocol `http` that was confirmed.",
            {
                **_SIGNATURE,
                "x-cmq-message-id": "the message's id",
                "x-cmq-message-tag": "its tags, if it has any, separated by commas",
                TRACEPARENT: "its attribute of this name, if that is one of W3C's Trace Context",
                TRACESTATE: "the same, beside a `traceparent`",
                f"{ATTRIBUTE_PREFIX}<name>": "of `simplified`: an attribute; all together have at"
                f" most {ATTRIBUTE_HEADER_BYTES:,} bytes, with the tags {MESSAGE_HEADER_BYTES:,}",
                ATTRIBUTES_LEFT_OUT: "of `simplified`: how many attributes did not fit",
            },
            {
                "oneOf": [
                    {"$ref": "#/components/schemas/PostedMessage"},
                    {"description": "of `simplified`: the message's own body", **_TEXT},
                ]
            },
        ),
        "confirmation": _post(
            "Asks a new endpoint to confirm",
            "The endpoint of a new subscription, or a new endpoint, is asked once. It confirms by"
            ' posting `{"token": ...}` to `confirmUrl`, which takes no key.',
            {**_SIGNATURE, "x-cmq-type": f"`{CONFIRMATION}`"},
            {"$ref": "#/components/schemas/ConfirmationRequest"},
        ),
    }


def schemas() -> dict[str, Any]:
    """The JSON objects in these requests."""
    return {
        "PostedMessage": _object(
            "A message as a URL gets it, with `content_format` `json`.",
            {
                "TopicOwner": _described("the account of the topic"),
                "topicName": _TEXT,
                "subscriptionName": _TEXT,
                "msgId": _TEXT,
                "msgBody": _described("the body; of bytes, their base64"),
                "publishTime": {"type": "integer", "description": "seconds since the epoch"},
            },
            {
                "bodyEncoding": {"const": "base64", "description": "where the body is bytes"},
                "msgAttributes": {
                    "type": "object",
                    "description": "a value of bytes is an object with their base64",
                    "additionalProperties": {
                        "oneOf": [_TEXT, _object("Bytes.", {"base64": _TEXT}, {})]
                    },
                },
                "msgTags": {"type": "array", "items": _TEXT},
                "sender": _described("who published it, if that is not the topic's account"),
            },
        ),
        "ConfirmationRequest": _object(
            "Asks the endpoint of a subscription to confirm.",
            {
                "Type": {"const": CONFIRMATION},
                "TopicOwner": _described("the account of the topic"),
                "topicName": _TEXT,
                "subscriptionName": _TEXT,
                "token": _described("the body's `token` of `POST .../confirm`"),
                "confirmUrl": {"type": "string", "format": "uri"},
                "expiresAt": {"type": "string", "format": "date-time"},
            },
            {},
        ),
    }


def _post(summary: str, text: str, headers: dict[str, str], schema: Any) -> dict[str, Any]:
    return {
        "post": {
            "summary": summary,
            "description": f"{text} {one_line(_SIGNED)}",
            "parameters": [
                {"name": name, "in": "header", "description": told, "schema": _TEXT}
                for name, told in headers.items()
            ],
            "requestBody": {"required": True, "content": {CONTENT_TYPE: {"schema": schema}}},
            "responses": {
                "2XX": {"description": one_line(_TAKEN)},
                "default": {"description": one_line(_FAILED)},
            },
        }
    }


def _object(text: str, needed: dict[str, Any], optional: dict[str, Any]) -> dict[str, Any]:
    return {
        "description": text,
        "type": "object",
        "properties": needed | optional,
        "required": list(needed),
        "additionalProperties": False,
    }


def _described(text: str) -> dict[str, Any]:
    return {"type": "string", "description": text}
