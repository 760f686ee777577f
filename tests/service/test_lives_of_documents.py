"""DocumentSeconds: environments keep documents for up to 5 s, and a change waits as long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.security.contract import CALLS, names_for, set_stage

from cirrusmq.base import limits
from cirrusmq.model.queue import Queue
from cirrusmq.runtime.cache import Cache
from cirrusmq.wiring import bootstrap
from cirrusmq_local.testing import Client, World

LONGEST_SECONDS = 5
MAX_SECONDS = 20
"""The API ends a call after 30 s, a function after 29."""


def keeping(world: World, seconds: int) -> World:
    """The world, its documents kept so long by the environment that answers."""
    cache = Cache(world.clock, seconds * 1_000, shared=False)
    world.core = msgspec.structs.replace(world.core, cache=cache)
    return world


@pytest.mark.parametrize(("given", "seconds"), [("", 1), ("1", 1), ("5", 5)])
def test_an_environment_keeps_documents_for_the_seconds_of_its_deployment(
    monkeypatch: pytest.MonkeyPatch, given: str, seconds: int
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("SHARED_CACHES", "false")
    monkeypatch.setenv("DOCUMENT_SECONDS", given)
    assert bootstrap.wire().cache.lag_ms == 1_000 * seconds


def test_a_change_holds_everywhere_from_its_answer_on() -> None:
    """There are two environments, which keep documents for 5 s."""
    world = keeping(World(), LONGEST_SECONDS)
    alice, own = world.client("alice", admin=True), world.core
    other = keeping(world, LONGEST_SECONDS).core
    world.core = own

    def elsewhere(call: Callable[[], Any]) -> Any:
        world.core = other
        try:
            return call()
        finally:
            world.core = own

    alice.put("/queues/orders")
    world.clock.pass_seconds(10)
    elsewhere(lambda: alice.send("orders", "a"))
    begun_ms = world.clock.now_ms()
    assert alice.patch("/queues/orders", {"delay_seconds": 60}).status == 200
    assert world.clock.now_ms() - begun_ms == 1_000 * LONGEST_SECONDS
    elsewhere(lambda: alice.send("orders", "b"))
    received = elsewhere(lambda: alice.receive("orders"))
    assert [each["body"] for each in received] == ["a"]

    made = alice.post("/keys").json
    caller = Client(world, f"Bearer {made['access_key_id']}:{made['secret']}")
    assert elsewhere(lambda: caller.get("/queues")).status == 200
    world.clock.pass_seconds(4)
    assert alice.delete(f"/keys/{made['access_key_id']}").status == 204
    assert elsewhere(lambda: caller.get("/queues")).status == 401
    world.engine.close()


def test_documents_are_read_once_in_so_many_seconds() -> None:
    world = keeping(World(), LONGEST_SECONDS)
    alice = world.client("alice")
    alice.put("/queues/orders")
    alice.receive("orders")
    read = []
    for _ in range(12):
        world.clock.pass_seconds(1)
        read.append(world.units(lambda: alice.receive("orders"))[1])
    base = min(read)
    assert [each > base for each in read].count(True) in (2, 3), read


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_no_call_waits_longer_than_it_may(call: Any) -> None:
    stage = set_stage()
    world = keeping(stage.world, LONGEST_SECONDS)
    names = names_for(stage, call)
    begun_ms = world.clock.now_ms()
    stage.make(stage.owner, call, names)
    assert world.clock.now_ms() - begun_ms <= 1_000 * MAX_SECONDS
    world.engine.close()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/queues/work/receivers/late", {"start": "earliest"}),
        ("/queues/work/receivers/late", {"start": "latest"}),
        ("/topics/news/subscriptions/group", {"protocol": "pull"}),
        ("/topics/news/subscriptions/back", {"protocol": "pull", "start": "earliest"}),
        ("/topics/news/subscriptions/feed", {"protocol": "queue", "endpoint": "work"}),
        ("/queues/new", {"dead_letter": {"queue": "work", "max_receives": 3}}),
    ],
)
def test_nothing_new_takes_longer_than_a_call_may(path: str, body: dict[str, Any]) -> None:
    world = keeping(World(), LONGEST_SECONDS)
    alice = world.client("alice", admin=True)
    alice.put("/queues/work")
    alice.send("work", "a")
    alice.put("/topics/news")
    begun_ms = world.clock.now_ms()
    reply = alice.put(path, body)
    assert reply.status == 201, reply.text
    assert world.clock.now_ms() - begun_ms <= 1_000 * MAX_SECONDS
    world.engine.close()


def test_limits_reckoned_with_other_caches_hold_for_the_longest_life() -> None:
    assert limits.DOCUMENT_SECONDS == (1, LONGEST_SECONDS)
    assert limits.DOCUMENTS_MS == 1_000 * LONGEST_SECONDS
    calls_ms = 2 * limits.CALL_MS + 2 * limits.CLOCK_SKEW_MS
    assert calls_ms + 1_000 * LONGEST_SECONDS == limits.LOG_UNSURE_MS


def test_a_repeated_send_is_found_by_another_environments_earlier_delay() -> None:
    """For as long as one that read the queue just before its change may store with it."""
    world = World()
    alice = world.client("alice")
    alice.put("/queues/orders")
    alice.patch("/queues/orders", {"delay_seconds": 9})
    (document,) = (
        msgspec.json.decode(item["document"]["S"], type=Queue)
        for item in world.items("directory")
        if item["sk"]["S"] == "queue#orders"
    )
    ((until_ms, before),) = document.earlier_delays
    assert before == 0
    assert until_ms - document.modified_ms >= limits.CALL_MS + 1_000 * LONGEST_SECONDS
