"""A message as its sender wrote it, and how the messages of one send are packed into bytes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidParameter, MessageTooLarge
from cirrusmq.base.reserved_attributes import MARK, TEXTS, own_text
from cirrusmq.filters.tags import (
    LONG_TAG_CHARACTERS,
    TAG_CHARACTERS,
    check_tags,
)

_ATTRIBUTE_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,63}", re.ASCII)
_PLAIN, _DEFLATED = b"\0", b"\1"
_LEVEL, _FAST_LEVEL = 6, 1
_SMALL_WINDOW_BITS = 13
_SMALL_BYTES = (1 << _SMALL_WINDOW_BITS) - 300
"""zlib looks back by 262 bytes less than its window."""
_SHOWN_BYTES = 4_000
"""Bytes of a message in an answer beside its body, attributes and tags: a group of 128 characters
and a reason of 256, six bytes each, the receipt, times, names of fields."""
_LARGE_BYTES = 66_560
"""From there on the fast level: more than a body of 64 KB has, with all that is said of it."""
_SAMPLES, _SAMPLE_BYTES = 4, 4_096
_WORTH = 0.97
"""If samples of a large message do not get smaller than this part, it is kept as it is."""
_GZIP_WINDOW_BITS = 31


class ContentLimits(msgspec.Struct, frozen=True):
    """Limits for attributes and tags of one message."""

    tag_characters: int
    attributes: int
    attribute_bytes: int | None
    """Limit of a value; None means the body's limit."""
    reserved_names: bool = False
    """True if names may begin with `$`: the service itself writes such names."""


