"""Thousands of parcels in flight in front of everything else, as a head has them under load."""

from __future__ import annotations

from typing import Any

from tests.simulation.deployment import Deployment

from cirrusmq.model.parcel import sort_key
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.consumers import take
from cirrusmq_local.judging.producers import PADDING
from cirrusmq_local.judging.scenario import ORDERS

HELD_SECONDS = 600
_NAME = "crowd"
BODY = PADDING[:500]
"""So that the parcel is about as large as one can be."""


def hold_for_good(deployment: Deployment, client: Client, count: int) -> None:
    """Have `count` parcels in flight in `orders`, which expire while they are held.

    One is sent and received; the others are copies of it under keys of their own.
    """
    path = {"queue": ORDERS.name}
    body = {"messages": [{"body": f"{_NAME} {BODY}"}]}
    route = "POST /queues/{queue}/messages"
    deployment.http(client, _NAME, ORDERS.name, {}, route, path, body)
    deployment.stage.pause(10_000)
    given = {"max": 1, "timeout": HELD_SECONDS, "wait": 1}
    taken = take(deployment, client, ORDERS, given)
    assert len(taken.answer) == 1
    deployment.history.calls.remove(taken)
    table = deployment.tables.messages
    (item,) = (
        item
        for item in deployment.engine.execute("Scan", {"TableName": table})["Items"]
        if item["pk"]["S"].startswith("Q#")
    )
    moment_ms, _, parcel_id = item["sk"]["S"].partition("#")
    for number in range(count):
        key = sort_key(int(moment_ms) - count + number, parcel_id[:-4] + f"{number:04d}")
        copied = {**item, "sk": {"S": key}, **_ending(item)}
        deployment.engine.execute("PutItem", {"TableName": table, "Item": copied})
    ended = {**item, **_ending(item)}
    deployment.engine.execute("PutItem", {"TableName": table, "Item": ended})


def _ending(item: dict[str, Any]) -> dict[str, Any]:
    """Its expiry where its lease ends."""
    (until,) = item["v"]["L"]
    return {"x": until}
