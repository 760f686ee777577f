from __future__ import annotations

from pyspark.sql import SparkSession
from tests.spark.transforms.frames import Values, frame, rows_of

from cirrusmq_reports.figures import FIGURES
from cirrusmq_reports.transforms.named_figures import UNKNOWN, named_figures
from cirrusmq_reports.transforms.resource_names import NAMES_SCHEMA

_KINDS = {"retrying": "BOOLEAN", "hottest_partition_share": "DOUBLE"}
AGES = "ages ARRAY<STRUCT<age: BIGINT, kept: BIGINT>>"
_FIGURES = [f"{name} {_KINDS.get(name, 'BIGINT')}" for name in FIGURES]
SCHEMA = ", ".join(["id STRING", AGES, *_FIGURES])


def named(identity: str, kind: str, name: str, **more: object) -> Values:
    settings = {"rewind_ms": 0, "rewind_floor_ms": 0, "purged_ms": 0}
    row = {"id": identity, "account": "acme", "kind": kind, "name": name, "deleted": False}
    return {**row, **settings, **more}


def test_a_resource_has_its_name_and_zeros_without_messages(spark: SparkSession) -> None:
    figures = frame(
        spark,
        SCHEMA,
        [
            {"id": "q1", "active": 5, "oldest_age_seconds": 9, "retrying": False},
            {"id": "lost", "active": 2, "retrying": True, "probe_age_seconds": 4},
        ],
    )
    names = frame(
        spark,
        NAMES_SCHEMA,
        [named("q1", "queue", "orders"), named("q2", "receiver", "orders/audit")],
    )
    shown = ("account", "kind", "name", "id", "active", "bytes", "oldest_age_seconds", "retrying")
    rows = named_figures(figures, names)
    assert rows.columns == ["account", "kind", "name", "id", "labels", "ages", *FIGURES]
    assert rows_of(rows, *shown, "probe_age_seconds") == {
        ("acme", "queue", "orders", "q1", 5, 0, 9, False, None),
        ("acme", "receiver", "orders/audit", "q2", 0, 0, None, False, None),
        (UNKNOWN, UNKNOWN, "lost", "lost", 2, 0, None, True, 4),
    }


def test_topics_and_deleted_resources_are_left_out(spark: SparkSession) -> None:
    figures = frame(spark, SCHEMA, [{"id": "gone", "active": 5, "retrying": False}])
    names = frame(
        spark,
        NAMES_SCHEMA,
        [
            named("gone", "queue", "orders", deleted=True),
            named("again", "queue", "orders"),
            named("t", "topic", "news"),
        ],
    )
    assert rows_of(named_figures(figures, names), "name", "id", "active") == {
        ("orders", "again", 0)
    }
