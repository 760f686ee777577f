"""A message's body and attributes: as SQS has them, and as the core keeps them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from cirrusmq.base import sdk_attributes
from cirrusmq.base.reserved_attributes import ONCE, TRACE
from cirrusmq.base.sdk_attributes import TRACE_HEADER, Typed
from cirrusmq.model.message import Message
from cirrusmq_dialects.bodies import in_request
from cirrusmq_dialects.sqs.errors import SqsError, missing
from cirrusmq_dialects.sqs.reading import Members, objects, text

_ATTRIBUTES = 10
_NOT_ALLOWED = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PLAIN = b"\t\n\r" + bytes(range(0x20, 0x80))
_TYPE = re.compile(r"(?=.{1,256}\Z)(String|Number|Binary)(\.[A-Za-z0-9_.-]+)?", re.ASCII)
_NAME = re.compile(r"(?=.{1,256}\Z)[\w-]+(\.[\w-]+)*")
"""Letters of every language: AWS takes them, though its page names ASCII alone."""
_RESERVED = ("aws.", "amazon.")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a message, as a sender gave it."""

    body: str
    attributes: dict[str, Typed]
    trace: str | None

    @property
    def size_bytes(self) -> int:
        """Bytes of the body, and of the attributes' names, types and values."""
        size = len(self.body.encode())
        for name, (kind, value) in self.attributes.items():
            size += len(name.encode()) + len(kind) + len(_bytes(value))
        return size

    def native(self, once: str | None, trace: str | None) -> dict[str, Any]:
        """The message in a request of the core's.

        `once`: the deduplication id to show later. `trace`: of the call, unless it has one itself.
        """
        kept = sdk_attributes.write(self.attributes)
        trace = trace if self.trace is None else self.trace
        if trace is not None:
            kept[TRACE] = trace
        if once is not None:
            kept[ONCE] = once
        shown = {name: in_request(value) for name, value in kept.items()}
        return {"body": self.body, "attributes": shown} if shown else {"body": self.body}

    def digests(self, body_md5: str | None) -> dict[str, str]:
        """Returns the MD5s by which an SDK checks a stored message; `body_md5`: if known."""
        found = {"MD5OfMessageBody": body_md5 or md5(self.body.encode())}
        if self.attributes:
            found["MD5OfMessageAttributes"] = attributes_md5(self.attributes)
        if self.trace is not None:
            traced = {TRACE_HEADER: Typed("String", self.trace)}
            found["MD5OfMessageSystemAttributes"] = attributes_md5(traced)
        return found


def read_content(members: Members) -> Content:
    """The content of a message in a request, checked."""
    body = text(members, "MessageBody")
    if not body:
        raise missing("MessageBody")
    odd = None if _is_plain(body) else _NOT_ALLOWED.search(body)
    if odd is not None:
        raise SqsError(
            "InvalidMessageContents",
            f"Invalid character U+{ord(odd[0]):04X} was found in the message body, the set of"
            " allowed characters is #x9 | #xA | #xD | [#x20 to #xD7FF] | [#xE000 to #xFFFD]"
            " | [#x10000 to #x10FFFF]",
        )
    given = objects(members, "MessageAttributes")
    if len(given) > _ATTRIBUTES:
        raise SqsError(
            "InvalidParameterValue",
            f"Number of message attributes [{len(given)}] exceeds the allowed maximum"
            f" [{_ATTRIBUTES}].",
        )
    system = objects(members, "MessageSystemAttributes")
    trace = None
    for name, value in system.items():
        if name != TRACE_HEADER:
            raise SqsError(
                "InvalidParameterValue", f"Message system attribute {name[:80]} is not known."
            )
        typed = _read_typed(name, value)
        if typed.type != "String":
            raise SqsError("InvalidParameterValue", f"{TRACE_HEADER} must be of type String.")
        trace = str(typed.value)
    return Content(
        body=body,
        attributes={name: _read_attribute(name, value) for name, value in given.items()},
        trace=trace,
    )


