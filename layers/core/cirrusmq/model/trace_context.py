"""The trace context of a message: the attributes `traceparent` and `tracestate` of W3C.

    headers of a send  ──> attributes of each message that has neither of them
    attributes         ──> headers of a post, in a function's record as they are

They are plain attributes: filters see them, and moves, dead letters and redrives keep them. The
service makes no spans, so what it was given is what the consumer gets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from cirrusmq.base import limits
from cirrusmq.model.message import Message

TRACEPARENT, TRACESTATE = "traceparent", "tracestate"
_NAMES = (TRACEPARENT, TRACESTATE)
_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?",
    re.ASCII,
)
_VERSION = "00"
_KNOWN_FLAGS = 0x03
"""Bits that W3C defines: sampled, and a random trace id."""
_KEY = r"(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})"
_VALUE = r"[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
_MEMBER = re.compile(rf"({_KEY})={_VALUE}", re.ASCII)
_MEMBERS = 32


def read_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns the context in headers as attributes; empty if it is missing or invalid."""
    traceparent = _traceparent(headers.get(TRACEPARENT, ""))
    if traceparent is None:
        return {}
    tracestate = _tracestate(headers.get(TRACESTATE, ""))
    return {TRACEPARENT: traceparent} | ({TRACESTATE: tracestate} if tracestate else {})


def context_of(attributes: Mapping[str, str | bytes]) -> dict[str, str]:
    """Returns the context in a message's attributes; empty if it is missing or invalid."""
    given = {name: attributes.get(name) for name in _NAMES}
    return read_headers({name: value for name, value in given.items() if isinstance(value, str)})


def trace_id_of(attributes: Mapping[str, str | bytes]) -> str | None:
    """Returns the 32 digits of the trace in a message's attributes, or None."""
    traceparent = context_of(attributes).get(TRACEPARENT)
    return None if traceparent is None else traceparent.split("-")[1]


def with_context(
    messages: Sequence[Message], context: Mapping[str, str], max_bytes: int
) -> list[Message]:
    """Returns the messages of a call, with the context added if they have none and room for it.

    max_bytes: limit of the call's messages. No message becomes so large that it is refused.
    """
    added = sum(len(name) + len(value) for name, value in context.items())
    left = max_bytes - sum(message.size_bytes for message in messages)
    left_for_attributes = limits.ATTRIBUTES_BYTES - sum(
        message.attributes_bytes for message in messages
    )
    traced = []
    for message in messages:
        if added <= min(left, left_for_attributes) and _has_room(message, context, added):
            message = replace(message, attributes={**message.attributes, **context})
            left, left_for_attributes = left - added, left_for_attributes - added
        traced.append(message)
    return traced


def _has_room(message: Message, context: Mapping[str, str], added: int) -> bool:
    return (
        not any(name in message.attributes for name in _NAMES)
        and len(message.attributes) + len(context) <= limits.ATTRIBUTES
        and message.size_bytes + added <= limits.TRACED_BYTES
    )


def _traceparent(text: str) -> str | None:
    """Returns a valid `traceparent`, of a later version in the form of the known one."""
    found = _TRACEPARENT.fullmatch(text.strip(" \t"))
    if found is None:
        return None
    version, trace_id, parent_id, flags, further = found.groups()
    if version == _VERSION:
        return None if further else found[0]
    return f"{_VERSION}-{trace_id}-{parent_id}-{int(flags, 16) & _KNOWN_FLAGS:02x}"


def _tracestate(text: str) -> str | None:
    """Returns a valid `tracestate` without empty members, or None. A longer one is left out."""
    members = [member.strip(" \t") for member in text.split(",")]
    members = [member for member in members if member]
    found = [_MEMBER.fullmatch(member) for member in members]
    keys = {each[1] for each in found if each}
    joined = ",".join(members)
    if len(keys) < len(members) or len(members) > _MEMBERS or not members:
        return None
    return joined if len(joined) <= limits.TRACESTATE_BYTES else None
