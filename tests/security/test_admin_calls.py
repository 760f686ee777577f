"""Where a deployment takes admin keys of those alone whom IAM lets invoke its functions."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from cirrusmq.access import keys
from cirrusmq_lambda.http import INVOKED
from cirrusmq_local.commands import admin
from cirrusmq_local.commands.cli import make_app
from cirrusmq_local.testing.world import World


@pytest.fixture
def world() -> World:
    made = World()
    settings = replace(made.core.settings, admin_by_invocation=True)
    made.core = replace(made.core, settings=settings)
    return made


def as_admin(world: World, monkeypatch: pytest.MonkeyPatch, *, is_admin: bool = True) -> None:
    rights = keys.KeyRights(admin=is_admin, manages_keys=True)
    key, secret = keys.create_key(world.core, "alice", rights)
    monkeypatch.setenv("CIRRUSMQ_URL", "https://queues.example")
    monkeypatch.setenv("CIRRUSMQ_ACCESS_KEY_ID", key.id)
    monkeypatch.setenv("CIRRUSMQ_SECRET", secret)


def call(world: World, method: str, path: str, **members: Any) -> dict[str, Any]:
    event = admin.event(method, path, None, Path()) | members
    answer: dict[str, Any] = world.run("manage", event)
    return answer


def test_an_admin_key_is_refused_over_http_and_taken_by_invocation(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    over_http = world.client("alice", admin=True).get("/keys")
    assert over_http.status == 403
    assert "lambda:InvokeFunction" in over_http.json["detail"]
    as_admin(world, monkeypatch)
    assert call(world, "GET", "/keys?limit=10")["statusCode"] == 200


@pytest.mark.parametrize("marked", [False, None, "true", 1, {}])
def test_nothing_but_the_mark_itself_is_an_invocation(
    world: World, monkeypatch: pytest.MonkeyPatch, marked: object
) -> None:
    as_admin(world, monkeypatch)
    assert call(world, "GET", "/keys", **{INVOKED: marked})["statusCode"] == 403


def test_no_caller_over_http_can_set_the_mark(world: World) -> None:
    client = world.client("alice", admin=True)
    assert client.get("/queues", f"{INVOKED}=true").status == 403
    assert client.put("/queues/orders", {INVOKED: True}).status == 403
    authorization = {"authorization": client.authorization, INVOKED: "true"}
    assert world.call("GET", "/queues", b"", authorization).status == 403


def test_an_invocation_needs_a_key_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_admin(world, monkeypatch)
    asked = admin.event("GET", "/keys", None, Path())
    asked["headers"]["authorization"] = "Bearer nobody:nothing"
    assert world.run("manage", asked)["statusCode"] == 401


def test_other_keys_are_taken_as_ever(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert world.client("alice").get("/keys").status == 200
    as_admin(world, monkeypatch, is_admin=False)
    assert call(world, "GET", "/keys")["statusCode"] == 200


class FakeLambda:
    """Lambda's `Invoke`, answered by the deployed function."""

    def __init__(self, world: World) -> None:
        self.world, self.called = world, ""

    def client(self, service: str) -> FakeLambda:
        assert service == "lambda"
        return self

    def invoke(self, **given: str) -> dict[str, Any]:
        self.called = f"{given['FunctionName']}:{given['Qualifier']}"
        answer = self.world.run("manage", json.loads(given["Payload"]))
        return {"Payload": io.BytesIO(json.dumps(answer).encode())}


def test_the_command_line_invokes_the_alias(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    as_admin(world, monkeypatch)
    fake = FakeLambda(world)
    monkeypatch.setattr("boto3.client", fake.client)
    named = ["--function", "queues-manage"]
    made = CliRunner().invoke(make_app(), ["admin", "POST", "/keys", "--body", "{}", *named])
    assert made.exit_code == 0, made.output
    assert fake.called == "queues-manage:live"
    assert json.loads(made.stdout)["secret"]
    missing = CliRunner().invoke(make_app(), ["admin", "DELETE", "/keys/nothing", *named])
    assert missing.exit_code == 1
    assert "KeyNotFound" in missing.stdout
    for wrong in (["POST", "/keys", "--body", "{"], ["GET", "keys"]):
        assert CliRunner().invoke(make_app(), ["admin", *wrong, *named]).exit_code == 2
