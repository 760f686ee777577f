"""Ordered queues whose names end in `.fifo`, as those of SQS do."""

from __future__ import annotations

from typing import Any

import pytest

from cirrusmq_local.testing import Client, World

ORDERED = {"ordered": True}


def test_an_ordered_queue_may_end_in_fifo(alice: Client) -> None:
    made = alice.put("/queues/orders.fifo", ORDERED)
    assert (made.status, made.json["name"]) == (201, "orders.fifo")
    assert alice.put("/queues/orders.fifo", ORDERED).status == 200
    alice.post("/queues/orders.fifo/messages", {"messages": [{"body": "x", "group": "g"}]})
    (message,) = alice.receive("orders.fifo")
    assert message["body"] == "x"
    assert [each["name"] for each in alice.get("/queues").json["queues"]] == ["orders.fifo"]
    assert alice.delete("/queues/orders.fifo").status == 204
    assert alice.get("/queues").json["queues"] == []


@pytest.mark.parametrize("name", ["orders.fifo", "ORDERS.fifo"])
def test_others_may_not(alice: Client, name: str) -> None:
    reply = alice.put(f"/queues/{name}", {})
    assert (reply.status, reply.json["parameter"]) == (400, "queue")
    assert "must not end in .fifo" in reply.json["detail"]
    for wrong in (".fifo", "a.b", "a.fifo.fifo", "a" * 76 + ".fifo"):
        assert alice.put(f"/queues/{wrong}", ORDERED).status == 400, wrong
    assert alice.put("/queues/" + "a" * 75 + ".fifo", ORDERED).status == 201


@pytest.mark.parametrize("names", [("orders.fifo", "orders_fifo"), ("orders_fifo", "orders.fifo")])
def test_only_one_of_sqs_two_names_exists(alice: Client, names: tuple[str, str]) -> None:
    first, second = names
    assert alice.put(f"/queues/{first}", ORDERED).status == 201
    refused = alice.put(f"/queues/{second}", ORDERED)
    assert (refused.status, refused.code) == (409, "AlreadyExists")
    assert alice.delete(f"/queues/{first}").status == 204
    assert alice.put(f"/queues/{second}", ORDERED).status == 201


def test_an_unordered_queue_of_the_old_name_is_another_one(alice: Client) -> None:
    assert alice.put("/queues/orders_fifo", {}).status == 201
    assert alice.put("/queues/orders.fifo", ORDERED).status == 201
    assert len(alice.get("/queues").json["queues"]) == 2


def test_of_two_creations_at_once_one_is_refused(
    world: World, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    transact = world.core.store.transact
    done: list[int] = []

    def interrupted(writes: Any) -> Any:
        if not done:
            done.append(1)
            done.append(alice.put("/queues/orders_fifo", ORDERED).status)
        return transact(writes)

    monkeypatch.setattr(world.core.store, "transact", interrupted)
    refused = alice.put("/queues/orders.fifo", ORDERED)
    assert done == [1, 201]
    assert (refused.status, refused.code) == (409, "AlreadyExists")


def test_it_is_a_dead_letter_queue_an_endpoint_and_a_redrives_target(
    world: World, alice: Client
) -> None:
    assert alice.put("/queues/dead.fifo", ORDERED).status == 201
    given = {"dead_letter": {"queue": "dead.fifo", "max_receives": 1}}
    more = {**ORDERED, **given, "visibility_timeout_seconds": 1}
    assert alice.put("/queues/orders.fifo", more).status == 201
    assert alice.put("/topics/news.fifo", {}).status == 201
    endpoint = {"protocol": "queue", "endpoint": "orders.fifo"}
    assert alice.put("/topics/news.fifo/subscriptions/copy", endpoint).status == 201
    message = {"body": "x", "group": "g"}
    assert alice.post("/topics/news.fifo/messages", {"messages": [message]}).status == 201
    world.settle()
    assert len(alice.receive("orders.fifo")) == 1
    world.clock.pass_seconds(2)
    assert alice.receive("orders.fifo") == []
    assert len(alice.receive("dead.fifo", visibility_timeout_seconds=1)) == 1
    world.clock.pass_seconds(2)
    assert alice.post("/queues/dead.fifo/redrive", {}).status == 202
    world.settle()
    assert [each["body"] for each in alice.receive("orders.fifo")] == ["x"]
    assert alice.delete("/queues/orders.fifo").status == 409


def test_a_scope_names_it(world: World, alice: Client) -> None:
    assert alice.put("/queues/orders.fifo", ORDERED).status == 201
    given = {"account": "alice", "scope": {"send": {"queues": ["orders.fifo"]}}}
    made = alice.post("/keys", given).json
    narrow = Client(world, f"Bearer {made['access_key_id']}:{made['secret']}")
    message = {"messages": [{"body": "x", "group": "g"}]}
    assert narrow.post("/queues/orders.fifo/messages", message).status == 201
    assert narrow.post("/queues/orders_fifo/messages", message).status == 403
