from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from tests.spark.transforms.frames import frame, items, numbers, rows_of

from cirrusmq_reports.columns import whole_entry
from cirrusmq_reports.figures import DEAD_REASONS
from cirrusmq_reports.schemas import MESSAGES, MESSAGES_WITH_DELETIONS
from cirrusmq_reports.transforms.counts_by_age import counts_by_age
from cirrusmq_reports.transforms.messages import messages
from cirrusmq_reports.transforms.resource_names import NAMES_SCHEMA

SENT, EXPIRES = 1_000_000, 9_000_000


def parcel(pk: str, *visible: int, **more: Any) -> dict[str, Any]:
    count = len(visible)
    item = {
        "pk": {"S": pk},
        "sk": {"S": "1#p"},
        "v": numbers(*visible),
        "r": numbers(*range(count)),
        "z": numbers(*[7] * count),
        "f": numbers(*[SENT + 5] * count),
        "t": {"N": str(SENT)},
        "x": {"N": str(EXPIRES)},
        "expires_at": {"N": "8000"},
    }
    return item | more


def test_each_message_of_a_parcel_is_a_row(spark: SparkSession) -> None:
    rows = messages(
        items(
            spark,
            MESSAGES,
            parcel("Q#q#3", 5, 0, w=numbers(60, 70)),
            parcel("R#q#1", 0, d={"B": "eA=="}),
            parcel("Q#q#2"),
        )
    )
    found = rows_of(rows, "key", "place", "v", "w", "r", "archived", "reason", "rewind_until_ms")
    assert found == {
        ("Q#q#3", 0, 5, 60, 0, False, None, None),
        ("Q#q#3", 1, 0, 70, 1, False, None, None),
        ("R#q#1", 0, 0, 0, 0, True, OTHER, 8_000_000),
        ("Q#q#2", None, None, 0, None, False, None, None),
    }


OTHER = len(DEAD_REASONS)


def test_the_reason_of_a_dead_letter_is_read_from_its_note(spark: SparkSession) -> None:
    """Of a note as the service writes it, whose names look like another reason."""
    texts = [*DEAD_REASONS, "max_ag", "max_age2", "", "max_age " * 20, "é"]
    notes = [
        {"source_queue": "dead_at", "receive_count": 7, "dead_at": SENT * 10**9, "reason": text}
        | {"receiver": "max_receives", "subscription": "reason"}
        for text in texts
    ]
    parcels = [
        parcel(f"Q#q#{place}", 5, d={"B": b64encode(msgspec.msgpack.encode(note)).decode()})
        for place, note in enumerate(notes)
    ]
    found = rows_of(messages(items(spark, MESSAGES, *parcels)), "key", "reason")
    assert found == {(f"Q#q#{place}", min(place, OTHER)) for place in range(len(texts))}


def test_a_delivery_state_has_no_message_and_other_items_have_no_row(spark: SparkSession) -> None:
    state = {"pk": {"S": "S#3"}, "sk": {"S": "sub"}, "state": {"S": "retrying"}}
    rows = messages(
        items(
            spark,
            MESSAGES,
            state | {"probe_sent": {"N": "17"}},
            {"pk": {"S": "L#q#0"}, "sk": {"S": "1#x"}},
            {"pk": {"S": "D#q#0"}, "sk": {"S": "D"}},
        )
    )
    assert rows_of(rows, "key", "retrying", "probe_sent_ms", "v") == {("S#sub", True, 17, None)}


def test_the_queues_settings_limit_rewindable_messages(spark: SparkSession) -> None:
    settings = {"account": "acme", "kind": "queue", "name": "n", "deleted": False, "purged_ms": 0}
    resources = frame(
        spark,
        NAMES_SCHEMA,
        [
            settings | {"id": "on", "rewind_ms": 600, "rewind_floor_ms": 0},
            settings | {"id": "floor", "rewind_ms": 600, "rewind_floor_ms": SENT + 5},
            settings | {"id": "off", "rewind_ms": 0, "rewind_floor_ms": 0},
            settings | {"id": "long", "rewind_ms": 10**9, "rewind_floor_ms": 0},
            settings | {"id": "gone", "rewind_ms": 600, "rewind_floor_ms": 0, "deleted": True},
            settings | {"id": "purged", "rewind_ms": 600, "rewind_floor_ms": 0, "purged_ms": SENT},
        ],
    )
    names = ("on", "floor", "off", "long", "gone", "purged", "unknown")
    parcels = items(spark, MESSAGES_WITH_DELETIONS, *[parcel(f"Q#{name}#0", 0) for name in names])
    assert rows_of(messages(parcels, resources), "key", "rewind_until_ms") == {
        ("Q#on#0", SENT + 600),
        ("Q#floor#0", None),
        ("Q#off#0", None),
        ("Q#long#0", EXPIRES),
        ("Q#unknown#0", None),
    }


@pytest.mark.parametrize(
    ("entry", "number"),
    [
        ('{"N":"12"}', 12),
        ('{"N": "12"}', 12),
        ('{ "N" : "12" }', 12),
        (r'{"N":"1\u0032"}', 12),
        ('{"N":12}', 12),
        ('{"N":" 12"}', 12),
        ('{"N":"12","S":"7"}', 12),
        *[(text, None) for text in ("{}", '{"S":"12"}', '{"N":"x"}', '{"N":"1.5"}', '{"N":null}')],
        ('{"N":"x","S":"12"}', None),
    ],
)
def test_a_number_of_a_list_is_read_however_it_is_written_and_is_null_if_it_is_none(
    spark: SparkSession, entry: str, number: int | None
) -> None:
    texts = spark.createDataFrame([(entry,)], "text STRING")
    found = texts.select(whole_entry(sf.col("text")).alias("number"))
    assert rows_of(found, "number") == {(number,)}


@pytest.mark.usefixtures("as_deployed")
@pytest.mark.parametrize("name", ["w", "r", "z"])
def test_a_bad_number_needed_by_no_figure_is_refused_too(spark: SparkSession, name: str) -> None:
    """A deleted message is in no sum, and generated code works out what is needed alone."""
    found = items(spark, MESSAGES, parcel("Q#q#0", 0) | {name: {"L": [{"N": "x"}]}})
    counts = counts_by_age(messages(found), SENT)
    with pytest.raises(Exception, match="BAD_RECORD"):
        counts.collect()


@pytest.mark.parametrize(
    "more",
    [
        {"r": numbers(1)},
        {"w": numbers(1)},
        {"z": numbers(1, -1)},
        {"r": numbers(-1, 1)},
        {"t": {"N": "x"}},
        {"v": {"L": [{"N": "1"}, {"S": "1"}]}},
    ],
)
def test_a_malformed_parcel_is_an_error(spark: SparkSession, more: dict[str, Any]) -> None:
    rows = messages(items(spark, MESSAGES, parcel("Q#q#0", 5, 6) | more))
    with pytest.raises(Exception, match="BAD_RECORD"):
        rows.collect()
