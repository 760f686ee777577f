from __future__ import annotations

from pyspark.sql import SparkSession
from tests.spark.transforms.frames import Values, frame

from cirrusmq_reports.transforms.counts_by_age import counts_by_age

SCHEMA = (
    "key STRING, archived BOOLEAN, reason INT, sent_ms BIGINT, expires_ms BIGINT, "
    "rewind_until_ms BIGINT, retrying BOOLEAN, probe_sent_ms BIGINT, v BIGINT, w BIGINT, "
    "r BIGINT, z BIGINT"
)
NOW = 10_000_000
STATES = ("active", "delayed", "kept", "dead", "expired", "rewindable")


def message(v: int, **more: object) -> Values:
    row = {"key": "Q#q#0", "archived": False, "sent_ms": NOW - 100_000}
    times = {"expires_ms": NOW + 1, "w": 0, "r": 0, "z": 300, "v": v}
    return {**row, **times, **more}


def sums(spark: SparkSession, *rows: Values) -> dict[str, int]:
    counted = counts_by_age(frame(spark, SCHEMA, rows), NOW).collect()
    return {name: sum(row[name] for row in counted) for name in STATES}


def test_each_state_by_its_times(spark: SparkSession) -> None:
    assert sums(
        spark,
        message(NOW),  # active
        message(NOW - 5, w=5, r=1),  # active
        message(NOW - 5, w=6, r=1),  # waits for its retry
        message(NOW + 1, r=2),  # held
        message(NOW + 1),  # delayed
        message(NOW, expires_ms=NOW),  # expired
        message(NOW, reason=0),
        message(NOW, reason=6, expires_ms=NOW),
        message(-1),
        message(-3),
    ) == {"active": 3, "delayed": 1, "kept": 6, "dead": 1, "expired": 2, "rewindable": 0}


def test_a_deleted_message_is_rewindable_until_its_time(spark: SparkSession) -> None:
    assert sums(
        spark,
        message(0, rewind_until_ms=NOW + 1),
        message(0, rewind_until_ms=NOW + 1, archived=True),
        message(0, rewind_until_ms=NOW),
        message(0),
        message(-1, rewind_until_ms=NOW + 1, archived=True),
        message(5, rewind_until_ms=NOW + 1, archived=True),
    ) == dict.fromkeys(STATES, 0) | {"rewindable": 2}
