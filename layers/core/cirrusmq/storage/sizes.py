"""How many bytes DynamoDB counts for an item, so that a parcel can be kept within one write unit.

Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNIT_BYTES = 1_024


def item_bytes(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Bytes of an item in wire shapes (`{"v": {"L": [{"N": "1"}]}}`): names and values."""
    return sum(len(name.encode()) + value_bytes(value) for name, value in item.items())


def value_bytes(value: Mapping[str, Any]) -> int:
    """Bytes of one attribute value in wire shape."""
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "B":
            return len(content)
        case "N":
            return _number_bytes(content)
        case "L":
            return 3 + sum(1 + value_bytes(element) for element in content)
        case "M":
            return 3 + sum(1 + len(name) + value_bytes(held) for name, held in content.items())
        case "SS":
            return sum(len(text.encode()) for text in content)
        case "BOOL" | "NULL":
            return 1
    raise ValueError(f"no size is known for an attribute of type {kind}")


def _number_bytes(text: str) -> int:
    digits = text.lstrip("-").replace(".", "").strip("0") or "0"
    return (len(digits) + 1) // 2 + 1 + text.startswith("-")
