"""Finds the route of a call without a route key, by method and path.

    a function's own URL     has no routes; the path is still encoded
    the API's `$default`     has all routes of `manage`; the path is already decoded

So an encoded slash is part of a name at a URL, and the name is refused; at `$default` it separates
two names, and the path is not found. No name of the contract has a slash.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn
from urllib.parse import unquote

from cirrusmq.base.errors import MethodNotAllowed, NotFound

DEFAULT = "$default"
"""The route key of an event without a route."""


def routed(route_keys: Iterable[str], event: dict[str, Any]) -> dict[str, Any]:
    """Returns the event with its route key and parameters, or unchanged if no route matches."""
    called = event["requestContext"]["http"]
    given = _parts(event["rawPath"])
    for key in route_keys:
        method, _, path = key.partition(" ")
        names = _names(path.split("/"), given)
        if names is not None and method == called["method"]:
            return {**event, "routeKey": key, "pathParameters": names}
    return event


def refuse(route_keys: Iterable[str], event: Mapping[str, Any]) -> NoReturn:
    """Raises MethodNotAllowed or NotFound for a call that matches no route of the function."""
    refuse_path(route_keys, _parts(event["rawPath"]))


def refuse_path(route_keys: Iterable[str], given: Sequence[str]) -> NoReturn:
    """Raises MethodNotAllowed if a route has the path by another method, else NotFound."""
    fitting: defaultdict[str, set[str]] = defaultdict(set)
    for key in route_keys:
        method, _, path = key.partition(" ")
        if _names(path.split("/"), given) is not None:
            fitting[path].add(method)
    if not fitting:
        raise NotFound
    # A path with a fixed name is another resource than a path with a parameter in its place.
    closest = min(fitting, key=lambda path: path.count("{"))
    raise MethodNotAllowed(sorted(fitting[closest]))


def _parts(raw_path: str) -> list[str]:
    """Returns the path's parts, split before decoding: an encoded slash is part of a name."""
    return [unquote(part, errors="replace") for part in raw_path.split("/")]


def _names(template: Sequence[str], given: Sequence[str]) -> dict[str, str] | None:
    """Returns the values of the path's parameters, or None if the path does not match."""
    if len(template) != len(given):
        return None
    names: dict[str, str] = {}
    for held, part in zip(template, given, strict=True):
        if held.startswith("{") and part:
            names[held[1:-1]] = part
        elif held != part:
            return None
    return names