def shown_attributes(message: Message, asked: Iterable[str]) -> dict[str, Typed]:
    """The attributes that a receiver asks for: names, beginnings (`a.*`), `All`, `*` or `.*`."""
    wanted = list(asked)
    if not wanted:
        return {}
    found = sdk_attributes.read(message.attributes)
    return {name: typed for name, typed in found.items() if any(_fits(name, w) for w in wanted)}


def to_members(attributes: Mapping[str, Typed]) -> dict[str, dict[str, str]]:
    """Attributes as an answer has them."""
    return {
        name: {"DataType": kind, "StringValue": value}
        if isinstance(value, str)
        else {"DataType": kind, "BinaryValue": base64.b64encode(value).decode()}
        for name, (kind, value) in attributes.items()
    }


def attributes_md5(attributes: Mapping[str, Typed]) -> str:
    """The MD5 of attributes, in hexadecimal digits."""
    digest = hashlib.md5(usedforsecurity=False)
    for name in sorted(attributes, key=str.encode):
        kind, value = attributes[name]
        for part in (name.encode(), kind.encode()):
            digest.update(len(part).to_bytes(4, "big") + part)
        content = _bytes(value)
        mark = b"\1" if isinstance(value, str) else b"\2"
        digest.update(mark + len(content).to_bytes(4, "big") + content)
    return digest.hexdigest()


def md5(content: bytes) -> str:
    """The MD5 of bytes, in hexadecimal digits."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def content_id(body: str) -> str:
    """The deduplication id of a body."""
    return hashlib.sha256(body.encode()).hexdigest()


def _is_plain(body: str) -> bool:
    """Returns True if it has allowed ASCII characters alone: faster than an expression."""
    return body.isascii() and not body.encode().translate(None, _PLAIN)


def _fits(name: str, wanted: str) -> bool:
    if wanted in ("All", "*"):
        return True
    # The dot is no part of the beginning: `bar.*` is also the attribute `bar`, and `.*` any one.
    return name.startswith(wanted[:-2]) if wanted.endswith(".*") else name == wanted


def _read_attribute(name: str, value: object) -> Typed:
    if not _NAME.fullmatch(name) or name.lower().startswith(_RESERVED):
        raise SqsError(
            "InvalidParameterValue",
            f"Message (user) attribute name '{name[:80]}' must be 1 to 256 alphanumeric characters,"
            " '_', '-' and single '.', and must not begin with AWS. or Amazon.",
        )
    return _read_typed(name, value)


def _read_typed(name: str, given: object) -> Typed:
    told = f"Message (user) attribute '{name[:80]}'"
    if not isinstance(given, dict):
        raise SqsError("SerializationException", f"{told} must be a structure.")
    kind = text(given, "DataType")
    if not kind:
        raise SqsError("InvalidParameterValue", f"{told} must contain a non-empty attribute type.")
    if not _TYPE.fullmatch(kind):
        raise SqsError(
            "InvalidParameterValue",
            f"{told} has an invalid message attribute type, the set of supported type prefixes is"
            " Binary, Number, and String.",
        )
    if given.get("StringListValues") or given.get("BinaryListValues"):
        raise SqsError("InvalidParameterValue", f"{told} has list values, which are not supported.")
    binary = kind.startswith("Binary")
    value = text(given, "BinaryValue" if binary else "StringValue")
    if not value:
        raise SqsError(
            "InvalidParameterValue",
            f"{told} must contain a non-empty value of type '{'Binary' if binary else 'String'}'.",
        )
    if binary:
        try:
            return Typed(kind, base64.b64decode(value, validate=True))
        except (binascii.Error, ValueError) as error:
            raise SqsError("SerializationException", f"{told} must be base64.") from error
    if kind.startswith("Number") and not _NUMBER.fullmatch(value):
        raise SqsError("InvalidParameterValue", f"{told} must be a number.")
    if _NOT_ALLOWED.search(value):
        raise SqsError("InvalidMessageContents", f"{told} has an invalid character.")
    return Typed(kind, value)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
