"""Condition and filter expressions, compiled to one closure over the item and the values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TypeAlias

from lark import Token, Tree

from cirrusmq_local.engine.functions import TEST_FUNCTIONS, size_operand
from cirrusmq_local.engine.grammar import Node
from cirrusmq_local.engine.ordering import ORDERED_TYPES, check_bounds, order
from cirrusmq_local.engine.scope import Operand, Scope
from cirrusmq_local.engine.wire import Item, Values

Test: TypeAlias = Callable[[Item, Values], bool]

MAX_IN_OPERANDS = 100

_ORDERINGS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compile_condition(tree: Tree[Token], scope: Scope) -> Test:
    """Compiles a `condition` tree to a test; an absent item is tested as an empty one."""
    return _test(tree.children[0], scope)


def _test(node: Node, scope: Scope) -> Test:
    assert isinstance(node, Tree)
    return _TESTS[node.data](node, scope)


def _either(node: Tree[Token], scope: Scope) -> Test:
    left, right = (_test(child, scope) for child in node.children)
    return lambda item, values: left(item, values) or right(item, values)


def _both(node: Tree[Token], scope: Scope) -> Test:
    left, right = (_test(child, scope) for child in node.children)
    return lambda item, values: left(item, values) and right(item, values)


def _negated(node: Tree[Token], scope: Scope) -> Test:
    test = _test(node.children[0], scope)
    return lambda item, values: not test(item, values)


def _group(node: Tree[Token], scope: Scope) -> Test:
    (child,) = node.children
    if isinstance(child, Tree) and child.data == "group":
        raise scope.refusal("The expression has redundant parentheses;")
    return _test(child, scope)


def _compared(node: Tree[Token], scope: Scope) -> Test:
    left_node, comparator, right_node = node.children
    left, right = _operand(left_node, scope), _operand(right_node, scope)
    if _same_path(left_node, right_node, scope):
        raise scope.refusal(
            "The first operand must be distinct from the remaining operands for this operator or "
            f"function; operator: {comparator}"
        )
    if comparator == "=":
        # An absent operand equals nothing, not even another absent one.
        return lambda item, values: (
            (value := left(item, values)) is not None and value == right(item, values)
        )
    if comparator == "<>":
        return lambda item, values: (
            (value := left(item, values)) is None or value != right(item, values)
        )
    for side in (left_node, right_node):
        scope.check_literal(side, str(comparator), ORDERED_TYPES)
    holds = _ORDERINGS[str(comparator)]

    def ordered(item: Item, values: Values) -> bool:
        found = order(left(item, values), right(item, values))
        return found is not None and holds(found, 0)

    return ordered


def _between(node: Tree[Token], scope: Scope) -> Test:
    value, low, high = (_operand(child, scope) for child in node.children)
    for child in node.children:
        scope.check_literal(child, "BETWEEN", ORDERED_TYPES)
    _, lower, upper = node.children
    if isinstance(lower, Token) and isinstance(upper, Token):
        scope.checks.append(check_bounds(str(lower), str(upper), scope.parameter))

    def within(item: Item, values: Values) -> bool:
        middle = value(item, values)
        above, below = order(middle, low(item, values)), order(middle, high(item, values))
        return above is not None and below is not None and above >= 0 and below <= 0

    return within


def _among(node: Tree[Token], scope: Scope) -> Test:
    sought, *listed = (_operand(child, scope) for child in node.children)
    if len(listed) > MAX_IN_OPERANDS:
        raise scope.refusal("The IN operator is provided with too many operands")

    def among(item: Item, values: Values) -> bool:
        value = sought(item, values)
        return value is not None and any(value == other(item, values) for other in listed)

    return among


def _call(node: Tree[Token], scope: Scope) -> Test:
    name, *operands = node.children
    build = TEST_FUNCTIONS.get(str(name))
    if build is None:
        raise _misplaced(str(name), scope)
    for operand in operands:
        if isinstance(operand, Tree) and operand.data == "call":
            raise _misplaced(str(operand.children[0]), scope)
    return build(operands, [_operand(operand, scope) for operand in operands], scope)


def _operand(node: Node, scope: Scope) -> Operand:
    if isinstance(node, Token) or node.data == "path":
        return scope.plain_operand(node)
    name, *operands = node.children
    if name != "size":
        raise _misplaced(str(name), scope)
    return size_operand(operands, scope)


def _misplaced(name: str, scope: Scope) -> Exception:
    if name in TEST_FUNCTIONS or name in ("size", "if_not_exists", "list_append"):
        return scope.refusal(
            "The function is not allowed to be used this way in an expression; function: " + name
        )
    return scope.refusal(f"Invalid function name; function: {name}")


def _same_path(left: Node, right: Node, scope: Scope) -> bool:
    if isinstance(left, Token) or isinstance(right, Token):
        return False
    return left.data == right.data == "path" and scope.path(left) == scope.path(right)


_TESTS: dict[str, Callable[[Tree[Token], Scope], Test]] = {
    "either": _either,
    "both": _both,
    "negated": _negated,
    "group": _group,
    "compared": _compared,
    "between": _between,
    "among": _among,
    "call": _call,
}
