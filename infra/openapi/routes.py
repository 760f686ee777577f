"""The routes that the functions have, and the answers that their types declare."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from cirrusmq_lambda.http import Route
from cirrusmq_lambda.replies import File
from cirrusmq_local.cloud.functions import load_handler
from cirrusmq_local.cloud.template import load

ROOT = Path(__file__).resolve().parents[2]

Declared: TypeAlias = type | tuple[str, ...] | None
"""The struct of an answer; the media types of a file; None: no body."""


def find_routes() -> dict[str, Route]:
    """The routes that the functions answer, by key (`GET /queues`)."""
    routes: dict[str, Route] = {}
    for function in load(ROOT / "template.yaml").functions:
        module = sys.modules[load_handler(function).__module__]
        routes |= getattr(module, "ROUTES", {})
    del routes["$default"]
    return routes


def answers_of(route: Route) -> Mapping[int, Declared]:
    """The answers of a route by status, in the order of its declaration."""
    return {kind.status: _declared(kind, given) for kind, given in _replies(route)}


def _replies(route: Route) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The kinds of replies that a route declares to return, each with its parameters."""
    returned = get_type_hints(route)["return"]
    for each in get_args(returned) if get_origin(returned) is Union else (returned,):
        yield get_origin(each) or each, get_args(each)


def _declared(kind: Any, given: tuple[Any, ...]) -> Declared:
    if not given:
        return None
    (parameter,) = given
    return tuple(sorted(get_args(parameter))) if kind is File else parameter
