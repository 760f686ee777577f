"""The document at /openapi.json: it is not stale, it is valid, and the service keeps to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NotRequired, get_origin, get_type_hints, is_typeddict

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate
from tests.infra.test_routes import MANAGED
from tests.security.contract import CALLS, Call, names_for, set_stage

from cirrusmq.base.timestamps import format_time
from cirrusmq_client import answers
from cirrusmq_local.cloud.routing import Router
from cirrusmq_local.cloud.template import Route, Template
from cirrusmq_local.testing.world import Client, Reply, World


@pytest.fixture(scope="module")
def committed(root: Path) -> Path:
    return root / "layers/core/cirrusmq_lambda/openapi.json"


@pytest.fixture(scope="module")
def openapi(committed: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(committed.read_text(encoding="utf-8"))
    return read


def operations(openapi: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def complaints(openapi: dict[str, Any], schema: dict[str, Any], value: Any) -> list[str]:
    validator = OAS31Validator({**schema, "components": openapi["components"]})
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def test_the_clients_types_have_the_fields_of_the_document(openapi: dict[str, Any]) -> None:
    compared = 0
    for name, schema in openapi["components"]["schemas"].items():
        if not is_typeddict(shape := getattr(answers, name, None)):
            continue
        hints = get_type_hints(shape, include_extras=True)
        assert list(hints) == list(schema["properties"]), name
        present = {field for field, hint in hints.items() if get_origin(hint) is not NotRequired}
        assert present == set(schema.get("required", [])), name
        compared += 1
    assert compared > 40


def test_it_is_a_valid_document(openapi: dict[str, Any]) -> None:
    assert openapi["openapi"].startswith("3.1.")
    validate(openapi)


def test_it_has_the_routes_of_the_template_and_no_others(
    openapi: dict[str, Any], template: Template
) -> None:
    """Those to the files of pages aside, which are for people."""
    (pages,) = (each.name for each in template.functions if each.folder.name == "pages")
    described = {key for key, _ in operations(openapi)}
    routes = {each.key for each in template.routes if each.function != pages}
    assert described == (routes | set(MANAGED)) - {"$default"}


def test_every_operation_has_a_summary_and_its_errors(openapi: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, operation in operations(openapi)]
    assert len(ids) == len(set(ids))
    for key, operation in operations(openapi):
        assert operation["summary"], key
        assert {"429", "503"} <= set(operation["responses"]), key
        if operation.get("security") != []:
            assert {"400", "401", "403"} <= set(operation["responses"]), key
        if "requestBody" in operation:
            assert {"413", "415"} <= set(operation["responses"]), key


def test_only_calls_named_in_the_contract_work_without_a_key(openapi: dict[str, Any]) -> None:
    without = {
        key
        for key, operation in operations(openapi)
        if operation.get("security") == [] or {} in operation.get("security", [])
    }
    confirm = "POST /topics/{topic}/subscriptions/{subscription}/confirm"
    pages = {"GET /health", "GET /openapi.json", "GET /docs/api", "GET /docs/api/{asset}"}
    assert without == {confirm, *pages}


def test_every_example_is_a_valid_body_of_its_call(openapi: dict[str, Any]) -> None:
    tried = 0
    for key, operation in operations(openapi):
        for media in operation.get("requestBody", {}).get("content", {}).values():
            for name, example in media.get("examples", {}).items():
                assert complaints(openapi, media["schema"], example["value"]) == [], (key, name)
                tried += 1
    assert tried > 20


def test_bodies_tell_their_ranges_and_refuse_unknown_fields(openapi: dict[str, Any]) -> None:
    queue = openapi["components"]["schemas"]["QueueInput"]
    assert queue["additionalProperties"] is False
    timeout = queue["properties"]["visibility_timeout_seconds"]
    assert (timeout["minimum"], timeout["maximum"]) == (1, 43_200)
    assert timeout["description"] == "an integer from 1 to 43,200 seconds"


class Checked:
    """A client whose every call and answer is held against the document."""

    def __init__(self, openapi: dict[str, Any], client: Client) -> None:
        self.openapi = openapi
        keys = (key.split(" ") for key, _ in operations(openapi))
        self.router = Router(Route(function="", method=method, path=path) for method, path in keys)
        self.client = client

    def __call__(self, method: str, path: str, body: Any = None, query: str = "") -> Reply:
        return self.check(method, path, self.client.call(method, path, body, query), body)

    def check(self, method: str, path: str, reply: Reply, body: Any = None) -> Reply:
        """Hold an answer against the document, and the body that was taken."""
        match = self.router.match(method, path)
        assert match is not None
        operation = self.openapi["paths"][match.route.path][method.lower()]
        where = (method, path, reply.status, reply.text)
        assert str(reply.status) in operation["responses"], where
        described = operation["responses"][str(reply.status)]
        if contents := described.get("content"):
            content = contents[reply.headers["Content-Type"].partition(";")[0]]
            if "schema" in content:
                assert complaints(self.openapi, content["schema"], reply.json) == [], where
        if reply.status >= 400:
            assert reply.code in described["description"].split(", "), where
        elif body is not None:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            assert complaints(self.openapi, schema, body) == [], where
        return reply


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_each_call_is_answered_as_it_is_described(openapi: dict[str, Any], call: Call) -> None:
    """By a service that has one of everything; then with unknown names, and an unknown field."""
    stage = set_stage()
    checked = Checked(openapi, stage.owner)
    names, body = names_for(stage, call), stage.body(call)

    reply = stage.make(stage.owner, call, names)

    assert reply.status in call.succeeds_with or call.route.startswith("/reports/")  # there is none
    checked.check(call.method, call.path(names), reply, body)
    checked(call.method, call.path(dict.fromkeys(names, "nothing")), body)
    if body is not None:
        assert checked(call.method, call.path(names), {"unknown": 1}).status >= 400
    stage.world.engine.close()


@pytest.fixture
def call(openapi: dict[str, Any]) -> Checked:
    return Checked(openapi, World().client("alice", admin=True))


def use_queues(call: Checked) -> None:
    call("PUT", "/queues/failed")
    dead_letter = {"queue": "failed", "max_receives": 5}
    attributes = {"dead_letter": dead_letter, "rewind_seconds": 600, "labels": {"a": "b"}}
    assert call("PUT", "/queues/orders", attributes).status == 201
    assert call("PUT", "/queues/orders", {"partitions": 8}).status == 409
    assert call("PUT", "/queues/orders", {"partitions": 0}).status == 400
    assert call("PATCH", "/queues/orders", {"retry": {"policy": "unordered"}}).status == 200
    call("PUT", "/queues/orders/receivers/audit", {"filter": {"tags": ["order"]}})
    call("GET", "/queues/orders/receivers")
    call("GET", "/queues", query="limit=1")


def use_messages(call: Checked) -> None:
    path = "/queues/orders/messages"
    binary = {"body_base64": "AAE=", "attributes": {"raw": {"base64": "AAE="}}, "tags": ["order"]}
    many = [{"body": f"{number}"} for number in range(6)]
    assert call("POST", path, {"messages": [binary, *many]}).status == 201
    assert call("POST", path, {"messages": many, "atomic": False}).status == 200
    assert call("POST", path, {"messages": [{"body": "x" * 65_537}]}).status == 413
    (sent,) = call("POST", path, {"messages": [binary]}).json["messages"]
    assert call("GET", f"{path}/{sent['id']}", query="body=true").json["message"]["tags"]
    question = {"messages": [{"body": "2+2", "reply": {"seconds": 60}}]}
    call("PUT", "/queues/asked")
    (asked,) = call("POST", "/queues/asked/messages", question).json["messages"]
    place, query = f"/queues/asked/messages/{asked['id']}/reply", f"reply_by={asked['reply_by']}"
    assert call("GET", place, query=query).json["state"] == "waiting"
    (request,) = call("POST", "/queues/asked/messages/receive", {}).json["messages"]
    answer = {"receipt": request["receipt"], "reply": {"body": "4", "attributes": {"a": "b"}}}
    assert call("POST", place, answer).status == 200
    other = {"receipt": request["receipt"], "reply": {"body": "5"}}
    assert call("POST", place, other).status == 409
    assert call("GET", place, query=f"{query}&wait_seconds=1.5").json["state"] == "replied"
    assert call("GET", place, query="reply_by=2020-11-20T08:00:00Z").status == 404
    held = call("POST", f"{path}/receive", {"max": 8}).json["messages"]
    receipts = [message["receipt"] for message in held]
    call("POST", f"{path}/dead-letter", {"receipts": receipts[2:3], "reason": "odd"})
    gone = call("POST", f"{path}/delete", {"receipts": receipts[3:4] * 2 + ["bad"]}).json
    assert gone["failed"]
    dead = call("POST", "/queues/failed/messages/receive", {"max": 1}).json["messages"]
    assert dead[0]["dead_letter"]["reason"] == "odd"
    assert call("GET", "/queues/orders").json["counts"]["inactive"] > 0
    assert call("POST", "/queues/failed/rewind", {"to": held[0]["sent_at"]}).status == 409
    call("POST", "/queues/failed/purge")


def use_topics(call: Checked) -> None:
    topic = "/topics/news"
    hook = {"protocol": "http", "endpoint": "http://127.0.0.1:1/hook"}
    log = {"protocol": "pull", "mode": "broadcasting"}
    call("PUT", topic, {"filter": "tags"})
    assert "secret" in call("PUT", f"{topic}/subscriptions/hook", hook).json
    assert call("PUT", f"{topic}/subscriptions/hook", hook).status == 200
    call("PUT", f"{topic}/subscriptions/copy", {"protocol": "queue", "endpoint": "orders"})
    call("PUT", f"{topic}/subscriptions/group", {"protocol": "pull", "filter": {"tags": ["a"]}})
    call("PUT", f"{topic}/subscriptions/log", log)
    bad = {"protocol": "pull", "filter": {"sql": "a ="}}
    assert call("PUT", f"{topic}/subscriptions/bad", bad).status == 400
    call("PATCH", f"{topic}/subscriptions/hook", {"retry": {"policy": "backoff"}})
    world = call.client.world
    world.endpoint = lambda url: "status 500"
    published = call("POST", f"{topic}/messages", {"messages": [{"body": "x", "tags": ["a"]}]})
    call("POST", f"{topic}/messages", {"messages": [{"body": "y"}], "atomic": False})
    use_half_messages(call, topic)
    world.settle()
    world.clock.pass_seconds(3)
    matched = call("POST", f"{topic}/match", {"messages": [{"body": "x", "tags": ["a"]}]})
    assert [each["name"] for each in matched.json["messages"][0]["subscriptions"]] == [
        *("copy", "group", "hook", "log")
    ]
    for work in ("retry", "pause", "resume"):
        assert call("POST", f"{topic}/subscriptions/hook/{work}").status in (200, 204)
    assert call("POST", f"{topic}/subscriptions/copy/pause").status == 400
    world.settle()
    call("GET", f"{topic}/subscriptions/log/messages")
    again = {"ids": [published.json["messages"][0]["id"]]}
    assert call("POST", f"{topic}/subscriptions/hook/redeliver", again).status == 409
    assert call("POST", f"{topic}/subscriptions/copy/redeliver", again).status == 400
    to = {"to": format_time(world.clock.now_ms() - 1_000)}
    call("POST", f"{topic}/subscriptions/group/rewind", to)
    assert call("POST", f"{topic}/subscriptions/group/rewind", to).status == 409
    assert call("POST", f"{topic}/subscriptions/copy/rewind", to).status == 400
    world.settle()
    assert len(call("GET", "/operations", query="topic=news").json["operations"]) >= 1
    assert "cursor" in call("GET", "/operations", query="limit=1").json
    assert call("GET", "/operations", query="state=gone").status == 400
    for name in ("hook", "copy", "group", "log"):
        call("GET", f"{topic}/subscriptions/{name}")
    call("GET", f"{topic}/messages/{again['ids'][0]}", query="body=true")
    assert call("GET", topic).json["counts"]["active"] > 0
    (held,) = call("POST", f"{topic}/subscriptions/group/messages/receive", {}).json["messages"]
    assert held["tags"]
    assert call("GET", f"{topic}/subscriptions/group/consumers").json["consumers"]
    assert call("POST", f"{topic}/subscriptions/hook/confirm", {"token": "x"}).status == 403


def use_half_messages(call: Checked, topic: str) -> None:
    body = {"messages": [{"body": "x", "group": "g"}], "transaction": {"check_after_seconds": 1}}
    handle = {"handle": call("POST", f"{topic}/messages", body).json["transaction"]["handle"]}
    call.client.world.clock.pass_seconds(1)
    assert len(call("POST", f"{topic}/half/receive", {"max": 2}).json["transactions"]) == 1
    assert call("POST", f"{topic}/half/commit", handle).status == 200
    assert call("POST", f"{topic}/half/rollback", handle).status == 409


def use_the_rest(call: Checked) -> None:
    assert call("GET", "/audit", query="resource=news").json["changes"]
    assert "cursor" in call("GET", "/audit", query="limit=1").json
    assert call("GET", "/audit", query="from=now").status == 400
    scoped = {"scope": {"send": {"queues": ["orders"]}}, "expires_at": "2099-01-01T00:00:00.000Z"}
    assert call("POST", "/keys", scoped).json["scope"] == scoped["scope"]
    read = call("GET", "/rates", query="queues=orders,failed&receivers=orders/audit")
    assert [each["name"] for each in read.json["rates"]] == ["orders", "failed", "orders/audit"]
    (consumer,) = call("GET", "/queues/orders/consumers").json["consumers"]
    assert consumer["account"] == "alice"
    assert not call("GET", "/queues/orders/consumers", query="receiver=audit").json["consumers"]
    assert call("DELETE", "/queues/failed").status == 409


def test_rare_answers_are_as_they_are_described(call: Checked) -> None:
    """With members that few answers have, and refusals for what is there already."""
    for use in (use_queues, use_messages, use_topics, use_the_rest):
        use(call)
