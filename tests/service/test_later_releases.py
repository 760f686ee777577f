"""Documents that a later release wrote: a change by this one keeps what it does not know.

Functions roll one after another and back, so that one release changes what another has stored.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cirrusmq.base.formats import FORMAT
from cirrusmq_local.testing import Client, World

MEMBER, ATTRIBUTE = "of_a_later_release", "later"


class Later:
    """The Directory, as a later release would have written it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def documents(self) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Each place, its item, and its document."""
        for item in self._world.items("directory"):
            if "document" in item:
                yield (
                    f"{item['pk']['S']} {item['sk']['S']}",
                    item,
                    json.loads(item["document"]["S"]),
                )

    def add(self, kind: str) -> set[str]:
        """Add a member to each object of each document whose place begins so; the places."""
        places = set()
        for place, item, document in self.documents():
            if kind in place:
                item["document"]["S"] = json.dumps(_with_members(document))
                item[ATTRIBUTE] = {"S": "kept"}
                self._put(item)
                places.add(place)
        return places

    def change(self, kind: str, **members: Any) -> None:
        """Set members of the documents whose place has this."""
        for place, item, document in self.documents():
            if kind in place:
                item["document"]["S"] = json.dumps({**document, **members})
                self._put(item)

    def missing(self, places: set[str], depths: int = 1) -> list[str]:
        """The places whose document or item has lost what was added."""
        return [
            place
            for place, item, document in self.documents()
            if place in places
            if ATTRIBUTE not in item or json.dumps(document).count(MEMBER) < depths
        ]

    def _put(self, item: dict[str, Any]) -> None:
        request = {"TableName": self._world.core.tables.directory, "Item": item}
        self._world.core.store.write("PutItem", request)
        # What environments knew of it is over by then.
        self._world.clock.pass_seconds(90)


def _with_members(value: Any, depth: int = 0) -> Any:
    """A member in each object that is reached by members, those of free names aside."""
    if not isinstance(value, dict):
        return value
    free = {"labels"}
    held = {k: v if k in free else _with_members(v, depth + 1) for k, v in value.items()}
    return {**held, MEMBER: depth}


@pytest.fixture
def later(world: World) -> Later:
    return Later(world)


@pytest.fixture
def alice(world: World) -> Client:
    client = world.client("alice", admin=True)
    client.put("/queues/dead")
    attributes = {"dead_letter": {"queue": "dead", "max_receives": 3}, "rewind_seconds": 3600}
    client.put("/queues/work", attributes)
    client.put("/queues/work/receivers/audit", {})
    client.put("/topics/news", {})
    group = {"protocol": "pull"}
    client.put("/topics/news/subscriptions/group", group)
    hook = {"protocol": "http", "endpoint": "https://example.com/hook"}
    client.put("/topics/news/subscriptions/hook", hook)
    client.put("/queues/work/grants/bob", {"permission": "send"})
    client.put("/topics/news/grants/bob", {"permission": "publish"})
    client.send("work", "one", "two")
    world.settle()
    return client


def rewind(client: Client) -> Any:
    to = client.get("/health").json["time"]
    return client.post("/topics/news/subscriptions/group/rewind", {"to": to})


GROUP, HOOK = (f"/topics/news/subscriptions/{name}" for name in ("group", "hook"))
CHANGES: dict[str, tuple[str, Callable[[Client], Any], int]] = {
    "a queue": ("queue#work", lambda c: c.patch("/queues/work", {"delay_seconds": 5}), 3),
    "a purged queue": ("queue#work", lambda c: c.post("/queues/work/purge"), 3),
    "a topic": (
        "A#alice topic#news", lambda c: c.patch("/topics/news", {"max_message_bytes": 1024}), 2,
    ),
    "a group": ("subscription#group", lambda c: c.patch(GROUP, {"dead_letter_queue": "dead"}), 1),
    "a rewound group": ("subscription#group", rewind, 1),
    "a paused URL": ("subscription#hook", lambda c: c.post(f"{HOOK}/pause"), 1),
    "a URL": ("subscription#hook", lambda c: c.patch(HOOK, {"rate": 5}), 1),
}  # fmt: skip
"""The place of documents, a change that writes them over, and the depth of their structs."""


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_keeps_unknown_members(
    name: str, world: World, alice: Client, later: Later
) -> None:
    kind, change, depths = CHANGES[name]
    places = later.add(kind)
    assert places
    answer = change(alice)
    assert answer.status < 300, answer.text
    world.settle()
    there = {place for place, _, _ in later.documents()}
    assert places & there
    assert later.missing(places, depths) == []


USES: list[tuple[str, str, str, Any]] = [
    ("queue#work", "GET", "/queues/work", None),
    ("queue#work", "PATCH", "/queues/work", {"delay_seconds": 5}),
    ("queue#work", "POST", "/queues/work/messages", {"messages": [{"body": "x"}]}),
    ("queue#work", "POST", "/queues/work/messages/receive", {}),
    ("topic#news", "POST", "/topics/news/messages", {"messages": [{"body": "x"}]}),
    ("subscription#group", "GET", "/topics/news/subscriptions/group", None),
]


@pytest.mark.parametrize(("kind", "method", "path", "body"), USES)
def test_a_document_of_a_later_format_is_refused_and_rings_no_alarm(
    kind: str, method: str, path: str, body: Any, alice: Client, later: Later,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    later.change(kind, format=FORMAT + 1)
    before = {place: item for place, item, _ in later.documents() if kind in place}
    with caplog.at_level(logging.INFO):
        answer = alice.call(method, path, body)
    assert (answer.status, answer.code) == (503, "Unavailable")
    assert "later release" in answer.json["detail"]
    assert {r.levelname for r in caplog.records if "later release" in r.message} == {"WARNING"}
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]
    assert {place: item for place, item, _ in later.documents() if kind in place} == before


def test_a_format_in_a_text_is_no_format(alice: Client) -> None:
    told = {"description": f'about "format": {FORMAT + 1}'}
    assert alice.patch("/queues/work", told).status == 200
    assert alice.get("/queues/work").status == 200


def test_a_key_with_unknown_rights_is_refused(
    world: World, alice: Client, later: Later, caplog: pytest.LogCaptureFixture
) -> None:
    """It may do less than this release would let it."""
    given = {"account": "alice", "scope": {"manage": {"queues": ["work"]}}}
    made = alice.post("/keys", given)
    assert made.status == 201, made.text
    key = f"{made.json['access_key_id']}:{made.json['secret']}"
    scope = next(
        d["scope"]
        for place, _, d in later.documents()
        if place.startswith("K#") and made.json["access_key_id"] in place
    )
    later.change(made.json["access_key_id"], scope={**scope, "only_on_mondays": True})
    with caplog.at_level(logging.INFO):
        answer = Client(world, f"Bearer {key}").get("/queues/work")
    assert (answer.status, answer.code) == (503, "Unavailable")
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]
