from __future__ import annotations

import base64
import errno
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cirrusmq.base.errors import CirrusMQError, Unauthenticated
from cirrusmq.runtime.secret import Generations
from cirrusmq_local.engine import EngineError
from cirrusmq_local.stack.local_routes import LocalRoutes

KEYS = {"Bearer admin": True, "Bearer user": False}


@dataclass(frozen=True)
class Caller:
    admin: bool


class Store:
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.resets = 0
        self.exports: list[tuple[str, int | None]] = []

    def capacity(self) -> dict[str, Any]:
        return {"write_units": 3, "read_units": 0.5, "by_operation": {}, "by_table": {}}

    def reset_capacity(self) -> None:
        self.resets += 1

    def export(self, table: str, folder: Path, *, since_ms: int | None = None) -> Path:
        self.exports.append((table, since_ms))
        return folder / "AWSDynamoDB" / "1"


class Stand:
    """The routes over a store that notes, with one function to run."""

    def __init__(self, folder: Path) -> None:
        self.store = Store()
        self.ran: list[str] = []
        self._routes = LocalRoutes(
            self.store,
            ["Directory", "Usage"],
            folder / "exports",
            {"sweep": lambda: self.ran.append("sweep")},
            self.turn_secret_over,
            lambda accept: (f"asked for {accept}".encode(), "text/plain"),
            self._verify,
            lambda error, request_id: {"statusCode": 400, "code": error.code},
        )

    def turn_secret_over(self) -> Generations:
        self.ran.append("rotate")
        return Generations(key="0" * 64, from_ms=1_000)

    def call(
        self,
        key: str,
        body: str | None = None,
        name: str = "",
        authorization: str | None = "Bearer admin",
        query: dict[str, str] | None = None,
        in_base64: bool = False,
    ) -> dict[str, Any]:
        event = {
            "routeKey": key,
            "headers": {} if authorization is None else {"authorization": authorization},
            "requestContext": {"requestId": "r"},
            "pathParameters": {"name": name},
            "isBase64Encoded": in_base64,
        }
        if body is not None:
            event["body"] = body
        if query is not None:
            event["queryStringParameters"] = query
        return self._routes(event, None)

    @staticmethod
    def _verify(authorization: str | None) -> Caller:
        if authorization not in KEYS:
            raise Unauthenticated
        return Caller(admin=KEYS[authorization])


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def test_capacity_is_shown_and_reset(stand: Stand) -> None:
    assert json.loads(stand.call("GET /local/capacity")["body"])["write_units"] == 3
    assert stand.call("POST /local/capacity/reset") == {"statusCode": 204}
    assert stand.store.resets == 1


def test_a_call_with_an_unknown_parameter_does_nothing(stand: Stand) -> None:
    refused = stand.call("POST /local/capacity/reset", query={"table": "Usage"})
    assert (refused["code"], stand.store.resets) == ("InvalidParameter", 0)


def test_an_export_names_the_folder_of_each_table(stand: Stand, tmp_path: Path) -> None:
    exports = json.loads(stand.call("POST /local/export", "{}")["body"])["exports"]
    assert exports == {
        table: str(tmp_path / "exports" / table / "AWSDynamoDB" / "1")
        for table in ("Directory", "Usage")
    }
    assert all(Path(folder).is_absolute() for folder in exports.values())
    assert stand.store.exports == [("Directory", None), ("Usage", None)]


def test_an_export_may_begin_at_a_time(stand: Stand) -> None:
    stand.call("POST /local/export", '{"since": "1970-01-01T00:00:01.500Z"}')
    assert stand.store.exports == [("Directory", 1_500), ("Usage", 1_500)]


def test_a_body_in_base64_is_read_too(stand: Stand) -> None:
    body = base64.b64encode(b"{}").decode()
    assert stand.call("POST /local/export", body, in_base64=True)["statusCode"] == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", "MalformedRequest"),
        ("[]", "MalformedRequest"),
        ("[" * 100_000, "MalformedRequest"),
        ('{"since": 1}', "InvalidParameter"),
        ('{"since": "yesterday"}', "InvalidParameter"),
        ('{"until": "1970-01-01T00:00:00Z"}', "InvalidParameter"),
    ],
)
def test_a_bad_export_is_refused_and_nothing_is_exported(
    stand: Stand, body: str, code: str
) -> None:
    assert stand.call("POST /local/export", body)["code"] == code
    assert stand.store.exports == []


def test_a_function_runs_now(stand: Stand) -> None:
    assert stand.call("POST /local/run/{name}", name="sweep")["statusCode"] == 200
    assert stand.ran == ["sweep"]


def test_an_unknown_function_cannot_be_run(stand: Stand) -> None:
    assert stand.call("POST /local/run/{name}", name="send")["code"] == "NotFound"


@pytest.mark.parametrize(
    ("authorization", "code"),
    [(None, "Unauthenticated"), ("Bearer wrong", "Unauthenticated"), ("Bearer user", "Forbidden")],
)
def test_only_an_admin_key_may_ask(stand: Stand, authorization: str | None, code: str) -> None:
    for key in ("GET /local/capacity", "POST /local/capacity/reset", "POST /local/export"):
        assert stand.call(key, authorization=authorization)["code"] == code
    refused = stand.call("POST /local/run/{name}", name="sweep", authorization=authorization)
    assert refused["code"] == code
    assert (stand.store.resets, stand.store.exports, stand.ran) == (0, [], [])


def test_an_error_of_a_function_is_told(stand: Stand, tmp_path: Path) -> None:
    def fail() -> None:
        raise CirrusMQError("told to fail")

    stand._routes = LocalRoutes(
        stand.store,
        [],
        tmp_path,
        {"sweep": fail},
        stand.turn_secret_over,
        lambda accept: (b"", ""),
        stand._verify,
        lambda e, r: {"code": e.detail},
    )
    assert stand.call("POST /local/run/{name}", name="sweep") == {"code": "told to fail"}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "Unavailable"),
        (EngineError("InternalServerError", "disk I/O error", 500), "Unavailable"),
        (EngineError("InvalidExportTimeException", "Changes are kept a day"), "InvalidParameter"),
    ],
)
def test_a_failing_export_is_a_problem(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str
) -> None:
    def fail(*_: Any, **__: Any) -> Path:
        raise error

    monkeypatch.setattr(stand.store, "export", fail)
    body = '{"since": "1970-01-01T00:00:01.500Z"}'
    assert stand.call("POST /local/export", body)["code"] == code
