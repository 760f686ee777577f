"""Members of a document that this release does not know, kept when it changes the document.

    release N+1 writes   {"name": "orders", "colour": "red", "retry": {"kind": "custom", "cap": 9}}
    release N changes    {"name": "orders", "labels": {…},   "retry": {"kind": "custom"}}
    and stores           {… "labels": {…}, "colour": "red", "retry": {"kind": "custom", "cap": 9}}

Members are kept in structs that are reached by members, at every depth, as long as a struct of the
same type is in their place. Structs in lists are not: nothing says which of them is which.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from cirrusmq.runtime.store import Item
from cirrusmq.storage.models import DirectoryItem

_KNOWN = frozenset(each.attr_name for each in DirectoryItem.get_attributes().values())


def unknown_attributes(stored: Item) -> Item:
    """Returns the attributes of a Directory item that this release does not know."""
    return {name: value for name, value in stored.items() if name not in _KNOWN}


def with_unknown_members(text: bytes, value: object, before_text: str, before: object) -> bytes:
    """Returns the JSON of `value` with the earlier text's members that its type does not know.

    text: the JSON of `value`. before_text, before: the stored JSON, and the value read from it.
    """
    held = msgspec.json.decode(before_text)
    unknown = dict(_unknown_members(held, before, value))
    if not unknown:
        return text
    made = msgspec.json.decode(text)
    _merge(made, unknown)
    return msgspec.json.encode(made)


def _unknown_members(held: Any, before: object, value: object) -> Iterator[tuple[str, Any]]:
    """Yields unknown members, and such members of structs below, by name."""
    if not isinstance(before, msgspec.Struct) or type(value) is not type(before):
        return
    # `msgspec.structs.fields` evaluates each annotation: half a millisecond.
    fields = dict(zip(before.__struct_encode_fields__, before.__struct_fields__, strict=True))
    for name, member in held.items():
        if name == before.__struct_config__.tag_field:
            continue
        if name not in fields:
            yield name, member
        elif isinstance(member, dict):
            pair = getattr(before, fields[name]), getattr(value, fields[name])
            below = dict(_unknown_members(member, *pair))
            if below:
                yield name, below


def _merge(made: dict[str, Any], unknown: dict[str, Any]) -> None:
    for name, member in unknown.items():
        if isinstance(member, dict) and isinstance(made.get(name), dict):
            _merge(made[name], member)
        else:
            made.setdefault(name, member)
