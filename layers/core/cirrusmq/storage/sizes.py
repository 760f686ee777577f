"""How many bytes DynamoDB counts for an item, so that a parcel can be kept within one write unit.

Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNIT_BYTES = 1_024


def item_bytes(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Returns the bytes of an item in wire shapes (`{"v": {"L": [{"N": "1"}]}}`)."""
    return sum([attribute_bytes(name, value) for name, value in item.items()])


def attribute_bytes(name: str, value: Mapping[str, Any]) -> int:
    """Returns the bytes of one attribute with its name."""
    return _text_bytes(name) + value_bytes(value)


def value_bytes(value: Mapping[str, Any]) -> int:
    """Returns the bytes of one attribute value in wire shape."""
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return _number_bytes(content)
        case "B":
            return len(content)
        case "S":
            return _text_bytes(content)
        case "L":
            return 3 + sum([1 + value_bytes(element) for element in content])
        case "M":
            return 3 + sum(1 + len(name) + value_bytes(held) for name, held in content.items())
        case "SS":
            return sum(len(text.encode()) for text in content)
        case "BOOL" | "NULL":
            return 1
    raise ValueError(f"no size is known for an attribute of type {kind}")


def _text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _number_bytes(text: str) -> int:
    if text.isdecimal() and text[-1] != "0" != text[0]:
        return (len(text) + 1) // 2 + 1
    digits = text.lstrip("-").replace(".", "").strip("0") or "0"
    return (len(digits) + 1) // 2 + 1 + text.startswith("-")
