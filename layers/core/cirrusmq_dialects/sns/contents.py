"""A message of a publish: text and attributes, as SNS has them and as the core keeps them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from cirrusmq.base import limits, sdk_attributes
from cirrusmq.base.reserved_attributes import HTTP, HTTPS, LAMBDA, ONCE, SUBJECT, TRACE, TYPES
from cirrusmq.base.sdk_attributes import Typed
from cirrusmq.base.shapes import decode_json
from cirrusmq.model.topic import Topic
from cirrusmq_dialects.bodies import in_request
from cirrusmq_dialects.sns.errors import SnsError, invalid
from cirrusmq_dialects.sns.reading import Members, mapped, text
from cirrusmq_dialects.sns.topic_attributes import CONTENT_BASED, is_fifo

LARGEST_BYTES = 262_144
_ATTRIBUTES = 10
_ATTRIBUTES_BYTES = limits.ATTRIBUTES_BYTES - 1_024
"""Beside them there may be a subject, a deduplication id and the attribute of types."""
_PLAIN = b"\t\n\r" + bytes(range(0x20, 0x80))
_NATIVE_NAME = 64
_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", re.ASCII)
_OF_NAME = re.compile(r"[A-Za-z0-9_.-]", re.ASCII)
_NAME_CHARACTERS = 256
_TYPE = re.compile(r"(?=.{1,256}\Z)(String|Number|Binary)(\.[^,:\x00-\x1f\x7f-\uffff]+)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_SUBJECT = re.compile(r"[!-~][ -~]{0,99}", re.ASCII)
_GROUP = re.compile(r"[!-~]{1,128}", re.ASCII)
_NOT_ALLOWED = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ARRAY = "String.Array"
_URLS = {"http": HTTP, "https": HTTPS}
"""Protocols of URLs, and the attributes with their texts if these are not the text for queues."""
_OF_PLAIN = frozenset({"Id", "Message", "TargetArn", "TopicArn", "Version"})
"""The members of a message that is a text alone, and of its call."""
_NO_TEXTS: Mapping[str, str] = MappingProxyType({})
_NONE: Mapping[str, str | bytes] = MappingProxyType({})


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a message, as a publisher gave it."""

    body: str
    attributes: dict[str, Typed]
    written: Mapping[str, str | bytes] = _NONE
    """The attributes as the core keeps them."""
    group: str | None
    subject: str | None
    once: str | None = None
    """The deduplication id, of a FIFO topic's message."""
    texts: Mapping[str, str] = _NO_TEXTS
    """The texts for URLs and functions that are not the body, by their attributes."""
    trace: str | None = None
    """The trace of the call."""

    @property
    def size_bytes(self) -> int:
        """Bytes of the texts, and of the attributes' names, types and values."""
        size = len(self.body) if self.body.isascii() else len(self.body.encode())
        for name, own in self.texts.items():
            size += len(name) + len(own.encode())
        for name, (kind, value) in self.attributes.items():
            size += len(name) + len(kind) + len(_bytes(value))
        return size

    def kept(self) -> dict[str, str | bytes]:
        """The attributes as the core keeps them, the subject among them.

        Their types are written even if all are plain texts: else a filter policy takes them for
        attributes without types, in which a text may be a number.
        """
        kept: dict[str, str | bytes] = {}
        if self.attributes:
            kept = {TYPES: "", **self.written}
        if self.subject is not None:
            kept[SUBJECT] = self.subject
        if self.once is not None:
            kept[ONCE] = self.once
        if self.trace is not None:
            kept[TRACE] = self.trace
        kept |= self.texts
        return kept

    @property
    def fits_beside(self) -> bool:
        """True if the core takes the attributes: all but a subject and an id are counted."""
        if not self.written and not self.texts:
            return True
        kept = (*self.written.items(), *self.texts.items())
        return sum(len(name) + len(_bytes(value)) for name, value in kept) <= _ATTRIBUTES_BYTES

    def native(self) -> dict[str, Any]:
        """The message in a request of the core's."""
        shown: dict[str, Any] = {"body": self.body}
        if kept := self.kept():
            shown["attributes"] = {name: in_request(value) for name, value in kept.items()}
        if self.group is not None:
            shown["group"] = self.group
        if self.once is not None:
            shown["deduplication_id"] = self.once
        return shown


