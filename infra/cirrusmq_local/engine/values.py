"""Attribute values: the legal ones, their canonical form, and their size in bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cirrusmq_local.engine.errors import EngineError, InvalidRequestError
from cirrusmq_local.engine.numbers import normalize_and_measure
from cirrusmq_local.engine.wire import AttributeValue, Item

MAX_ITEM_BYTES = 400 * 1024
MAX_NESTING = 32
# Size of a list or a map, and of each of its elements beside the element's content.
CONTAINER_BYTES = 3
ELEMENT_BYTES = 1

_INVALID = "One or more parameter values were invalid: "


def text_size(text: str) -> int:
    """Returns the bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def admit_item(item: Item) -> tuple[Item, int]:
    """Returns the item in canonical form, and its size in bytes (names and values).

    Canonical: numbers in their shortest text and sets sorted, so that two equal items are equal
    dictionaries. Does not change the item that was passed. Raises InvalidRequestError.
    """
    admitted: Item = {}
    size = 0
    for name, value in item.items():
        admitted[name], bytes_of_value = admit(value)
        size += bytes_of_value + (len(name) if name.isascii() else len(name.encode()))
    return admitted, size


def admit(value: AttributeValue, depth: int = 0) -> tuple[AttributeValue, int]:
    """Returns one value in canonical form, and its size in bytes. Raises InvalidRequestError."""
    if type(value) is not dict or len(value) != 1:
        raise InvalidRequestError(
            "Supplied AttributeValue has more than one datatypes set, must contain exactly one of "
            "the supported datatypes"
            if value
            else "Supplied AttributeValue is empty, must contain exactly one of the supported "
            "datatypes"
        )
    ((tag, content),) = value.items()
    admitter = _ADMITTERS.get(tag)
    if admitter is None:
        raise InvalidRequestError(
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
        )
    return admitter(value, content, depth)


def item_size(item: Item) -> int:
    """Returns the size of a canonical item in bytes, as `admit_item` does."""
    size = 0
    for name, value in item.items():
        size += _size(value) + (len(name) if name.isascii() else len(name.encode()))
    return size


def type_of(value: AttributeValue) -> str:
    """Returns the type's tag: S, N, B, SS, NS, BS, L, M, BOOL or NULL."""
    return next(iter(value))


def same_element_tag(set_tag: str) -> str:
    """Returns the tag of a set's elements: S for SS."""
    return set_tag[0]


def make_set(tag: str, elements: list[Any]) -> AttributeValue:
    """Returns a set in canonical order, made of canonical and distinct elements."""
    return {tag: sorted(elements, key=_numerically if tag == "NS" else None)}


def _size(value: AttributeValue) -> int:
    ((tag, content),) = value.items()
    match tag:
        case "N":
            return normalize_and_measure(content)[1]
        case "S":
            return len(content) if content.isascii() else len(content.encode())
        case "B":
            return len(content)
        case "L":
            # Most lists hold numbers, and a call for each would cost more than its work.
            size = CONTAINER_BYTES + ELEMENT_BYTES * len(content)
            for element in content:
                if "N" in element:
                    size += normalize_and_measure(element["N"])[1]
                else:
                    size += _size(element)
            return size
        case "M":
            return CONTAINER_BYTES + ELEMENT_BYTES * len(content) + item_size(content)
        case "BOOL" | "NULL":
            return 1
    element_tag = same_element_tag(tag)
    return sum(_size({element_tag: element}) for element in content)


def _numerically(text: str) -> tuple[float, str]:
    return float(text), text


def _text(value: AttributeValue, content: Any, depth: int) -> tuple[AttributeValue, int]:
    if type(content) is not str:
        raise _mistyped(content, "String")
    return value, len(content) if content.isascii() else len(content.encode())


def _number(value: AttributeValue, content: Any, depth: int) -> tuple[AttributeValue, int]:
    if type(content) is not str:
        raise _mistyped(content, "String")
    number, size = normalize_and_measure(content)
    return value if number == content else {"N": number}, size


def _binary(value: AttributeValue, content: Any, depth: int) -> tuple[AttributeValue, int]:
    if isinstance(content, bytes):
        return value, len(content)
    if isinstance(content, bytearray):
        return {"B": bytes(content)}, len(content)
    raise _mistyped(content, "Blob")


def _boolean(value: AttributeValue, content: Any, depth: int) -> tuple[AttributeValue, int]:
    if type(content) is not bool:
        raise _mistyped(content, "Boolean")
    return value, 1


def _null(value: AttributeValue, content: Any, depth: int) -> tuple[AttributeValue, int]:
    if content is not True:
        raise InvalidRequestError(
            f"{_INVALID}Null attribute value types must have the value of true"
        )
    return value, 1


def _list(value: AttributeValue, content: Any, depth: int) -> tuple[AttributeValue, int]:
    if not isinstance(content, list):
        raise _mistyped(content, "List")
    _check_depth(depth)
    elements = []
    size = CONTAINER_BYTES + ELEMENT_BYTES * len(content)
    for element in content:
        admitted, bytes_of_element = _listed_number(element) or admit(element, depth + 1)
        elements.append(admitted)
        size += bytes_of_element
    return {"L": elements}, size


def _listed_number(element: Any) -> tuple[AttributeValue, int] | None:
    """Returns `admit`'s result for a canonical number, as most elements are, or None."""
    if type(element) is dict and len(element) == 1 and type(text := element.get("N")) is str:
        number, size = normalize_and_measure(text)
        if number == text:
            return element, size
    return None


def _map(value: AttributeValue, content: Any, depth: int) -> tuple[AttributeValue, int]:
    if not isinstance(content, dict):
        raise _mistyped(content, "Map")
    _check_depth(depth)
    members = {}
    size = CONTAINER_BYTES + ELEMENT_BYTES * len(content)
    for name, member in content.items():
        members[name], bytes_of_member = admit(member, depth + 1)
        size += text_size(name) + bytes_of_member
    return {"M": members}, size


def _set(tag: str, empty: str) -> Callable[[Any, Any, int], tuple[AttributeValue, int]]:
    element_tag = same_element_tag(tag)

    def admit_set(value: AttributeValue, content: Any, depth: int) -> tuple[AttributeValue, int]:
        if not isinstance(content, list):
            raise _mistyped(content, "Set")
        if not content:
            raise InvalidRequestError(f"{_INVALID}{empty}")
        elements = []
        size = 0
        for element in content:
            admitted, bytes_of_element = admit({element_tag: element})
            elements.append(admitted[element_tag])
            size += bytes_of_element
        if len(set(elements)) != len(elements):
            shown = ", ".join(map(str, content))
            raise InvalidRequestError(f"{_INVALID}Input collection [{shown}] contains duplicates.")
        return make_set(tag, elements), size

    return admit_set


def _check_depth(depth: int) -> None:
    if depth >= MAX_NESTING:
        raise InvalidRequestError(
            "Nesting Levels have exceeded supported limits: attributes may be nested to "
            f"{MAX_NESTING} levels"
        )


def _mistyped(content: Any, expected: str) -> EngineError:
    return EngineError(
        "SerializationException", f"{type(content).__name__} cannot be converted to {expected}"
    )


_ADMITTERS: dict[str, Callable[[Any, Any, int], tuple[AttributeValue, int]]] = {
    "S": _text,
    "N": _number,
    "B": _binary,
    "BOOL": _boolean,
    "NULL": _null,
    "L": _list,
    "M": _map,
    "SS": _set("SS", "An string set  may not be empty"),
    "NS": _set("NS", "An number set  may not be empty"),
    "BS": _set("BS", "Binary sets should not be empty"),
}
