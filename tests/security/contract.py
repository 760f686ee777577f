"""The calls of the OpenAPI document, and a stage on which each of them can be made.

Every test of all calls reads them from here, so a new route is tested with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from cirrusmq.base.timestamps import format_time
from cirrusmq_local.testing import Client, Reply, World

DOCUMENT: dict[str, Any] = json.loads(
    resources.files("cirrusmq_lambda").joinpath("openapi.json").read_text("utf-8")
)
OWNER, FOREIGNER = "alice", "bob"
CODES = set(
    re.findall(
        r"\w+",
        " ".join(
            answer["description"]
            for methods in DOCUMENT["paths"].values()
            for held in methods.values()
            for status, answer in held["responses"].items()
            if int(status) >= 400
        ),
    )
) | {"NotFound", "MethodNotAllowed"}
"""Every code that the document knows."""


@dataclass(frozen=True)
class Call:
    """One route of the document."""

    method: str
    route: str
    described: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {self.route}"

    @property
    def needs_key(self) -> bool:
        """Whether a call without a key is refused."""
        ways = self.described.get("security", DOCUMENT["security"])
        return bool(ways) and all(ways)

    @property
    def succeeds_with(self) -> set[int]:
        """The statuses of its good answers."""
        return {int(status) for status in self.described["responses"] if int(status) < 400}

    @property
    def names(self) -> list[str]:
        """The names in braces in its path."""
        return re.findall(r"{(\w+)}", self.route)

    def path(self, names: Mapping[str, str]) -> str:
        """Its path with the names put in."""
        return re.sub(r"{(\w+)}", lambda found: names[found[1]], self.route)


CALLS = [
    Call(method.upper(), path, described)
    for path, methods in DOCUMENT["paths"].items()
    for method, described in methods.items()
]


@dataclass
class Stage:
    """A service with one of everything, all of it the owner's."""

    world: World
    owner: Client
    foreigner: Client
    names: dict[str, str] = field(default_factory=dict)
    handles: list[str] = field(default_factory=list)
    """Of half messages, to be decided."""
    asked: dict[str, str] = field(default_factory=dict)
    """The receipt and the deadline of a message that asks for a reply."""

    def make(self, client: Client, call: Call, names: Mapping[str, str]) -> Reply:
        """The call with a good body and query."""
        query = "queues={queue}&topics={topic}" if call.route == "/rates" else ""
        if call.route.endswith("/reply") and call.method == "GET":
            query = f"reply_by={self.asked['reply_by']}"
        body = self.body(call)
        return client.call(call.method, call.path(names), body, query.format_map(names))

    def body(self, call: Call) -> Any:
        """A body that the call takes; None where it takes none."""
        special = {
            "PUT /schedules/{schedule}": {
                "queue": "orders",
                "cron": "0 8 * * 1",
                "message": {"body": "week"},
            },
            "PUT /queues/{queue}": {"rewind_seconds": 3_600},
            "POST /queues/{queue}/rewind": {"to": format_time(self.world.clock.now_ms() - 1_000)},
            "PUT /topics/{topic}/subscriptions/{subscription}": {"protocol": "pull"},
            "POST /topics/{topic}/subscriptions/{subscription}/rewind": {
                "to": format_time(self.world.clock.now_ms() - 1_000)
            },
            "POST /topics/{topic}/subscriptions/{subscription}/redeliver": {
                "ids": [self.names["/topics/{topic}/messages/{id}"]]
            },
            "POST /topics/{topic}/subscriptions/{subscription}/confirm": {},
            "POST /queues/{queue}/messages/{id}/reply": {
                "receipt": self.asked["receipt"],
                "reply": {"body": "4"},
            },
            "POST /topics/{topic}/half/commit": {"handle": self.handles[0]},
            "POST /topics/{topic}/half/rollback": {"handle": self.handles[1]},
        }
        if str(call) in special:
            return special[str(call)]
        content = call.described.get("requestBody", {}).get("content", {})
        examples = content.get("application/json", {}).get("examples", {})
        values = [example["value"] for example in examples.values()]
        return values[0] if values else {} if content else None

    def everything(self) -> list[list[dict[str, Any]]]:
        """All that is stored, but for the days on which keys were used."""
        return [
            [item for item in self.world.items(table) if not item["pk"]["S"].startswith("T#key#")]
            for table in ("directory", "messages", "usage")
        ]


