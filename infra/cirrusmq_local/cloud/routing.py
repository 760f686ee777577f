"""Finds the route of the HTTP API for a request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import unquote

from cirrusmq_local.cloud.cloudformation import TemplateError
from cirrusmq_local.cloud.template import Route

_REMEMBERED_PATHS = 1_024
"""Number of paths whose match is cached: a client uses a few paths again and again."""


@dataclass(frozen=True, kw_only=True)
class Match:
    """A route, and the values of its parameters in the path."""

    route: Route
    parameters: dict[str, str]


@dataclass(kw_only=True)
class _Node:
    """The parts that may follow a path's beginning."""

    static: dict[str, _Node] = field(default_factory=dict)
    parameter: _Node | None = None
    routes: dict[str, Route] = field(default_factory=dict)
    """By method, for paths that end at this node."""
    greedy: dict[str, Route] = field(default_factory=dict)
    """By method, for paths with one or more parts after this node."""


class Router:
    """The routes as a tree of path parts.

    A static part has precedence over a parameter, and a parameter over a greedy parameter
    (`{name+}`), which takes the rest of the path.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        self._default: Route | None = None
        self.match = lru_cache(_REMEMBERED_PATHS)(self._match)
        """Returns the match for a method and raw path: `$default` or None if no route fits.

        The path is split before it is decoded: an encoded slash is part of a name.
        """
        for route in routes:
            if route.path:
                self._add(route)
            else:
                self._default = route

    def _match(self, method: str, raw_path: str) -> Match | None:
        parts = [unquote(part, errors="replace") for part in raw_path.split("/")[1:]]
        values: list[str] = []
        route = _find(self._root, method, parts, values)
        if route is not None:
            return Match(route=route, parameters=dict(zip(_names(route), values, strict=True)))
        return Match(route=self._default, parameters={}) if self._default else None

    def _add(self, route: Route) -> None:
        node = self._root
        *above, last = route.path.split("/")[1:]
        if any(part.endswith("+}") for part in above):
            raise TemplateError(f"{route.key}: a greedy parameter is the last part")
        for part in above:
            node = _below(node, part)
        routes = node.greedy if last.endswith("+}") else _below(node, last).routes
        if route.method in routes:
            raise TemplateError(f"{route.key} stands twice in the template")
        routes[route.method] = route


def _below(node: _Node, part: str) -> _Node:
    """Returns the node of a route's next part, and makes it if it is missing."""
    if part.startswith("{"):
        node.parameter = node.parameter or _Node()
        return node.parameter
    return node.static.setdefault(part, _Node())


def _find(node: _Node, method: str, parts: Sequence[str], values: list[str]) -> Route | None:
    if not parts:
        return node.routes.get(method) or node.routes.get("ANY")
    first, rest = parts[0], parts[1:]
    if first in node.static:
        found = _find(node.static[first], method, rest, values)
        if found is not None:
            return found
    if not first:
        return None
    if node.parameter is not None:
        values.append(first)
        found = _find(node.parameter, method, rest, values)
        if found is not None:
            return found
        values.pop()
    greedy = node.greedy.get(method) or node.greedy.get("ANY")
    if greedy is not None:
        values.append("/".join(parts))
    return greedy


def _names(route: Route) -> list[str]:
    return [part[1:-1].rstrip("+") for part in route.path.split("/") if part.startswith("{")]
