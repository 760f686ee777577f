"""A message's body, tag and properties: as the service has them, and as the core keeps them."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any

from cirrusmq.base import sdk_attributes
from cirrusmq.base.sdk_attributes import TEXT, Typed
from cirrusmq.model.message import Message
from cirrusmq_dialects.aliyun.errors import invalid
from cirrusmq_dialects.aliyun.writing import NO_XML

_GROUP, _DUE, _CHECK = "__SHARDINGKEY", "__STARTDELIVERTIME", "__TransCheckT"
_CHECK_SECONDS = (10, 300)
_MS = re.compile(r"[0-9]{1,15}", re.ASCII)
_ENCODING = ("bodyEncoding", "base64")
"""The property of a body that XML cannot carry."""


class Draft:
    """A message to publish, as a request of the core has it."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        body = fields.get("MessageBody", "")
        if not body:
            raise invalid("MessageBody must have at least one character.")
        properties = _read_properties(fields.get("Properties", ""))
        self.md5 = _md5(body)
        self.native: dict[str, Any] = {"body": body}
        self.check_after_seconds: int | None = None
        """The wait before the first check of a half message."""
        tag = fields.get("MessageTag", "")
        if tag:
            self.native["tags"] = [tag]
        if _GROUP in properties:
            self.native["group"] = properties.pop(_GROUP)
        if _CHECK in properties:
            self.check_after_seconds = _number(_CHECK, properties.pop(_CHECK), _CHECK_SECONDS)
        if _DUE in properties:
            if not _MS.fullmatch(properties[_DUE]):
                raise invalid(f"{_DUE} must be a time in milliseconds.")
            self.native["deliver_at"] = int(properties[_DUE]) / 1000
        kept = {name: Typed(TEXT, value) for name, value in properties.items()}
        if kept:
            self.native["attributes"] = sdk_attributes.write(kept)


def shown(message: Message) -> dict[str, str]:
    """The elements of a message that its publisher gave."""
    body = message.body if isinstance(message.body, str) else None
    properties = {
        name: typed.value
        for name, typed in sdk_attributes.read(message.attributes).items()
        # Attributes of the core's own senders may be no property.
        if isinstance(typed.value, str) and _is_property(name) and _is_property(typed.value)
    }
    if message.group is not None and _is_property(message.group):
        properties[_GROUP] = message.group
    if body is None or NO_XML.search(body):
        body = base64.b64encode(message.body_bytes).decode()
        properties[_ENCODING[0]] = _ENCODING[1]
    fields = {"MessageBodyMD5": _md5(body), "MessageBody": body}
    if message.tags:
        fields["MessageTag"] = "||".join(message.tags)
    if properties:
        fields["Properties"] = "".join(f"{name}:{value}|" for name, value in properties.items())
    return fields


def _read_properties(text: str) -> dict[str, str]:
    """Pairs of `name:value`, separated by `|`."""
    found: dict[str, str] = {}
    for pair in text.split("|"):
        if not pair:
            continue
        name, _, value = pair.partition(":")
        if not name or not value or ":" in value:
            raise invalid("Properties must be pairs of name:value, separated by |.")
        found[name] = value
    return found


def _is_property(text: str) -> bool:
    return bool(text) and ":" not in text and "|" not in text and not NO_XML.search(text)


def _number(name: str, text: str, bounds: tuple[int, int]) -> int:
    if not _MS.fullmatch(text) or not bounds[0] <= int(text) <= bounds[1]:
        raise invalid(f"{name} must be {bounds[0]} to {bounds[1]} seconds.")
    return int(text)


def _md5(body: str) -> str:
    return hashlib.md5(body.encode(), usedforsecurity=False).hexdigest().upper()