def set_stage() -> Stage:
    """A queue with messages, a receiver, grants, a topic with subscriptions, an operation."""
    first = _first_stage()
    world = World(like=first.world)
    owner, foreigner = (
        Client(world, each.authorization) for each in (first.owner, first.foreigner)
    )
    return Stage(
        *(world, owner, foreigner, dict(first.names), list(first.handles), dict(first.asked))
    )


@cache
def _first_stage() -> Stage:
    """The one that all others begin like; nothing else is done with it."""
    world = World()
    owner, foreigner = world.client(OWNER, admin=True), world.client(FOREIGNER)
    stage = Stage(world, owner, foreigner)
    for name, attributes in (("failed", {}), ("orders", {"rewind_seconds": 3_600})):
        assert owner.put(f"/queues/{name}", attributes).status == 201
    owner.send("orders", "2+2", reply={"seconds": 3_600})
    (asked,) = owner.receive("orders", 1)
    stage.asked = {name: asked[name] for name in ("receipt", "reply_by")}
    assert owner.put("/queues/orders/receivers/copy").status == 201
    weekly = {"queue": "orders", "cron": "0 8 * * 1", "message": {"body": "week"}}
    assert owner.put("/schedules/weekly", weekly).status == 201
    assert owner.put("/queues/orders/grants/carol", {"permission": "send"}).status == 200
    assert owner.put("/topics/news").status == 201
    assert owner.put("/topics/news/grants/carol", {"permission": "publish"}).status == 200
    pull = {"protocol": "pull"}
    assert owner.put("/topics/news/subscriptions/all", pull).status == 201
    broadcast = {"protocol": "pull", "mode": "broadcasting"}
    assert owner.put("/topics/news/subscriptions/everybody", broadcast).status == 201
    hook = {"protocol": "http", "endpoint": "https://example.com/hook"}
    assert owner.put("/topics/news/subscriptions/web", hook).status == 201
    world.settle()
    half = {"messages": [{"body": "half"}], "transaction": {}}
    for _ in range(2):
        prepared = owner.post("/topics/news/messages", half).json["transaction"]
        stage.handles.append(prepared["handle"])
    sent = owner.send("orders", "one", "two", "three")
    owner.receive("orders", 1)
    published = owner.post("/topics/news/messages", {"messages": [{"body": "news"}]})
    operation = owner.post("/queues/failed/purge").json["operation"]
    world.settle()
    key = owner.post("/keys").json["access_key_id"]
    stage.names = {
        "queue": "orders",
        "receiver": "copy",
        "schedule": "weekly",
        "account": "carol",
        "topic": "news",
        "subscription": "all",
        "asset": "swagger-ui.css",
        "/operations/{id}": operation,
        "/keys/{id}": key,
        "/keys/{id}/rotate": key,
        "/queues/{queue}/messages/{id}": sent[2]["id"],  # which nobody received
        "/queues/{queue}/messages/{id}/reply": asked["id"],
        "/topics/{topic}/messages/{id}": published.json["messages"][0]["id"],
    }
    return stage


_OF_URLS = ("secret", "retry", "redeliver")


def names_for(stage: Stage, call: Call) -> dict[str, str]:
    """The names in the call's path; what `id` is depends on the route."""
    names = dict(stage.names)
    if "{id}" in call.route:
        names["id"] = stage.names[call.route]
    if call.route == "/topics/{topic}/subscriptions/{subscription}/messages":
        names["subscription"] = "everybody"
    of_url = [f"/topics/{{topic}}/subscriptions/{{subscription}}/{work}" for work in _OF_URLS]
    if call.route in of_url:
        names["subscription"] = "web"
    return names