def read_content(members: Members, topic: Topic, trace: str | None, place: str = "") -> Content:
    """Returns the content of a message for a topic, checked. Raises SnsError.

    trace: the trace of the call, or None. place: where the message is in the call, for refusals; it
    ends in a dot, or is empty.
    """
    if members.keys() <= _OF_PLAIN and not is_fifo(topic):  # as most messages are
        body = text(members, "Message") or ""
        _check_text(body)
        return Content(body=body, attributes={}, group=None, subject=None, trace=trace)
    subject = text(members, "Subject")
    if subject is not None and not _SUBJECT.fullmatch(subject):
        raise invalid("Subject")
    group = text(members, "MessageGroupId")
    if group is not None and not _GROUP.fullmatch(group):
        raise invalid("MessageGroupId")
    body, texts = _texts(members)
    once = _deduplication_id(members, topic, group, body)
    _check_text(body)
    attributes = _read_attributes(members, place) if "MessageAttributes" in members else {}
    return Content(
        body=body,
        attributes=attributes,
        written=_written(attributes),
        group=group,
        subject=subject,
        once=once,
        texts=texts,
        trace=trace,
    )


def _read_attributes(members: Members, place: str) -> dict[str, Typed]:
    """The attributes of a message, checked: SNS's rules, and what the core takes of them."""
    given = mapped(members, "MessageAttributes")
    if len(given) > _ATTRIBUTES:
        raise invalid(f"MessageAttributes Reason: there may be {_ATTRIBUTES} here.")
    return {name: _read_attribute(name, value, place) for name, value in given.items()}


def _written(attributes: Mapping[str, Typed]) -> Mapping[str, str | bytes]:
    """Returns the attributes as the core keeps them. Raises SnsError for a name too long for it."""
    if not attributes:
        return _NONE
    written = sdk_attributes.write(attributes)
    if any(len(name) > _NATIVE_NAME for name in written):
        raise invalid(
            f"MessageAttributes Reason: names have at most {_NATIVE_NAME} characters here; those"
            " other than letters, digits and underscores count as three."
        )
    return written


def _deduplication_id(members: Members, topic: Topic, group: str | None, body: str) -> str | None:
    """Returns the deduplication id for a FIFO topic: the given one, or a hash of the content."""
    given = text(members, "MessageDeduplicationId")
    if not is_fifo(topic):
        if given is None:
            return None
        told = (
            "MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter"
        )
        raise invalid(f"{told} that is not valid for this topic type")
    if group is None:
        raise invalid("The MessageGroupId parameter is required for FIFO topics")
    if given is not None:
        if not _GROUP.fullmatch(given):
            raise invalid("MessageDeduplicationId")
        return given
    if CONTENT_BASED not in topic.sdk:
        raise invalid(
            "The topic should either have ContentBasedDeduplication enabled or"
            " MessageDeduplicationId provided explicitly"
        )
    return hashlib.sha256(body.encode()).hexdigest()


