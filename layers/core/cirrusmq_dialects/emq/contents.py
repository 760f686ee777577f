"""A message's body and attributes: as EMQ has them, and as the core keeps them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cirrusmq.base import sdk_attributes
from cirrusmq.base.sdk_attributes import BYTES, TEXT, Typed
from cirrusmq.model.message import Message
from cirrusmq_dialects.bodies import in_request
from cirrusmq_dialects.emq.errors import MESSAGE_BODY_MISSING, EmqError, invalid

_TYPE = re.compile(r"(?i:string|binary)[A-Za-z0-9.]{0,100}", re.ASCII)
_FORMS = {"STRING": (TEXT, "stringValue"), "BINARY": (BYTES, "binaryValue")}
"""The core's name of the plain type and the field of the value, by the beginning of a type."""


def native(body: str | None, attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns a body and its attributes as a message in a request of the core's."""
    if not body:
        raise EmqError(MESSAGE_BODY_MISSING, "messageBody: must have at least 1 character")
    if not attributes:
        return {"body": body}
    read = {name: typed("messageAttributes", each) for name, each in attributes.items()}
    kept = sdk_attributes.write(read)
    return {"body": body, "attributes": {name: in_request(kept[name]) for name in kept}}


def typed(field: str, given: Any) -> Typed:
    """Reads an attribute's value, which is in a field of this name. Raises EmqError."""
    kind = getattr(given, "type", None) or ""
    if not _TYPE.fullmatch(kind):
        reason = "must begin with STRING or BINARY, then have letters, digits and dots"
        raise invalid(field, f"a type {reason}")
    own, member = _FORMS[kind[:6].upper()]
    value = getattr(given, member)
    if value is None:
        raise invalid(field, f"a value of type {kind} is missing")
    return Typed(own if kind in _FORMS else kind, value)


def shown_attributes(message: Message) -> dict[str, Any]:
    """The attributes that were sent; types of other senders come behind STRING or BINARY."""
    found = {}
    for name, (kind, value) in sdk_attributes.read(message.attributes).items():
        form = "STRING" if isinstance(value, str) else "BINARY"
        own, member = _FORMS[form]
        shown = form if kind == own else kind
        if shown[:6].upper() != form:
            shown = f"{form}.{kind}"
        found[name] = {"type": shown, member: value}
    return found
