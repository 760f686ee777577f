"""The change stream: its records, its readers, and items that time removes."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cirrusmq_local.engine import Engine, EngineError, TableSpec

DAY = 24 * 60 * 60


def names(records: list[Any]) -> list[str]:
    return [record.event_name for record in records]


def test_every_change_is_a_record_with_both_images(stored: Any, clock: Any) -> None:
    stored.put({"pk": "p", "sk": "1", "n": 1})
    clock.advance(seconds=1)
    stored.update("SET n = :two", values={"two": 2})
    stored.delete()
    records = stored.engine.read_stream("Messages", 0, 10)
    assert names(records) == ["INSERT", "MODIFY", "REMOVE"]
    assert [record.sequence for record in records] == [1, 2, 3]
    key = {"pk": {"S": "p"}, "sk": {"S": "1"}}
    assert all(record.keys == key for record in records)
    assert [(r.old_image or {}).get("n") for r in records] == [None, {"N": "1"}, {"N": "2"}]
    assert [(r.new_image or {}).get("n") for r in records] == [{"N": "1"}, {"N": "2"}, None]
    assert records[1].approximate_creation_ms == records[0].approximate_creation_ms + 1000
    assert records[2].user_identity is None


def test_a_write_without_a_change_is_no_record(stored: Any) -> None:
    stored.put({"pk": "p", "sk": "1", "n": 1, "tags": {"a", "b"}})
    stored.put({"tags": {"b", "a"}, "n": 1.0, "sk": "1", "pk": "p"})
    stored.update("SET n = :one", values={"one": 1})
    stored.delete("2")
    assert stored.engine.stream_position("Messages") == 1


def test_a_refused_write_is_no_record(stored: Any) -> None:
    with pytest.raises(EngineError, match="ConditionalCheckFailed"):
        stored.put({"pk": "p", "sk": "1"}, ConditionExpression="attribute_exists(pk)")
    assert stored.engine.stream_position("Messages") == 0


def test_a_transaction_and_a_batch_record_each_of_their_writes(stored: Any) -> None:
    stored.transact(*[stored.a_put({"pk": "p", "sk": sk}) for sk in "12"])
    puts = [{"PutRequest": {"Item": {"pk": {"S": "p"}, "sk": {"S": sk}}}} for sk in "34"]
    stored.engine.execute("BatchWriteItem", {"RequestItems": {"Messages": puts}})
    records = stored.engine.read_stream("Messages", 0, 10)
    assert [record.keys["sk"]["S"] for record in records] == ["1", "2", "3", "4"]


def test_a_record_for_a_function_is_json_as_lambda_gets_it(stored: Any, clock: Any) -> None:
    stored.put({"pk": "p", "sk": "1", "raw_": b"\x00\xff", "more": [{b"\x01"}]})
    (record,) = stored.engine.read_stream("Messages", 0, 10)
    shown = record.as_lambda_record()
    assert json.loads(json.dumps(shown)) == shown
    image = {
        "pk": {"S": "p"},
        "sk": {"S": "1"},
        "raw_": {"B": "AP8="},
        "more": {"L": [{"BS": ["AQ=="]}]},
    }
    assert shown["eventName"] == "INSERT"
    assert shown["eventSource"] == "aws:dynamodb"
    assert shown["dynamodb"] == {
        "ApproximateCreationDateTime": clock() // 1000,
        "Keys": {"pk": {"S": "p"}, "sk": {"S": "1"}},
        "NewImage": image,
        "SequenceNumber": "1",
        # Keys: 2 + 1 + 2 + 1. Item: the same, "raw_" + 2, "more" + a list of one set of one byte.
        "SizeBytes": 6 + 6 + 6 + 4 + 3 + 1 + 1,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    }
    assert "userIdentity" not in shown


def test_event_ids_are_distinct_and_the_same_at_every_reading(stored: Any) -> None:
    for sk in "123":
        stored.put({"pk": "p", "sk": sk})

    def event_ids() -> list[str]:
        records = stored.engine.read_stream("Messages", 0, 10)
        return [record.as_lambda_record()["eventID"] for record in records]

    assert len(set(event_ids())) == 3
    assert event_ids() == event_ids()


def test_events_and_tables_of_another_folder_have_other_ids(tmp_path: Path, clock: Any) -> None:
    def ids(folder: str) -> tuple[str, str]:
        (tmp_path / folder).mkdir(exist_ok=True)
        specs = [TableSpec("Messages", stream=True)]
        engine = Engine(tmp_path / folder / "engine.db", specs, now_ms=clock)
        item = {"pk": {"S": "p"}, "sk": {"S": "1"}}
        engine.execute("PutItem", {"TableName": "Messages", "Item": item})
        (record,) = engine.read_stream("Messages", 0, 1)
        table = engine.execute("DescribeTable", {"TableName": "Messages"})["Table"]
        engine.close()
        return record.as_lambda_record()["eventID"], table["TableId"]

    first, second = ids("a"), ids("b")
    assert ids("a") == first
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_a_folder_of_an_earlier_release_keeps_its_events_ids(tmp_path: Path, clock: Any) -> None:
    path, specs = tmp_path / "engine.db", [TableSpec("Messages", stream=True)]
    Engine(path, specs, now_ms=clock).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE folder")
        connection.commit()

    engine = Engine(path, specs, now_ms=clock)
    item = {"pk": {"S": "p"}, "sk": {"S": "1"}}
    engine.execute("PutItem", {"TableName": "Messages", "Item": item})
    (record,) = engine.read_stream("Messages", 0, 1)
    engine.close()

    known = hashlib.sha256(f"{record.spec.arn}/1".encode()).hexdigest()[:32]
    assert record.as_lambda_record()["eventID"] == known


def test_a_reader_gets_records_behind_its_position_in_portions(stored: Any) -> None:
    for number in range(5):
        stored.put({"pk": "p", "sk": str(number)})
    engine = stored.engine
    assert [r.sequence for r in engine.read_stream("Messages", 0, 2)] == [1, 2]
    assert [r.sequence for r in engine.read_stream("Messages", 2, 2)] == [3, 4]
    assert [r.sequence for r in engine.read_stream("Messages", 5, 2)] == []


def test_a_trimmed_stream_never_uses_a_sequence_again(tmp_path: Path, clock: Any) -> None:
    specs = [TableSpec("Messages", stream=True)]
    request = {"TableName": "Messages", "Item": {"pk": {"S": "p"}, "sk": {"S": "1"}}}
    engine = Engine(tmp_path / "engine.db", specs, now_ms=clock)
    engine.execute("PutItem", request)
    clock.advance(seconds=2 * DAY)
    engine.trim_stream("Messages", 1)
    engine.close()
    engine = Engine(tmp_path / "engine.db", specs, now_ms=clock)
    assert engine.stream_position("Messages") == 1
    assert engine.read_stream("Messages", 0, 10) == []
    engine.execute("DeleteItem", {"TableName": "Messages", "Key": request["Item"]})
    assert [record.sequence for record in engine.read_stream("Messages", 0, 10)] == [2]
    engine.close()


def test_untrimmed_records_outlast_any_time(stored: Any, clock: Any) -> None:
    stored.put({"pk": "p", "sk": "1"})
    stored.put({"pk": "p", "sk": "2"})
    clock.advance(seconds=100 * DAY)
    stored.engine.trim_stream("Messages", 1)
    stored.engine.remove_expired()
    assert [record.sequence for record in stored.engine.read_stream("Messages", 0, 10)] == [2]


def test_a_table_without_a_stream_cannot_be_read_as_one(database: Any) -> None:
    with pytest.raises(EngineError, match="a stream of Directory"):
        database.engine.read_stream("Directory", 0, 10)


def test_positions_of_readers_are_kept(tmp_path: Path, clock: Any) -> None:
    specs = [TableSpec("Messages", stream=True)]
    engine = Engine(tmp_path / "engine.db", specs, now_ms=clock)
    assert engine.load_position("meter") == 0
    engine.save_position("meter", 7)
    engine.save_position("fan_out", 9)
    engine.save_position("meter", 8)
    engine.close()
    engine = Engine(tmp_path / "engine.db", specs, now_ms=clock)
    assert (engine.load_position("meter"), engine.load_position("fan_out")) == (8, 9)
    engine.close()


def test_a_waiting_reader_is_woken_by_a_write(stored: Any) -> None:
    woken: list[bool] = []
    reader = threading.Thread(
        target=lambda: woken.append(stored.engine.wait_for_stream("Messages", 0, 30))
    )
    reader.start()
    stored.put({"pk": "p", "sk": "1"})
    reader.join(timeout=30)
    assert woken == [True]
    assert not stored.engine.wait_for_stream("Messages", 1, 0)


def test_expired_items_are_removed_free_and_by_the_service(stored: Any, clock: Any) -> None:
    now_seconds = clock() // 1000
    for sk, expires_at in (("past", now_seconds - 1), ("now", now_seconds), ("never", "soon")):
        stored.put({"pk": "p", "sk": sk, "expires_at": expires_at})
    stored.engine.reset_capacity()
    assert stored.engine.remove_expired() == 1
    assert stored.sort_keys() == ["never", "now"]
    assert stored.engine.capacity()["write_units"] == 0
    record = stored.engine.read_stream("Messages", 3, 10)[0]
    assert record.event_name == "REMOVE"
    assert record.old_image["expires_at"] == {"N": str(now_seconds - 1)}
    assert record.as_lambda_record()["userIdentity"] == {
        "type": "Service",
        "principalId": "dynamodb.amazonaws.com",
    }


def test_an_item_expires_by_its_newest_value(stored: Any, clock: Any) -> None:
    now_seconds = clock() // 1000
    stored.put({"pk": "p", "sk": "1", "expires_at": now_seconds + 10})
    stored.put({"pk": "p", "sk": "2", "expires_at": now_seconds + 10})
    stored.update("SET expires_at = :v", values={"v": now_seconds + 30})
    clock.advance(seconds=20)
    assert stored.engine.remove_expired() == 1
    assert stored.sort_keys() == ["1"]
    clock.advance(seconds=20)
    assert stored.engine.remove_expired() == 1


def test_expired_items_are_removed_up_to_the_limit_the_oldest_first(
    stored: Any, clock: Any
) -> None:
    for number in range(5):
        expires_at = clock() // 1000 - number - 1
        stored.put({"pk": "p", "sk": str(number), "expires_at": expires_at})
    assert stored.engine.remove_expired(limit=3) == 3
    assert stored.sort_keys() == ["0", "1"]


def test_a_time_years_back_is_no_expiry(stored: Any, clock: Any) -> None:
    stored.put({"pk": "p", "sk": "1", "expires_at": 17})
    stored.put({"pk": "p", "sk": "2", "expires_at": 10**30})
    assert stored.engine.remove_expired() == 0