CONTRACT = ContentLimits(TAG_CHARACTERS, limits.ATTRIBUTES, limits.ATTRIBUTE_BYTES)
OF_SDKS = ContentLimits(LONG_TAG_CHARACTERS, limits.SDK_ATTRIBUTES, None, reserved_names=True)
"""For programs that were written for other services, and rely on those services' limits."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message's content. `body` is text or bytes, as it was sent, and never empty."""

    body: str | bytes
    attributes: Mapping[str, str | bytes] = {}
    tags: tuple[str, ...] = ()
    group: str | None = None
    further: Sequence[Any] = ()
    """Fields of a later release, packed behind these: they are packed again as they are."""

    @property
    def body_bytes(self) -> bytes:
        """The body's bytes, as they were sent."""
        return self.body.encode() if isinstance(self.body, str) else self.body

    @property
    def body_md5(self) -> str:
        """MD5 of the body's bytes in hex: a check of transport, not of trust."""
        return hashlib.md5(self.body_bytes, usedforsecurity=False).hexdigest()

    @property
    def size_bytes(self) -> int:
        """Bytes that count towards a batch: body, attributes (names and values) and tags."""
        size = _size(self.body)
        if self.attributes or self.tags:  # most messages have none, and are asked several times
            size += self.attributes_bytes + sum(map(_size, self.tags))
        return size

    def with_text_of(self, names: Sequence[str]) -> Message:
        """Returns the message as a subscriber got it: itself, or with its own text as body.

        names: of the attributes that may have that text; the first one counts.
        """
        own = own_text(self.attributes, names)
        if not own:
            return self
        kept = {key: value for key, value in self.attributes.items() if key not in TEXTS}
        return msgspec.structs.replace(self, body=own, attributes=kept)

    @property
    def attributes_as_sent(self) -> Mapping[str, str | bytes]:
        """The attributes by the names that were sent, without the service's own ones."""
        if not any(MARK in name for name in self.attributes):
            return self.attributes
        # SDKs of other services send such names: the others' cold starts do without.
        from cirrusmq.base import sdk_attributes

        return {name: typed.value for name, typed in sdk_attributes.read(self.attributes).items()}

    @property
    def attributes_bytes(self) -> int:
        """Bytes of the names and values of the attributes."""
        return sum(_size(name) + _size(value) for name, value in self.attributes.items())

    @property
    def answer_percent(self) -> int:
        """Bytes inside an answer's JSON for every 100 of `size_bytes`: for escapes and base64.

        Names of fields, quotes, padding and the group are not among them; they have a bound.
        """
        values = (self.body, *self.attributes, *self.attributes.values(), *self.tags)
        return max(100, -(-100 * sum(map(_encoded_size, values)) // self.size_bytes))


class MessageInput(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A message in a request; each call decides which of its fields it takes."""

    body: str | msgspec.UnsetType = msgspec.UNSET
    body_base64: str | msgspec.UnsetType = msgspec.UNSET
    attributes: dict[str, str | Base64] = {}
    tags: list[str] = []


class Base64(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Bytes in JSON."""

    base64: str


def read_body(given: MessageInput, where: str) -> str | bytes:
    """Returns the body of `given`, at `where` in the request; exactly one of its two forms."""
    if (given.body is msgspec.UNSET) == (given.body_base64 is msgspec.UNSET):
        raise InvalidParameter(f"{where}.body", "give exactly one of body and body_base64")
    body: str | bytes
    if isinstance(given.body, str):
        body, name = given.body, "body"
    else:
        assert isinstance(given.body_base64, str)
        body, name = from_base64(f"{where}.body_base64", given.body_base64), "body_base64"
    if not body:
        raise InvalidParameter(f"{where}.{name}", "must have at least 1 byte")
    return body


def read_attributes(
    given: Mapping[str, str | Base64], where: str, limit: ContentLimits = CONTRACT
) -> dict[str, str | bytes]:
    """Checks and decodes the attributes of a message found at `where` in the request."""
    if len(given) > limit.attributes:
        raise InvalidParameter(f"{where}.attributes", f"must have at most {limit.attributes} names")
    attributes: dict[str, str | bytes] = {}
    for name, value in given.items():
        parameter = f"{where}.attributes.{name[:80]}"
        if (
            not _ATTRIBUTE_NAME.fullmatch(name)
            or name == "TAGS"
            or (name[0] == MARK and not limit.reserved_names)
        ):
            raise InvalidParameter(
                parameter,
                "an attribute's name must match [A-Za-z_][A-Za-z0-9_$]{0,63} and not be TAGS",
            )
        decoded = value if isinstance(value, str) else from_base64(parameter, value.base64)
        if limit.attribute_bytes is not None and _size(decoded) > limit.attribute_bytes:
            raise InvalidParameter(parameter, f"a value must be 0 to {limit.attribute_bytes} bytes")
        attributes[name] = decoded
    return attributes


def read_tags(given: Sequence[str], where: str, limit: ContentLimits = CONTRACT) -> tuple[str, ...]:
    """Checks and returns the tags of a message found at `where` in the request."""
    return check_tags(given, f"{where}.tags", limit.tag_characters)


def check_size(message: Message, max_bytes: int, where: str) -> None:
    """Raises MessageTooLarge if the body, or an attribute's value, is over `max_bytes`."""
    attributes = ((f"attributes.{name}", each, 0) for name, each in message.attributes.items())
    for name, value, least in (("body", message.body, 1), *attributes):
        size = _size(value)
        if size > max_bytes:
            text = f"has {size} bytes; max_message_bytes allows {least} to {max_bytes}"
            raise _too_large(f"{where}.{name}", text)


def check_answer_size(message: Message, where: str) -> None:
    """Raises MessageTooLarge if no answer could return the message, not even gzipped.

    A body of bytes always fits: as base64 it gzips into little more than its size.
    """
    if not isinstance(message.body, str) or message.size_bytes * 6 <= limits.ANSWER_BYTES // 2:
        return
    shown = msgspec.json.encode((message.body, message.attributes))
    if len(shown) <= limits.GZIPPED_ANSWER_BYTES:
        return
    size = len(gzipped(shown, limits.GZIPPED_ANSWER_BYTES))
    if size > limits.GZIPPED_ANSWER_BYTES:
        raise _too_large(
            f"{where}.body",
            f"has {len(shown):,} bytes as JSON, and gzipped {size:,}: an answer takes"
            f" at most {limits.GZIPPED_ANSWER_BYTES:,}; body_base64 would fit",
        )


def check_event_size(message: Message, where: str, called: str = "the queue's function") -> None:
    """Raises MessageTooLarge if no event of a function could hold the message.

    called: the words for the function.
    """
    if fits_any_event(message):
        return
    size = answer_bytes(message.size_bytes, message.answer_percent)
    if size > limits.CALLED_BYTES:
        raise _too_large(
            f"{where}.body",
            f"takes {size:,} bytes in the event of {called}, which has at"
            f" most {limits.CALLED_BYTES:,}",
        )


def fits_any_event(message: Message) -> bool:
    """Returns True if a function's event holds the message, with any characters."""
    return message.size_bytes * limits.ESCAPED_BYTES <= limits.CALLED_BYTES // 2


def _too_large(parameter: str, text: str) -> MessageTooLarge:
    error = MessageTooLarge(f"{parameter} {text}")
    error.parameter = parameter
    return error


def answer_bytes(size_bytes: int, percent: int) -> int:
    """Returns the most bytes that a message adds to an answer's JSON, with its state."""
    return size_bytes * percent // 100 + _SHOWN_BYTES


def answer_too_large(
    size_bytes: int, max_bytes: int, message_id: str | None = None
) -> MessageTooLarge:
    """Returns the error of a call whose next message no answer to it can hold."""
    name = "" if message_id is None else f", {message_id},"
    return MessageTooLarge(
        f"the next message{name} may take {size_bytes:,} bytes of JSON, and an answer that is not"
        f" gzipped has at most {max_bytes:,}: call with Accept-Encoding: gzip."
        " Nothing was received"
    )


def gzipped(plain: bytes, max_bytes: int) -> bytes:
    """Returns the bytes gzipped: fast, and better if that leaves more than `max_bytes`."""
    compressed = b""
    for level in (_FAST_LEVEL, _LEVEL):
        compressor = zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW_BITS)
        compressed = compressor.compress(plain) + compressor.flush()
        if len(compressed) <= max_bytes:
            break
    return compressed


def pack(messages: Sequence[Message]) -> bytes:
    """Returns messages as bytes: MessagePack behind one byte that marks it as deflated or plain."""
    listed = [
        [each.body, each.attributes, each.tags, each.group, *each.further] for each in messages
    ]
    return compress(msgspec.msgpack.encode(listed))


def compress(plain: bytes) -> bytes:
    """Returns the bytes, deflated if that makes them fewer, behind one byte that marks it."""
    if len(plain) > _LARGE_BYTES and not _shrinks(plain):
        return _PLAIN + plain
    deflated = _deflated(plain)
    return _DEFLATED + deflated if len(deflated) < len(plain) else _PLAIN + plain


def decompress(content: bytes) -> bytes:
    """Returns the bytes that `compress` was given."""
    return content[1:] if content[:1] == _PLAIN else zlib.decompress(content[1:])


def _shrinks(plain: bytes) -> bool:
    """Returns True if samples of the bytes show that deflating them is worth its time."""
    step = (len(plain) - _SAMPLE_BYTES) // (_SAMPLES - 1)
    starts = (number * step for number in range(_SAMPLES))
    sample = b"".join(plain[start : start + _SAMPLE_BYTES] for start in starts)
    return len(zlib.compress(sample, _FAST_LEVEL)) < _WORTH * len(sample)


def _deflated(plain: bytes) -> bytes:
    if len(plain) > _LARGE_BYTES:
        return zlib.compress(plain, _FAST_LEVEL)
    if len(plain) > _SMALL_BYTES:
        return zlib.compress(plain, _LEVEL)
    # If all fits into it, a small window finds what a large one does; zlib has less to set up.
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _SMALL_WINDOW_BITS, memLevel=7)
    return compressor.compress(plain) + compressor.flush()


def unpack(content: bytes) -> list[Message]:
    """Returns the messages that `pack` packed."""
    return [
        Message(
            body=body,
            attributes=attributes,
            tags=tuple(tags),
            group=group,
            further=tuple(further),
        )
        for body, attributes, tags, group, *further in msgspec.msgpack.decode(decompress(content))
    ]


def _size(value: str | bytes) -> int:
    if isinstance(value, bytes) or value.isascii():
        return len(value)
    return len(value.encode())


def _encoded_size(value: str | bytes) -> int:
    """Returns the bytes in JSON, quotes and padding aside."""
    if isinstance(value, bytes):
        return -(-4 * len(value) // 3)
    return len(msgspec.json.encode(value)) - 2


def from_base64(parameter: str, text: str) -> bytes:
    """The bytes of a text in base64; InvalidParameter if it is none."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidParameter(parameter, "must be base64 with padding") from error
