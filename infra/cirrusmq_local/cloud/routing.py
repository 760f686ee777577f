"""Which route of the HTTP API a request belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from cirrusmq_local.cloud.cloudformation import TemplateError
from cirrusmq_local.cloud.template import Route


@dataclass(frozen=True, kw_only=True)
class Match:
    """A route, and the values of its parameters in the path."""

    route: Route
    parameters: dict[str, str]


@dataclass(kw_only=True)
class _Node:
    """The parts that may follow a path so far."""

    static: dict[str, _Node] = field(default_factory=dict)
    parameter: _Node | None = None
    routes: dict[str, Route] = field(default_factory=dict)
    """By method, for paths that end here."""


class Router:
    """The routes as a tree of path parts; a static part has precedence over a parameter."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        self._default: Route | None = None
        for route in routes:
            if route.path:
                self._add(route)
            else:
                self._default = route

    def match(self, method: str, raw_path: str) -> Match | None:
        """The route of a request, `$default` where no other fits.

        The path is taken apart before it is decoded: an encoded slash is part of a name.
        """
        parts = [unquote(part, errors="replace") for part in raw_path.split("/")[1:]]
        values: list[str] = []
        route = _find(self._root, method, parts, values)
        if route is not None:
            return Match(route=route, parameters=dict(zip(_names(route), values, strict=True)))
        return Match(route=self._default, parameters={}) if self._default else None

    def _add(self, route: Route) -> None:
        node = self._root
        for part in route.path.split("/")[1:]:
            if part.endswith("+}"):
                raise TemplateError(f"{route.key}: a greedy parameter is not understood")
            if part.startswith("{"):
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.static.setdefault(part, _Node())
        if route.method in node.routes:
            raise TemplateError(f"{route.key} stands twice in the template")
        node.routes[route.method] = route


def _find(node: _Node, method: str, parts: Sequence[str], values: list[str]) -> Route | None:
    if not parts:
        return node.routes.get(method) or node.routes.get("ANY")
    first, rest = parts[0], parts[1:]
    if first in node.static:
        found = _find(node.static[first], method, rest, values)
        if found is not None:
            return found
    if node.parameter is None or not first:
        return None
    values.append(first)
    found = _find(node.parameter, method, rest, values)
    if found is None:
        values.pop()
    return found


def _names(route: Route) -> list[str]:
    return [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
