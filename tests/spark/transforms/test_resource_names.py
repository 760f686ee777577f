from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession
from tests.spark.transforms.frames import items, rows_of

from cirrusmq_reports.schemas import DIRECTORY
from cirrusmq_reports.transforms.resource_names import resource_names


def resource(identity: str, kind: str, name: str, account: str = "acme") -> dict[str, Any]:
    document = {"account": account, "kind": kind, "name": name}
    return {"pk": {"S": "I#1"}, "sk": {"S": identity}, "document": {"S": json.dumps(document)}}


def queue(name: str, rewind_seconds: int, account: str = "acme", **more: int) -> dict[str, Any]:
    attributes = {"rewind_seconds": rewind_seconds}
    document = {"id": "x", "account": account, "name": name, "attributes": attributes, **more}
    place = {"pk": {"S": f"A#{account}"}, "sk": {"S": f"queue#{name.lower()}"}}
    return place | {"document": {"S": json.dumps(document)}}


def test_a_queue_and_its_receivers_have_its_settings(spark: SparkSession) -> None:
    names = resource_names(
        items(
            spark,
            DIRECTORY,
            resource("q", "queue", "Orders"),
            resource("r", "receiver", "orders/audit"),
            resource("s", "subscription", "orders/mail"),
            resource("o", "queue", "orders", "other"),
            resource("q", "queue", "Orders"),
            queue("Orders", 60, purged_ms=7, rewind_floor_ms=5),
            {"pk": {"S": "A#acme"}, "sk": {"S": "account"}},
        )
    )
    columns = ("id", "account", "deleted", "rewind_ms", "rewind_floor_ms", "purged_ms")
    assert rows_of(names, *columns) == {
        ("q", "acme", False, 60_000, 5, 7),
        ("r", "acme", False, 60_000, 5, 7),
        ("s", "acme", False, 0, 0, 0),
        ("o", "other", False, 0, 0, 0),
    }


def test_a_resource_with_an_expiry_is_deleted(spark: SparkSession) -> None:
    gone = resource("old", "queue", "orders") | {"expires_at": {"N": "17"}}
    names = resource_names(items(spark, DIRECTORY, gone, resource("new", "queue", "orders")))
    assert rows_of(names, "id", "deleted") == {("old", True), ("new", False)}
