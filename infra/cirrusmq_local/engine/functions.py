"""The functions of condition expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from lark import Token

from cirrusmq_local.engine.errors import InvalidRequestError
from cirrusmq_local.engine.grammar import Node
from cirrusmq_local.engine.scope import Operand, Scope
from cirrusmq_local.engine.values import same_element_tag
from cirrusmq_local.engine.wire import AttributeValue, Item, Values

Build: TypeAlias = Callable[
    [Sequence[Node], Sequence[Operand], Scope], Callable[[Item, Values], bool]
]

_TYPES = frozenset({"S", "N", "B", "SS", "NS", "BS", "L", "M", "BOOL", "NULL"})
_SIZED = frozenset({"S", "B", "SS", "NS", "BS", "L", "M"})
_SETS = frozenset({"SS", "NS", "BS"})


def size_operand(nodes: Sequence[Node], scope: Scope) -> Operand:
    """Compiles `size(path)`: characters of a text, bytes of a binary, elements of a collection."""
    _check_count("size", nodes, 1, scope)
    if not isinstance(nodes[0], Token) and nodes[0].data == "call":
        raise scope.refusal(
            "The function is not allowed to be used this way in an expression; function: "
            f"{nodes[0].children[0]}"
        )
    sized = scope.plain_operand(nodes[0])
    scope.check_literal(nodes[0], "size", _SIZED)

    def size(item: Item, values: Values) -> AttributeValue | None:
        value = sized(item, values)
        if value is None:
            return None
        ((tag, content),) = value.items()
        return {"N": str(len(content))} if tag in _SIZED else None

    return size


def _attribute_exists(
    nodes: Sequence[Node], operands: Sequence[Operand], scope: Scope
) -> Callable[[Item, Values], bool]:
    _check_count("attribute_exists", nodes, 1, scope)
    scope.require_path(nodes[0], "attribute_exists")
    (operand,) = operands
    return lambda item, values: operand(item, values) is not None


def _attribute_not_exists(
    nodes: Sequence[Node], operands: Sequence[Operand], scope: Scope
) -> Callable[[Item, Values], bool]:
    _check_count("attribute_not_exists", nodes, 1, scope)
    scope.require_path(nodes[0], "attribute_not_exists")
    (operand,) = operands
    return lambda item, values: operand(item, values) is None


def _attribute_type(
    nodes: Sequence[Node], operands: Sequence[Operand], scope: Scope
) -> Callable[[Item, Values], bool]:
    _check_count("attribute_type", nodes, 2, scope)
    scope.require_path(nodes[0], "attribute_type")
    if not isinstance(nodes[1], Token):
        raise scope.refusal("The type of attribute_type must be given as a value")
    scope.check_literal(nodes[1], "attribute_type", frozenset("S"))
    wanted = str(nodes[1])

    def check(values: Values) -> None:
        if values[wanted]["S"] not in _TYPES:
            raise InvalidRequestError(
                f"Invalid {scope.parameter}: Invalid attribute type name found; type: "
                f"{values[wanted]['S']}, valid types: {{{','.join(sorted(_TYPES))}}}"
            )

    scope.checks.append(check)
    operand = operands[0]
    return lambda item, values: (
        (value := operand(item, values)) is not None and values[wanted]["S"] in value
    )


def _begins_with(
    nodes: Sequence[Node], operands: Sequence[Operand], scope: Scope
) -> Callable[[Item, Values], bool]:
    _check_count("begins_with", nodes, 2, scope)
    for node in nodes:
        scope.check_literal(node, "begins_with", frozenset("SB"))
    whole, start = operands

    def begins(item: Item, values: Values) -> bool:
        pair = whole(item, values), start(item, values)
        if pair[0] is None or pair[1] is None:
            return False
        ((tag, content),) = pair[0].items()
        prefix = pair[1].get(tag)
        return tag in ("S", "B") and prefix is not None and content.startswith(prefix)

    return begins


def _contains(
    nodes: Sequence[Node], operands: Sequence[Operand], scope: Scope
) -> Callable[[Item, Values], bool]:
    _check_count("contains", nodes, 2, scope)
    whole, part = operands

    def contains(item: Item, values: Values) -> bool:
        container, element = whole(item, values), part(item, values)
        if container is None or element is None:
            return False
        return _holds(container, element)

    return contains


def _holds(container: AttributeValue, element: AttributeValue) -> bool:
    ((tag, content),) = container.items()
    if tag == "L":
        return element in content
    wanted: Any = element.get(same_element_tag(tag))
    return wanted is not None and (tag in _SETS or tag in ("S", "B")) and wanted in content


def _check_count(name: str, nodes: Sequence[Node], expected: int, scope: Scope) -> None:
    if len(nodes) != expected:
        raise scope.refusal(
            f"Incorrect number of operands for operator or function; operator or function: {name}, "
            f"number of operands: {len(nodes)}"
        )


TEST_FUNCTIONS: dict[str, Build] = {
    "attribute_exists": _attribute_exists,
    "attribute_not_exists": _attribute_not_exists,
    "attribute_type": _attribute_type,
    "begins_with": _begins_with,
    "contains": _contains,
}
