"""Calls without a route key: the route is found here, by method and path.

    a function's own URL     knows no routes; the path is as it came, still encoded
    the API's `$default`     has all routes of `manage`; the path is decoded already

So an encoded slash is part of a name at a URL, where the name is refused, and parts two names at
`$default`, where such a path is not found. No name of the contract has a slash.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn
from urllib.parse import unquote

from cirrusmq.base.errors import MethodNotAllowed, NotFound

DEFAULT = "$default"
"""The route key of an event that says nothing of a route."""


def routed(route_keys: Iterable[str], event: dict[str, Any]) -> dict[str, Any]:
    """The event with its route key and parameters; as it is where no route has its path."""
    called = event["requestContext"]["http"]
    given = _parts(event["rawPath"])
    for key in route_keys:
        method, _, path = key.partition(" ")
        names = _names(path.split("/"), given)
        if names is not None and method == called["method"]:
            return {**event, "routeKey": key, "pathParameters": names}
    return event


def refuse(route_keys: Iterable[str], event: Mapping[str, Any]) -> NoReturn:
    """A call that matches no route of the function; MethodNotAllowed or NotFound."""
    refuse_path(route_keys, _parts(event["rawPath"]))


def refuse_path(route_keys: Iterable[str], given: Sequence[str]) -> NoReturn:
    """A path, taken apart, of which no route has the method; MethodNotAllowed or NotFound."""
    fitting: defaultdict[str, set[str]] = defaultdict(set)
    for key in route_keys:
        method, _, path = key.partition(" ")
        if _names(path.split("/"), given) is not None:
            fitting[path].add(method)
    if not fitting:
        raise NotFound
    # A path with a name of its own is another resource than those with a parameter in its place.
    closest = min(fitting, key=lambda path: path.count("{"))
    raise MethodNotAllowed(sorted(fitting[closest]))


def _parts(raw_path: str) -> list[str]:
    """The path is taken apart before it is decoded: an encoded slash is part of a name."""
    return [unquote(part, errors="replace") for part in raw_path.split("/")]


def _names(template: Sequence[str], given: Sequence[str]) -> dict[str, str] | None:
    """The values of the path's parameters; None where it is another path."""
    if len(template) != len(given):
        return None
    names: dict[str, str] = {}
    for held, part in zip(template, given, strict=True):
        if held.startswith("{") and part:
            names[held[1:-1]] = part
        elif held != part:
            return None
    return names
