"""A message's body and attributes: as EMQ has them, and as the core keeps them."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from cirrusmq.base import sdk_attributes
from cirrusmq.base.sdk_attributes import BYTES, TEXT, Typed
from cirrusmq.model.message import Message
from cirrusmq_dialects.emq.errors import MESSAGE_BODY_MISSING, EmqError, invalid
from cirrusmq_dialects.emq.structs import Struct, of

_TYPE = re.compile(r"(?i:string|binary)[A-Za-z0-9.]{0,100}", re.ASCII)
_PLAIN = {"STRING": TEXT, "BINARY": BYTES}
_SHOWN = {TEXT: "STRING", BYTES: "BINARY"}


def native(body: str | None, attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns a body and its attributes as a message in a request of the core's."""
    if not body:
        raise EmqError(MESSAGE_BODY_MISSING, "messageBody: must have at least 1 character")
    if not attributes:
        return {"body": body}
    read = {name: typed("messageAttributes", each) for name, each in attributes.items()}
    return {
        "body": body,
        "attributes": {
            name: value if isinstance(value, str) else {"base64": base64.b64encode(value).decode()}
            for name, value in sdk_attributes.write(read).items()
        },
    }


def typed(field: str, given: Any) -> Typed:
    """Reads an attribute's value, which is in a field of this name. Raises EmqError."""
    kind = given.type or ""
    if not _TYPE.fullmatch(kind):
        reason = "must begin with STRING or BINARY, then have letters, digits and dots"
        raise invalid(field, f"a type {reason}")
    binary = kind[:6].lower() == "binary"
    value = given.binaryValue if binary else given.stringValue
    if value is None:
        raise invalid(field, f"a value of type {kind} is missing")
    return Typed(_PLAIN.get(kind, kind), value)


def shown_attributes(message: Message) -> dict[str, Struct]:
    """The attributes that were sent; types of other senders come behind STRING or BINARY."""
    found = {}
    for name, (kind, value) in sdk_attributes.read(message.attributes).items():
        text = isinstance(value, str)
        if kind in _SHOWN:
            kind = _SHOWN[kind]
        elif kind[:6].lower() != ("string" if text else "binary"):
            kind = f"{'STRING' if text else 'BINARY'}.{kind}"
        of_kind = {"stringValue" if text else "binaryValue": value}
        found[name] = of.MessageAttribute(type=kind, **of_kind)
    return found


def shown_body(message: Message) -> str:
    """A body as EMQ shows it: bytes of the core's own senders as base64."""
    if isinstance(message.body, str):
        return message.body
    return base64.b64encode(message.body).decode()
