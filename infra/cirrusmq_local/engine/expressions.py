"""The expressions of one request, compiled once per text and bound to the request's values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeAlias, TypeVar

from lark import Token, Tree

from cirrusmq_local.engine.conditions import Test, compile_condition
from cirrusmq_local.engine.errors import InvalidRequestError
from cirrusmq_local.engine.grammar import parse
from cirrusmq_local.engine.paths import PathTree, path_tree
from cirrusmq_local.engine.ranges import KeyCondition, compile_key_condition
from cirrusmq_local.engine.scope import Check, Scope
from cirrusmq_local.engine.updates import Update, compile_update
from cirrusmq_local.engine.values import admit
from cirrusmq_local.engine.wire import Values

T = TypeVar("T")
Names: TypeAlias = tuple[tuple[str, str], ...]

_EXPRESSIONS = (
    "ConditionExpression",
    "UpdateExpression",
    "KeyConditionExpression",
    "FilterExpression",
    "ProjectionExpression",
)
_PLACEHOLDER = re.compile(r"[#:][a-zA-Z0-9_]+")


@dataclass(frozen=True, slots=True)
class Compiled(Generic[T]):
    """A compiled expression, and the placeholders of its request that it uses."""

    run: T
    used_names: frozenset[str]
    used_values: frozenset[str]
    attributes: frozenset[str]
    checks: tuple[Check, ...]


class Expressions:
    """The expressions of one request, or of one element of a transaction.

    Each method returns the compiled expression of one member, or None if the request has none;
    `close` then refuses unused placeholders. All raise InvalidRequestError.
    """

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._request = request
        names, values = self._placeholders("Names"), self._placeholders("Values")
        self._names: Names = tuple(names.items())
        self.values: Values = {name: admit(value)[0] for name, value in values.items()}
        self._unused = {"Names": set(names), "Values": set(values)}

    def condition(self) -> Test | None:
        """Returns the request's condition."""
        return self._compiled("ConditionExpression", _condition)

    def filter(self, keys: Mapping[str, str] | None = None) -> Test | None:
        """Returns the request's filter. `keys`: a query's key attributes, which it may not name."""
        test = self._compiled("FilterExpression", _condition, forbidden=keys or {})
        return test

    def update(self) -> Update | None:
        """Returns the request's update."""
        return self._compiled("UpdateExpression", _update)

    def projection(self) -> PathTree | None:
        """Returns the paths that the answer shows."""
        return self._compiled("ProjectionExpression", _projection)

    def key_condition(self) -> KeyCondition | None:
        """Returns the range of keys that the query reads."""
        return self._compiled("KeyConditionExpression", _key_condition)

    def close(self) -> None:
        """Refuses placeholders that no expression used."""
        for kind, unused in self._unused.items():
            if unused:
                raise InvalidRequestError(
                    f"Value provided in ExpressionAttribute{kind} unused in expressions: keys: "
                    f"{{{', '.join(sorted(unused))}}}"
                )

    def _compiled(
        self,
        parameter: str,
        compile_text: Callable[[str, Names, str], Compiled[T]],
        forbidden: Mapping[str, str] | None = None,
    ) -> T | None:
        text = self._request.get(parameter)
        if text is None:
            return None
        compiled = compile_text(text, self._names, parameter)
        self._bind(compiled, parameter)
        for attribute in forbidden or {}:
            if attribute in compiled.attributes:
                raise InvalidRequestError(
                    "Filter Expression can only contain non-primary key attributes: Primary key "
                    f"attribute: {attribute}"
                )
        return compiled.run

    def _bind(self, compiled: Compiled[Any], parameter: str) -> None:
        missing = compiled.used_values - self.values.keys()
        if missing:
            raise InvalidRequestError(
                f"Invalid {parameter}: An expression attribute value used in expression is not "
                f"defined; attribute value: {min(missing)}"
            )
        for check in compiled.checks:
            check(self.values)
        self._unused["Names"] -= compiled.used_names
        self._unused["Values"] -= compiled.used_values

    def _placeholders(self, kind: str) -> Mapping[str, Any]:
        parameter = f"ExpressionAttribute{kind}"
        given = self._request.get(parameter)
        if given is None:
            return {}
        if not any(self._request.get(name) is not None for name in _EXPRESSIONS):
            raise InvalidRequestError(f"{parameter} can only be specified when using expressions")
        if not given:
            raise InvalidRequestError(f"{parameter} must not be empty")
        mark = "#" if kind == "Names" else ":"
        for name in given:
            if name[:1] != mark or not _PLACEHOLDER.fullmatch(name):
                raise InvalidRequestError(
                    f'{parameter} contains invalid key: Syntax error; key: "{name}"'
                )
        placeholders: Mapping[str, Any] = given
        return placeholders


def _compile(
    text: str,
    names: Names,
    parameter: str,
    start: str,
    build: Callable[[Tree[Token], Scope], T],
) -> Compiled[T]:
    scope = Scope(dict(names), parameter)
    run = build(parse(text, start, parameter), scope)
    return Compiled(
        run,
        frozenset(scope.used_names),
        frozenset(scope.used_values),
        frozenset(scope.attributes),
        tuple(scope.checks),
    )


@lru_cache(maxsize=1024)
def _condition(text: str, names: Names, parameter: str) -> Compiled[Test]:
    return _compile(text, names, parameter, "condition", compile_condition)


@lru_cache(maxsize=1024)
def _update(text: str, names: Names, parameter: str) -> Compiled[Update]:
    return _compile(text, names, parameter, "update", compile_update)


@lru_cache(maxsize=1024)
def _projection(text: str, names: Names, parameter: str) -> Compiled[PathTree]:
    def build(tree: Tree[Token], scope: Scope) -> PathTree:
        paths = [scope.path(child) for child in tree.children if isinstance(child, Tree)]
        return path_tree(paths, parameter)

    return _compile(text, names, parameter, "projection", build)


@lru_cache(maxsize=1024)
def _key_condition(text: str, names: Names, parameter: str) -> Compiled[KeyCondition]:
    return _compile(text, names, parameter, "condition", compile_key_condition)