def _texts(members: Members) -> tuple[str, Mapping[str, str]]:
    """Returns the text for queues, and others for URLs and functions by their attributes."""
    body, structure = text(members, "Message") or "", text(members, "MessageStructure")
    if not structure:
        return body, _NO_TEXTS
    if structure != "json":
        raise invalid("MessageStructure")
    try:
        given = decode_json(body, dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid("Message Structure - JSON message body failed to parse") from error
    texts = {protocol: each for protocol, each in given.items() if isinstance(each, str)}
    if "default" not in texts:
        raise invalid("Message Structure - No default entry in JSON message body")
    protocols = ("sqs", "lambda", *_URLS)
    found = {protocol: texts.get(protocol, texts["default"]) for protocol in protocols}
    for each in found.values():
        _check_text(each)
    own = found["sqs"]
    kept = {name: found[url] for url, name in _URLS.items() if found[url] != own}
    if found["lambda"] != found["https"]:  # as `Subscription.body_for` reads it
        kept[LAMBDA] = "" if found["lambda"] == own else found["lambda"]
    return own, kept


def _check_text(given: str) -> None:
    """Raises SnsError for a text that is empty, or that XML cannot carry."""
    if not given:
        raise invalid("Empty message")
    if not _is_plain(given) and _NOT_ALLOWED.search(given):
        raise invalid("Message Reason: it has a character that XML cannot carry.")


def _read_attribute(name: str, given: object, place: str) -> Typed:
    _check_name(name)
    told = f"The message attribute '{name}'"
    if not isinstance(given, dict):
        raise _wrong(f"{told} must be a structure.")
    kind = text(given, "DataType")
    if kind is None:
        at = f"{place}messageAttributes.{name}.member.dataType"
        reason = "failed to satisfy constraint: Member must not be null"
        raise SnsError(
            "ValidationError", f"1 validation error detected: Value null at '{at}' {reason}"
        )
    if not kind:
        raise _wrong(f"{told} must contain non-empty message attribute type.")
    if not _TYPE.fullmatch(kind):
        told = (
            f"{told} has an invalid message attribute type, the set of supported type prefixes is"
        )
        raise _wrong(f"{told} Binary, Number, and String.")
    field = "Binary" if kind.startswith("Binary") else "String"
    value = text(given, f"{field}Value")
    if value is None and any(each.endswith("Value") for each in given):
        raise _wrong(f"{told} with type '{kind}' must use field '{field}'.")
    if not value:
        told = f"{told} must contain non-empty message attribute value for message attribute type"
        raise _wrong(f"{told} '{kind}'.")
    if kind.startswith("Binary"):
        try:
            return Typed(kind, base64.b64decode(value, validate=True))
        except (binascii.Error, ValueError) as error:
            raise _wrong(f"{told} must be base64.") from error
    if kind.startswith("Number") and not _NUMBER.fullmatch(value):
        raise _wrong(f"{told} could not be cast to number.")
    if kind == _ARRAY and not _is_array(value):
        raise _wrong(f"{told} must be a JSON array of plain values.")
    if _NOT_ALLOWED.search(value):
        raise _wrong(f"{told} has an invalid character.")
    return Typed(kind, value)


def _check_name(name: str) -> None:
    if not 0 < len(name) <= _NAME_CHARACTERS:
        raise _wrong("Length of message attribute name must be less than 256 bytes.")
    if _NAME.fullmatch(name):
        return
    for begins, place in ((name[0], "starting"), (name[-1], "ending")):
        if begins == ".":
            raise _wrong(f"Invalid message attribute name {place} with character '.' was found.")
    odd = next((each for each in name if not _OF_NAME.fullmatch(each)), None)
    if odd is None:
        raise _wrong("Message attribute name can not have successive '.' character.")
    told = f"Invalid non-alphanumeric character '#x{ord(odd):X}' was found in the message attribute"
    raise _wrong(
        f"{told} name. Can only include alphanumeric characters, hyphens, underscores, or dots."
    )


def _wrong(reason: str) -> SnsError:
    return SnsError("ParameterValueInvalid", reason)


def _is_plain(body: str) -> bool:
    """Returns True if it has allowed ASCII characters alone: faster than an expression."""
    return body.isascii() and not body.encode().translate(None, _PLAIN)


def _is_array(value: str) -> bool:
    try:
        return bool(decode_json(value, list[str | float | bool | None]) is not None)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
