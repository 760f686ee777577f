"""Update expressions, compiled to one function from the old item to the new one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lark import Token, Tree

from cirrusmq_local.engine.arithmetic import added, appended, removed_from_set, summed
from cirrusmq_local.engine.errors import InvalidRequestError
from cirrusmq_local.engine.grammar import Node
from cirrusmq_local.engine.paths import Path, PathTree, path_tree, read, remove, write
from cirrusmq_local.engine.scope import Operand, Scope
from cirrusmq_local.engine.wire import AttributeValue, Item, Values

# A set without its last element is no attribute at all: None.
Change: TypeAlias = Callable[[AttributeValue | None, AttributeValue], AttributeValue | None]

_NUMBERS = frozenset("N")
_LISTS = frozenset("L")
_SETS = frozenset({"SS", "NS", "BS"})


@dataclass(frozen=True, slots=True)
class Update:
    """A compiled update.

    `written` and `touched` are path trees: paths that get a value, and all changed paths.
    """

    assignments: Sequence[tuple[Path, Operand]]
    removals: Sequence[Path]
    written: PathTree
    touched: PathTree

    def apply(self, old: Item, new: Item, values: Values) -> None:
        """Changes `new`, a deep copy of `old`, in place.

        Every operand is read from the old item, whatever the order of the clauses. Raises
        InvalidRequestError if the item lacks a value that an operand or a path needs.
        """
        results = [(path, operand(old, values)) for path, operand in self.assignments]
        for path, value in results:
            if value is None:
                remove(new, path)
            else:
                write(new, path, value)
        for path in self.removals:
            remove(new, path)


@dataclass(slots=True)
class _Clauses:
    """The assignments and removals of all clauses of one expression."""

    scope: Scope
    assignments: list[tuple[Path, Operand]] = field(default_factory=list)
    removals: list[Path] = field(default_factory=list)

    def set(self, node: Tree[Token]) -> None:
        for assignment in node.find_data("assignment"):
            target, _, result = assignment.children
            assert isinstance(target, Tree)
            operand = _result(result, self.scope)
            self.assignments.append((self.scope.path(target), operand))

    def remove(self, node: Tree[Token]) -> None:
        for target in node.children:
            assert isinstance(target, Tree)
            self.removals.append(self.scope.path(target))

    def add(self, node: Tree[Token]) -> None:
        self._change(node, "ADD", _NUMBERS | _SETS, added)

    def delete(self, node: Tree[Token]) -> None:
        self._change(node, "DELETE", _SETS, removed_from_set)

    def _change(
        self, node: Tree[Token], clause: str, allowed: frozenset[str], change: Change
    ) -> None:
        for pair in node.find_data("change"):
            target, token = pair.children
            assert isinstance(target, Tree)
            self.scope.check_literal(token, clause, allowed)
            path, name = self.scope.path(target), self.scope.value(token)  # type: ignore[arg-type]
            self.assignments.append((path, _changed(path, name, change)))


def compile_update(tree: Tree[Token], scope: Scope) -> Update:
    """Compiles an `update` tree to an update."""
    clauses = _Clauses(scope)
    seen: set[str] = set()
    for clause in tree.children:
        assert isinstance(clause, Tree)
        if clause.data in seen:
            raise scope.refusal(
                f'The "{clause.data.upper()}" section can only be used once in an update '
                "expression;"
            )
        seen.add(clause.data)
        getattr(clauses, clause.data)(clause)
    written = [path for path, _ in clauses.assignments]
    return Update(
        # An index beyond a list's end appends, so the smaller index has to be first.
        assignments=sorted(clauses.assignments, key=lambda pair: _last_index(pair[0])),
        # From the back and from the inside, so that no removal shifts another one's index.
        removals=sorted(
            clauses.removals, key=lambda path: (len(path), _last_index(path)), reverse=True
        ),
        written=path_tree(written, scope.parameter),
        touched=path_tree([*written, *clauses.removals], scope.parameter),
    )


def _last_index(path: Path) -> int:
    return path[-1] if isinstance(path[-1], int) else -1


def _changed(path: Path, name: str, change: Change) -> Operand:
    return lambda item, values: change(read(item, path), values[name])


def _result(node: Node, scope: Scope) -> Operand:
    if isinstance(node, Token) or node.data not in ("plus", "minus"):
        return _required(_operand(node, scope))
    sign = "+" if node.data == "plus" else "-"
    for child in node.children:
        scope.check_literal(child, sign, _NUMBERS)
    left, right = (_required(_operand(child, scope)) for child in node.children)
    return lambda item, values: summed(left(item, values), right(item, values), sign)


def _operand(node: Node, scope: Scope) -> Operand:
    if isinstance(node, Token) or node.data == "path":
        return scope.plain_operand(node)
    name, *operands = node.children
    if name not in ("if_not_exists", "list_append"):
        raise scope.refusal(
            f"Invalid function name; function: {name}"
            if name not in ("size", "contains", "begins_with", "attribute_exists")
            else "The function is not allowed in an update expression; function: " + str(name)
        )
    if len(operands) != 2:
        raise scope.refusal(
            "Incorrect number of operands for operator or function; operator or function: "
            f"{name}, number of operands: {len(operands)}"
        )
    return _if_not_exists(operands, scope) if name == "if_not_exists" else _append(operands, scope)


def _if_not_exists(nodes: Sequence[Node], scope: Scope) -> Operand:
    path = scope.require_path(nodes[0], "if_not_exists")
    fallback = _operand(nodes[1], scope)

    def existing(item: Item, values: Values) -> AttributeValue | None:
        found = read(item, path)
        return fallback(item, values) if found is None else found

    return existing


def _append(nodes: Sequence[Node], scope: Scope) -> Operand:
    for node in nodes:
        scope.check_literal(node, "list_append", _LISTS)
    first, second = (_required(_operand(node, scope)) for node in nodes)
    return lambda item, values: appended(first(item, values), second(item, values))


def _required(operand: Operand) -> Callable[[Item, Values], AttributeValue]:
    def present(item: Item, values: Values) -> AttributeValue:
        value = operand(item, values)
        if value is None:
            raise InvalidRequestError(
                "The provided expression refers to an attribute that does not exist in the item"
            )
        return value

    return present
