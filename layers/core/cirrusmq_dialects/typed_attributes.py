"""Attributes of messages with names and types that the core has no place for.

A name that the core refuses is written with `$` and two hexadecimal digits for each odd byte; types
other than plain text and bytes are in one attribute more, `$types`: `name:type,…`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

TYPES = "$types"
TEXT, BYTES = "String", "Binary"
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ODD = re.compile(rb"[^A-Za-z0-9_]|^[0-9]")
_ESCAPED = re.compile(rb"\$([0-9a-f]{2})")


class Typed(NamedTuple):
    """A value and the name of its type."""

    type: str
    value: str | bytes


def write(attributes: Mapping[str, Typed]) -> dict[str, str | bytes]:
    """The attributes as the core keeps them."""
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


def read(attributes: Mapping[str, str | bytes]) -> dict[str, Typed]:
    """The attributes with their names and types; those that dialects keep for themselves left out.

    They begin with `$` and something that is no hexadecimal digit.
    """
    told = attributes.get(TYPES, "")
    types = dict(
        each.split(":", 1)
        for each in (told.split(",") if isinstance(told, str) else ())
        if ":" in each
    )
    found = {}
    for name, value in attributes.items():
        if _is_own(name):
            continue
        plain = TEXT if isinstance(value, str) else BYTES
        found[_unescape(name)] = Typed(types.get(name, plain), value)
    return found


def _is_own(name: str) -> bool:
    return name.startswith("$") and not _ESCAPED.match(name.encode())


def _escape(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name != "TAGS":
        return name
    if name == "TAGS":
        return "$54AGS"
    return _ODD.sub(lambda odd: b"$%02x" % odd[0][0], name.encode()).decode()


def _unescape(name: str) -> str:
    plain = _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), name.encode())
    return plain.decode("utf-8", "replace")
