"""Rules for fields of requests beyond their types: the code checks them separately.

By a field's name, or `Struct.field` where structs differ. A field whose struct describes it keeps
that: a refusal says the same words.
"""

from __future__ import annotations

from typing import Any

from cirrusmq.base import limits
from cirrusmq.filters.routing import KEY_BYTES, KEY_DOTS
from cirrusmq.filters.tags import TAG_CHARACTERS, TAGS_PER_MESSAGE
from cirrusmq.webhooks.urls import ENDPOINT_CHARACTERS

_SECONDS = limits.ATTEMPT_AGE_MS // 1_000
_TEXTS = {
    "account": "an account's name",
    "attempt": f"a ULID of the caller's own, at most {_SECONDS} s old: the call that is repeated"
    " with it is known again",
    "attributes": f"at most {limits.ATTRIBUTES}, with values of at most"
    f" {limits.ATTRIBUTE_BYTES:,} bytes",
    "body": "a text of at least one byte",
    "body_base64": "bytes, in the place of `body`",
    "DeadLetterInput.queue": "a queue's name",
    "dead_letter_queue": "a queue's name",
    "endpoint": f"a queue's name, or a URL of at most {ENDPOINT_CHARACTERS} characters",
    "expires_at": "a time",
    "group": "the producers that are asked",
    "handle": "of the publish that prepared messages",
    "receiver": "one of the queue's receivers; without it, the queue itself",
    "routing_key": f"at most {KEY_BYTES} bytes and {KEY_DOTS} dots",
    "tags": f"at most {TAGS_PER_MESSAGE}, of 1 to {TAG_CHARACTERS} characters",
    "to": "a queue's name",
    "token": "the one that came to the endpoint",
}
REQUESTS = ("Input", "InputChange", "Request", "SendMessage", "PublishMessage")
"""How the names of structs end that a caller gives."""


def described(schemas: dict[str, Any]) -> dict[str, Any]:
    """The schemas, in which the fields of requests have these texts."""
    return {
        name: _described(name, schema) if name.endswith(REQUESTS) else schema
        for name, schema in schemas.items()
    }


def tells(schema: dict[str, Any]) -> bool:
    """Return True if a field's schema describes its values."""
    told = ("description", "$ref", "enum")
    parts = [schema, *schema.get("anyOf", ())]
    return schema.get("type") == "boolean" or any(each in part for each in told for part in parts)


def _described(struct: str, schema: dict[str, Any]) -> dict[str, Any]:
    properties = dict(schema.get("properties", {}))
    for name, held in properties.items():
        text = _TEXTS.get(f"{struct}.{name}", _TEXTS.get(name))
        if text is not None and not tells(held):
            properties[name] = {"description": text, **held}
    return {**schema, "properties": properties} if properties else schema
