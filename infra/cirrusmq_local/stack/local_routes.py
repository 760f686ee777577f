"""`/local/*` and `/metrics`: the routes that only a stack on one machine has."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from cirrusmq.base.errors import (
    CirrusMQError,
    Forbidden,
    InvalidParameter,
    MalformedRequest,
    NotFound,
    Unavailable,
)
from cirrusmq.base.timestamps import format_time, parse_time
from cirrusmq.runtime.secret import Generations
from cirrusmq_local.cloud.template import Route
from cirrusmq_local.engine import EngineError
from cirrusmq_local.engine.data_errors import DataError

FUNCTION_NAME = "local"

ROUTES: Sequence[Route] = [
    Route(function=FUNCTION_NAME, method=method, path=path)
    for method, path in (
        ("GET", "/local/capacity"),
        ("POST", "/local/capacity/reset"),
        ("POST", "/local/export"),
        ("POST", "/local/run/{name}"),
        ("POST", "/local/secret/rotate"),
        ("GET", "/metrics"),
    )
]


class MeteredStore(Protocol):
    """The part of the engine that the routes use."""

    def capacity(self) -> dict[str, Any]: ...

    def reset_capacity(self) -> None: ...

    def export(self, table: str, folder: Path, *, since_ms: int | None = None) -> Path: ...


class Caller(Protocol):
    """The account of a key, as far as the routes need it."""

    @property
    def admin(self) -> bool: ...


class LocalRoutes:
    """A handler like the template's functions: payload-2.0 events in, answers out."""

    def __init__(
        self,
        store: MeteredStore,
        tables: Sequence[str],
        exports: Path,
        runs: Mapping[str, Callable[[], None]],
        turn_secret_over: Callable[[], Generations],
        metrics: Callable[[str], tuple[bytes, str]],
        verify: Callable[[str | None], Caller],
        problems: Callable[[CirrusMQError, str], dict[str, Any]],
    ) -> None:
        self._store = store
        self._tables = tables
        self._exports = exports
        self._runs = runs
        self._turn_secret_over = turn_secret_over
        self._metrics = metrics
        self._verify = verify
        self._problems = problems

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Handles one event of an HTTP API. Returns the answer."""
        try:
            if not self._verify(event["headers"].get("authorization")).admin:
                raise Forbidden("only an admin key may ask this")
            for name in event.get("queryStringParameters") or {}:
                raise InvalidParameter(name, "this parameter is not known")
            return self._answer(event)
        except CirrusMQError as error:
            return self._problems(error, event["requestContext"]["requestId"])

    def _answer(self, event: dict[str, Any]) -> dict[str, Any]:
        match event["routeKey"]:
            case "GET /local/capacity":
                return _json(self._store.capacity())
            case "POST /local/capacity/reset":
                self._store.reset_capacity()
                return {"statusCode": 204}
            case "POST /local/export":
                return _json({"exports": self._export(_read_body(event))})
            case "POST /local/secret/rotate":
                return self._rotate_secret()
            case "GET /metrics":
                content, content_type = self._metrics(event["headers"].get("accept", ""))
                return _text(content.decode(), content_type)
        return self._run(event["pathParameters"]["name"])

    def _export(self, body: Mapping[str, Any]) -> dict[str, str]:
        for name in body:
            if name != "since":
                raise InvalidParameter(name, "is not known here")
        since = body.get("since")
        if since is not None and not isinstance(since, str):
            raise InvalidParameter("since", "must be a time")
        since_ms = None if since is None else parse_time("since", since)
        try:
            self._exports.mkdir(mode=0o700, parents=True, exist_ok=True)
            return {
                table: str(self._store.export(table, self._exports / table, since_ms=since_ms))
                for table in self._tables
            }
        except OSError as error:
            # The table whose export failed has left nothing; earlier tables are complete.
            raise Unavailable(
                f"The export cannot be written to {self._exports}: {error.strerror}."
            ) from error
        except EngineError as error:
            if error.status >= 500:
                raise Unavailable from error
            raise InvalidParameter("since", error.message) from error

    def _rotate_secret(self) -> dict[str, Any]:
        try:
            made = self._turn_secret_over()
        except DataError as error:
            raise Unavailable(str(error)) from error
        return _json({"signs_from": format_time(made.from_ms)})

    def _run(self, name: str) -> dict[str, Any]:
        if name not in self._runs:
            raise NotFound(f"there is no {name} to run, only {', '.join(sorted(self._runs))}")
        self._runs[name]()
        return _json({"ran": name})


def _read_body(event: dict[str, Any]) -> Mapping[str, Any]:
    text = event.get("body") or "{}"
    try:
        body = json.loads(base64.b64decode(text) if event["isBase64Encoded"] else text)
    except (ValueError, RecursionError):
        raise MalformedRequest from None
    if not isinstance(body, dict):
        raise MalformedRequest
    return body


def _json(value: Any) -> dict[str, Any]:
    return _text(json.dumps(value), "application/json")


def _text(text: str, content_type: str) -> dict[str, Any]:
    return {"statusCode": 200, "headers": {"content-type": content_type}, "body": text}
