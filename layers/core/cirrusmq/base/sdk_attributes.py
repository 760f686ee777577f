"""Attributes that an SDK of another service sent, with names and types that requests cannot have.

A name that a request cannot have is written with `$` and two hexadecimal digits for each odd byte;
types other than plain text and bytes are in one attribute more, `$types`: `name:type,…`. The trace
header and the deduplication id that SQS's SDKs send are in `$trace` and `$once`, the subject of
SNS's in `$subject`. Answers, events and posts show the names that were sent, and none of the
service's own attributes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from cirrusmq.base.reserved_attributes import ONCE, RESERVED, TRACE, TYPES

TRACE_HEADER = "AWSTraceHeader"
_BESIDE = {TRACE: TRACE_HEADER, ONCE: "MessageDeduplicationId"}
TEXT, BYTES = "String", "Binary"
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ODD = re.compile(rb"[^A-Za-z0-9_]|^[0-9]")
_ESCAPED = re.compile(rb"\$([0-9a-f]{2})")


class Typed(NamedTuple):
    """A value and the name of its type."""

    type: str
    value: str | bytes


def write(attributes: Mapping[str, Typed]) -> dict[str, str | bytes]:
    """Returns the attributes as the core keeps them."""
    written: dict[str, str | bytes] = {}
    types = []
    for name, (kind, value) in attributes.items():
        escaped = _escape(name)
        written[escaped] = value
        if kind != (TEXT if isinstance(value, str) else BYTES):
            types.append(f"{escaped}:{kind}")
    if types:
        written[TYPES] = ",".join(types)
    return written


def said_beside(attributes: Mapping[str, str | bytes]) -> dict[str, str]:
    """Returns the values that an SDK of SQS sent beside its attributes, by SQS's names."""
    held = {name: attributes.get(own) for own, name in _BESIDE.items()}
    return {name: value for name, value in held.items() if isinstance(value, str)}


def read(attributes: Mapping[str, str | bytes]) -> dict[str, Typed]:
    """Returns the attributes with the names and types that were sent, without the service's own."""
    told = attributes.get(TYPES, "")
    types = dict(
        each.split(":", 1)
        for each in (told.split(",") if isinstance(told, str) else ())
        if ":" in each
    )
    found = {}
    for name, value in attributes.items():
        if name in RESERVED:
            continue
        plain = TEXT if isinstance(value, str) else BYTES
        found[_unescape(name)] = Typed(types.get(name, plain), value)
    return found


def _escape(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name != "TAGS":
        return name
    if name == "TAGS":
        return "$54AGS"
    return _ODD.sub(lambda odd: b"$%02x" % odd[0][0], name.encode()).decode()


def _unescape(name: str) -> str:
    """Returns the name that was sent; one that `write` never makes is a caller's own, and stays."""
    plain = _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), name.encode())
    sent = plain.decode("utf-8", "replace")
    return sent if _escape(sent) == name else name
