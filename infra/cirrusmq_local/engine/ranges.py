"""Key condition expressions: one partition, and a range of its sort keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from lark import Token, Tree

from cirrusmq_local.engine.errors import InvalidRequestError
from cirrusmq_local.engine.grammar import Node
from cirrusmq_local.engine.keys import Column, column_of, prefix_end
from cirrusmq_local.engine.ordering import check_bounds
from cirrusmq_local.engine.scope import Scope
from cirrusmq_local.engine.tables import TableSpec
from cirrusmq_local.engine.wire import AttributeValue, Values

# An SQL comparison of the column sk, and its right side.
Bound: TypeAlias = tuple[str, Column]


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The partition's column, and bounds for the sort key's column."""

    partition: Column
    bounds: tuple[Bound, ...]


KeyCondition: TypeAlias = Callable[[Values, TableSpec], KeyRange]


@dataclass(frozen=True, slots=True)
class _Part:
    """One comparison of a key attribute: `=`, `<`, ..., BETWEEN or begins_with."""

    attribute: str
    comparator: str
    operands: tuple[str, ...]


def compile_key_condition(tree: Tree[Token], scope: Scope) -> KeyCondition:
    """Compiles a `condition` tree to a range of keys. Raises InvalidRequestError if it is none."""
    parts = _parts(tree.children[0], scope)
    by_attribute = {part.attribute: part for part in parts}
    if len(by_attribute) < len(parts):
        raise InvalidRequestError(
            "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one "
            "condition per key"
        )

    def key_range(values: Values, spec: TableSpec) -> KeyRange:
        partition = by_attribute.get(spec.partition_key)
        if partition is None:
            raise InvalidRequestError(
                f"Query condition missed key schema element: {spec.partition_key}"
            )
        if partition.comparator != "=":
            raise InvalidRequestError("Query key condition not supported")
        others = [part for part in parts if part is not partition]
        if any(part.attribute != spec.sort_key for part in others):
            missed = spec.sort_key or spec.partition_key
            raise InvalidRequestError(f"Query condition missed key schema element: {missed}")
        (column,) = _columns(partition, values, spec.partition_key_type)
        bounds = [bound for part in others for bound in _bounds(part, values, spec.sort_key_type)]
        return KeyRange(column, tuple(bounds))

    return key_range


def _parts(node: Node, scope: Scope) -> list[_Part]:
    assert isinstance(node, Tree)
    if node.data == "both":
        return [part for child in node.children for part in _parts(child, scope)]
    if node.data == "group":
        return _parts(node.children[0], scope)
    if node.data == "compared":
        target, comparator, operand = node.children
        if comparator == "<>":
            raise _unusable("<>")
        return [_part(target, str(comparator), [operand], scope)]
    if node.data == "between":
        target, low, high = node.children
        part = _part(target, "BETWEEN", [low, high], scope)
        lower, upper = part.operands
        scope.checks.append(check_bounds(lower, upper, scope.parameter))
        return [part]
    if node.data == "call" and node.children[0] == "begins_with" and len(node.children) == 3:
        return [_part(node.children[1], "begins_with", node.children[2:], scope)]
    if node.data == "call":
        raise _unusable(str(node.children[0]))
    raise _unusable({"either": "OR", "negated": "NOT", "among": "IN"}[node.data])


def _part(target: Node, comparator: str, operands: list[Node], scope: Scope) -> _Part:
    if isinstance(target, Token) or target.data != "path" or len(path := scope.path(target)) > 1:
        raise InvalidRequestError(
            "Invalid KeyConditionExpression: a condition must start with a key attribute"
        )
    if not all(isinstance(operand, Token) for operand in operands):
        raise InvalidRequestError(
            "Invalid KeyConditionExpression: a key attribute must be compared with a value"
        )
    names = tuple(scope.value(operand) for operand in operands if isinstance(operand, Token))
    return _Part(str(path[0]), comparator, names)


def _bounds(part: _Part, values: Values, key_type: str) -> list[Bound]:
    columns = _columns(part, values, key_type)
    if part.comparator == "BETWEEN":
        return [(">=", columns[0]), ("<=", columns[1])]
    if part.comparator != "begins_with":
        return [(part.comparator, columns[0])]
    if key_type == "N":
        raise InvalidRequestError(
            "Invalid KeyConditionExpression: Incorrect operand type for operator or function; "
            "operator or function: begins_with, operand type: N"
        )
    end = prefix_end(columns[0])
    return [(">=", columns[0])] + ([] if end is None else [("<", end)])


def _columns(part: _Part, values: Values, key_type: str) -> list[Column]:
    return [_column(part.attribute, values[name], key_type) for name in part.operands]


def _column(attribute: str, value: AttributeValue, key_type: str) -> Column:
    if key_type not in value:
        raise InvalidRequestError(
            "One or more parameter values were invalid: Condition parameter type does not match "
            "schema type"
        )
    if not value[key_type]:
        raise InvalidRequestError(
            "One or more parameter values are not valid. The AttributeValue for a key attribute "
            f"cannot contain an empty string value. Key: {attribute}"
        )
    return column_of(value)


def _unusable(operator: str) -> InvalidRequestError:
    return InvalidRequestError(f"Invalid operator used in KeyConditionExpression: {operator}")
