"""The scope of a compiled expression: its names, its placeholders and its operands' values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from lark import Token, Tree

from cirrusmq_local.engine.errors import InvalidRequestError
from cirrusmq_local.engine.grammar import Node
from cirrusmq_local.engine.paths import Path, read
from cirrusmq_local.engine.reserved import RESERVED_WORDS
from cirrusmq_local.engine.wire import AttributeValue, Item, Values

# Reads a value from the item (as it was before the request) and the request's values.
Operand: TypeAlias = Callable[[Item, Values], AttributeValue | None]
# Refuses (InvalidRequestError) request values that an expression can never use.
Check: TypeAlias = Callable[[Values], None]


@dataclass(slots=True)
class Scope:
    """The state of one expression while it is compiled.

    `names` are the request's `#` placeholders, `parameter` is the member that holds the text.
    """

    names: Mapping[str, str]
    parameter: str
    used_names: set[str] = field(default_factory=set)
    used_values: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    checks: list[Check] = field(default_factory=list)

    def path(self, node: Tree[Token]) -> Path:
        """Returns the document path of a `path` node, placeholders resolved."""
        steps: list[str | int] = [self._step(token) for token in node.children]  # type: ignore[arg-type]
        self.attributes.add(str(steps[0]))
        return tuple(steps)

    def value(self, token: Token) -> str:
        """Notes that a value's placeholder is used. Returns its name."""
        self.used_values.add(str(token))
        return str(token)

    def plain_operand(self, node: Node) -> Operand:
        """Returns the operand for a path or a value's placeholder."""
        if isinstance(node, Token):
            name = self.value(node)
            return lambda item, values: values[name]
        path = self.path(node)
        if len(path) == 1:
            attribute = str(path[0])
            return lambda item, values: item.get(attribute)
        return lambda item, values: read(item, path)

    def check_literal(self, node: Node, operator: str, allowed: frozenset[str]) -> None:
        """Refuses the request if this operand is a value whose type is not in `allowed`."""
        if not isinstance(node, Token):
            return
        name = str(node)
        parameter = self.parameter

        def check(values: Values) -> None:
            (tag,) = values[name]
            if tag not in allowed:
                raise InvalidRequestError(
                    f"Invalid {parameter}: Incorrect operand type for operator or function; "
                    f"operator or function: {operator}, operand type: {tag}"
                )

        self.checks.append(check)

    def require_path(self, node: Node, operator: str) -> Path:
        """Returns an operand's path. Raises InvalidRequestError if the operand is no path."""
        if isinstance(node, Token) or node.data != "path":
            raise self.refusal(
                f"Operator or function requires a document path; operator or function: {operator}"
            )
        return self.path(node)

    def refusal(self, reason: str) -> InvalidRequestError:
        """Returns the error for an expression that breaks a rule."""
        return InvalidRequestError(f"Invalid {self.parameter}: {reason}")

    def _step(self, token: Token) -> str | int:
        if token.type == "INDEX":
            return int(token)
        if token.type == "NAME":
            if token.upper() in RESERVED_WORDS:
                raise self.refusal(
                    f"Attribute name is a reserved keyword; reserved keyword: {token}"
                )
            return str(token)
        self.used_names.add(str(token))
        if token not in self.names:
            raise self.refusal(
                "An expression attribute name used in the document path is not defined; "
                f"attribute name: {token}"
            )
        return self.names[token]
