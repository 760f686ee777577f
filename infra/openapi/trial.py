"""Every call of the document, made with its own examples on a service in memory, and counted.

The units are those of DynamoDB's published rules, as the embedded engine counts them: of the call
alone, with caches that are warm, in a small service. Work that follows it is not in them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlencode

from msgspec.structs import replace

from cirrusmq.base.timestamps import format_time
from cirrusmq_local.testing.world import Reply, World

from .operations import OPERATIONS

_UNDECIDED_SECONDS = 60
"""So old a half message is when its producers are asked."""
_SUBSCRIPTION_OF = {
    "messages": "everybody",
    "confirm": "asked",
    "redeliver": "web",
    "retry": "web",
    "secret": "web",
}
"""Names by the call's last word, for a call outside of a group."""


Units: TypeAlias = tuple[float, float]
"""Write units and read units."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A call that was made with one of its examples; None: it takes no body, or has no example."""

    call: str
    example: str | None
    reply: Reply
    units: Units


def tried() -> Iterator[Tried]:
    """Make every call, once for each of its examples, each in a service of its own."""
    for call, operation in OPERATIONS.items():
        for name in operation.examples or (None,):
            stage = _Stage()
            body = None if name is None else operation.examples[name]
            if operation.body is not None and body is None:
                body = {}
            yield stage.make(call, name, body)


def counted() -> dict[str, Units]:
    """Units of each call, from its first example, if its answer is not an error."""
    found: dict[str, Units] = {}
    for one in tried():
        if one.reply.status < 300:
            found.setdefault(one.call, one.units)
    return found


class _Stage:
    """A service with one of everything, and what the examples' names and texts stand for."""

    def __init__(self) -> None:
        self._world = World()
        self._client = self._world.client("alice", admin=True)
        self._fill()

    def make(self, call: str, example: str | None, body: Any) -> Tried:
        method, route = call.split(" ")
        replies: list[Reply] = []
        if route.endswith("half/receive"):
            self._world.clock.pass_seconds(_UNDECIDED_SECONDS)
        path = re.sub(r"{(\w+)}", lambda found: self._name(found[1], call), route)
        asked = OPERATIONS[call].asked
        query = urlencode(self._reply_by if "reply_by" in asked else asked)
        given = self._meant(body, route)

        def make() -> None:
            replies.append(self._client.call(method, path, given, query))

        units = self._world.units(make)
        self._world.engine.close()
        (reply,) = replies
        return Tried(call=call, example=example, reply=reply, units=units)

    def _fill(self) -> None:
        client, world = self._client, self._world
        for name in ("failed", "q"):
            _done(client.put(f"/queues/{name}"))
        dead = {"dead_letter": {"queue": "failed", "max_receives": 5}}
        _done(client.put("/queues/orders", {"partitions": 1, **dead}))
        _done(client.put("/queues/kept", {"rewind_seconds": 3_600}))
        _done(client.put("/queues/kept/receivers/copy"))
        weekly = {"queue": "orders", "cron": "0 8 * * 1", "message": {"body": "week"}}
        _done(client.put("/schedules/weekly", weekly))
        _done(client.put("/queues/orders/grants/carol", {"permission": "send"}))
        _done(client.put("/topics/news", {"partitions": 1}))
        _done(client.put("/topics/news/grants/carol", {"permission": "publish"}))
        of_topic = "/topics/news/subscriptions"
        dead_queue = {"dead_letter_queue": "failed"}
        _done(client.put(f"{of_topic}/all", {"protocol": "pull", **dead_queue}))
        _done(client.put(f"{of_topic}/everybody", {"protocol": "pull", "mode": "broadcasting"}))
        hook = {"protocol": "http", "endpoint": "https://example.com/hook"}
        _done(client.put(f"{of_topic}/web", hook))
        settings = replace(
            world.core.settings, confirm_endpoints=True, public_url="https://example.com"
        )
        world.core = replace(world.core, settings=settings)
        _done(client.put(f"{of_topic}/asked", hook))
        world.settle()
        self._token = json.loads(world.posts[-1][2])["token"]
        half = {"messages": [{"body": "half"}], "transaction": {}}
        self._handle = client.post("/topics/news/messages", half).json["transaction"]["handle"]
        (asked,) = client.send("orders", "held", reply={"seconds": 3_600})
        (received,) = client.receive("orders", 1)
        self._asked: str = asked["id"]
        self._reply_by = {"reply_by": asked["reply_by"]}
        (self._waiting,) = client.send("orders", "waiting")
        two = {"messages": [{"body": "news"}, {"body": "more"}]}
        published = client.post("/topics/news/messages", two)
        self._published: str = published.json["messages"][0]["id"]
        world.settle()
        taken = client.post(f"{of_topic}/all/messages/receive").json["messages"]
        self._receipts = {"queues": received["receipt"], "topics": taken[0]["receipt"]}
        self._operation = client.post("/queues/failed/purge").json["operation"]
        world.settle()
        self._key = client.post("/keys").json["access_key_id"]
        self._since = format_time(world.clock.now_ms() - 1_000)

    def _name(self, name: str, call: str) -> str:
        """Values for the names in braces in a call's route."""
        method, route = call.split(" ")
        words = route.split("/")
        if method == "PUT" and words[-1] == f"{{{name}}}" and name != "account":
            return "new"
        if name == "id" and words[-1] == "reply":
            return self._asked
        if name == "id":
            ids: dict[str, str] = {
                "operations": self._operation,
                "keys": self._key,
                "queues": self._waiting["id"],
            }
            return ids.get(words[1], self._published)
        logged = words[-1] == "rewind" or "receivers" in words
        names = {
            "queue": "kept" if logged else "orders",
            "receiver": "copy",
            "schedule": "weekly",
            "account": "carol",
            "topic": "news",
            "subscription": _SUBSCRIPTION_OF.get(words[-1], "all"),
        }
        return names.get(name, "index.html")

    def _meant(self, body: Any, route: str) -> Any:
        """An example with this service's receipts, handles, tokens and times."""
        kind = route.split("/")[1]
        meant = {
            "receipts": [self._receipts.get(kind)],
            "receipt": self._receipts.get(kind),
            "delete": [self._receipts.get(kind)],
            "handle": self._handle,
            "token": self._token,
            "ids": [self._published] if route.endswith("/redeliver") else (body or {}).get("ids"),
            "deliver_at": format_time(self._world.clock.now_ms() + 60_000),
        }
        if route.endswith("/rewind"):
            numbered = isinstance((body or {}).get("to"), int)
            seconds = (self._world.clock.now_ms() - 1_000) // 1_000
            meant["to"] = seconds if numbered else self._since
        if body is None:
            return None
        given = {name: meant.get(name, value) for name, value in body.items()}
        for entry in given.get("entries", ()):
            given["entries"] = [{**entry, "receipt": self._receipts[kind]}]
        return given


def _done(reply: Reply) -> None:
    assert reply.status < 300, reply.text
