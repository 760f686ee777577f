"""Peeking shows the messages of one state, and changes none."""

from __future__ import annotations

from typing import Any

import pytest

from cirrusmq_local.testing import Client, World

STATES = ("active", "inactive", "delayed")


def peeked(client: Client, path: str, state: str, **more: Any) -> list[str]:
    """The bodies of all messages in a state, page by page."""
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        body = {"max": 3, "state": state, **more, **cursor}
        page = client.post(f"{path}/messages/peek", body).json
        found += [message["body"] for message in page["messages"]]
        if "cursor" not in page:
            return sorted(found)
        cursor = {"cursor": page["cursor"]}


def send(client: Client, queue: str, *messages: dict[str, Any]) -> None:
    answer = client.post(f"/queues/{queue}/messages", {"messages": list(messages)})
    assert answer.status == 201, answer.text


@pytest.mark.parametrize("attributes", [{}, {"partitions": 1}, {"fair": True}])
def test_each_message_is_in_one_state(world: World, attributes: dict[str, Any]) -> None:
    client = world.client("shop")
    client.put("/queues/orders", attributes)
    group = {"group": "g"} if "fair" in attributes else {}
    send(client, "orders", *({"body": f"held {n}", **group} for n in range(5)))
    received = client.post("/queues/orders/messages/receive", {"max": 16, "wait_seconds": 5}).json
    held = len(received["messages"])
    while held < 5:
        more = client.post("/queues/orders/messages/receive", {"max": 16, "wait_seconds": 5}).json
        held += len(more["messages"])
    send(client, "orders", *({"body": f"active {n}", **group} for n in range(4)))
    later = [{"body": f"delayed {n}", "delay_seconds": 86_400 * n + 600, **group} for n in range(4)]
    send(client, "orders", *later)

    shown = {state: peeked(client, "/queues/orders", state) for state in STATES}

    assert shown == {
        "active": [f"active {n}" for n in range(4)],
        "inactive": [f"held {n}" for n in range(5)],
        "delayed": [f"delayed {n}" for n in range(4)],
    }
    counts = client.get("/queues/orders").json["counts"]
    assert {state: counts[state] for state in STATES} == {
        state: len(bodies) for state, bodies in shown.items()
    }


def test_a_retry_that_waits_is_inactive_and_a_lease_that_ends_makes_it_active(world: World) -> None:
    client = world.client("shop")
    client.put(
        "/queues/orders",
        {
            "retry": {"policy": "custom", "waits": [3_600]},
            "dead_letter": {"queue": dead(client), "max_receives": 9},
        },
    )
    send(client, "orders", {"body": "one"})
    (held,) = client.post("/queues/orders/messages/receive", {"wait_seconds": 5}).json["messages"]
    assert peeked(client, "/queues/orders", "inactive") == ["one"]
    client.post("/queues/orders/messages/give-back", {"receipts": [held["receipt"]]})
    assert peeked(client, "/queues/orders", "inactive") == ["one"]
    assert peeked(client, "/queues/orders", "active") == []
    world.clock.pass_seconds(3_601)
    assert peeked(client, "/queues/orders", "inactive") == []
    assert peeked(client, "/queues/orders", "active") == ["one"]


def dead(client: Client) -> str:
    client.put("/queues/dead")
    return "dead"


def test_what_is_over_is_in_no_state(world: World) -> None:
    client = world.client("shop")
    client.put("/queues/orders", {"message_retention_seconds": 60})
    send(client, "orders", {"body": "done"}, {"body": "old"})
    (held,) = client.post("/queues/orders/messages/receive", {"wait_seconds": 5}).json["messages"]
    client.post("/queues/orders/messages/delete", {"receipts": [held["receipt"]]})
    world.clock.pass_seconds(61)
    assert [peeked(client, "/queues/orders", state) for state in STATES] == [[], [], []]
