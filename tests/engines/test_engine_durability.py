"""Data survive a new start, a killed process, and many threads at once."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cirrusmq_local.engine import Engine, EngineError, TableSpec
from cirrusmq_local.engine.errors import OtherFormError

SPECS = [TableSpec("Messages", stream=True)]
KEY = {"pk": {"S": "p"}, "sk": {"S": "1"}}
THREADS = 8

# Writes until it is killed, and says each number once the engine has answered it.
WRITER = """
import sys, threading
from pathlib import Path
from cirrusmq_local.engine import Engine, TableSpec

engine = Engine(Path(sys.argv[1]), [TableSpec("Messages", stream=True)], now_ms=lambda: 0)
say = threading.Lock()

def write(thread):
    number = 0
    while True:
        key = {"pk": {"S": str(thread)}, "sk": {"S": f"{number:09d}"}}
        if number % 2:
            engine.execute("PutItem", {"TableName": "Messages", "Item": key})
        else:
            pair = {"pk": {"S": str(thread)}, "sk": {"S": f"{number:09d}+"}}
            puts = [{"Put": {"TableName": "Messages", "Item": item}} for item in (key, pair)]
            engine.execute("TransactWriteItems", {"TransactItems": puts})
        with say:
            print(thread, number, flush=True)
        number += 1

for thread in range(4):
    threading.Thread(target=write, args=(thread,)).start()
"""


def test_everything_is_there_after_a_new_start(tmp_path: Path, clock: Any) -> None:
    path = tmp_path / "engine.db"
    engine = Engine(path, SPECS, now_ms=clock)
    item = {**KEY, "n": {"N": "1"}, "raw": {"B": b"\xff"}, "tags": {"SS": ["a", "b"]}}
    put = {"Put": {"TableName": "Messages", "Item": item}}
    token = {"TransactItems": [put], "ClientRequestToken": "token"}
    engine.execute("TransactWriteItems", token)
    engine.execute("DeleteItem", {"TableName": "Messages", "Key": KEY})
    engine.execute("PutItem", {"TableName": "Messages", "Item": item})
    engine.close()

    engine = Engine(path, SPECS, now_ms=clock)
    assert engine.execute("GetItem", {"TableName": "Messages", "Key": KEY})["Item"] == item
    assert engine.stream_position("Messages") == 3
    assert [record.sequence for record in engine.read_stream("Messages", 0, 10)] == [1, 2, 3]
    engine.execute("DeleteItem", {"TableName": "Messages", "Key": KEY})
    engine.execute("TransactWriteItems", token)
    assert engine.execute("GetItem", {"TableName": "Messages", "Key": KEY}).get("Item") is None
    engine.close()


def test_a_table_cannot_come_back_with_other_keys(tmp_path: Path, clock: Any) -> None:
    path = tmp_path / "engine.db"
    Engine(path, SPECS, now_ms=clock).close()
    with pytest.raises(OtherFormError, match="Messages exists with"):
        Engine(path, [TableSpec("Messages", sort_key="other")], now_ms=clock)
    engine = Engine(path, [*SPECS, TableSpec("More")], now_ms=clock)
    assert engine.execute("Scan", {"TableName": "More"})["Count"] == 0
    engine.close()


def test_a_killed_process_loses_no_answered_write(tmp_path: Path, clock: Any) -> None:
    path = tmp_path / "engine.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    with writer, writer.stdout:
        lines = [writer.stdout.readline() for _ in range(500)]
        writer.send_signal(signal.SIGKILL)
        lines += writer.stdout.readlines()
    assert writer.returncode == -signal.SIGKILL
    # The very last line may have been cut off.
    answered = [tuple(map(int, line.split())) for line in lines if line.endswith("\n")]

    engine = Engine(path, SPECS, now_ms=clock)
    found = {(int(item["pk"]["S"]), item["sk"]["S"]) for item in _scan(engine)}
    for thread, number in answered:
        assert (thread, f"{number:09d}") in found
    plain = {(thread, sk) for thread, sk in found if not sk.endswith("+")}
    pairs = {(thread, sk.removesuffix("+")) for thread, sk in found if sk.endswith("+")}
    assert pairs == {(thread, sk) for thread, sk in plain if int(sk) % 2 == 0}
    records = engine.read_stream("Messages", 0, len(found) + 1)
    assert {(int(r.keys["pk"]["S"]), r.keys["sk"]["S"]) for r in records} == found
    engine.close()


def test_conditional_increments_of_many_threads_are_exact(engine: Engine) -> None:
    engine.execute("PutItem", {"TableName": "Messages", "Item": {**KEY, "n": {"N": "0"}}})

    def increment(_: int) -> int:
        done = 0
        while done < 25:
            found = engine.execute(
                "GetItem", {"TableName": "Messages", "Key": KEY, "ConsistentRead": True}
            )
            try:
                engine.execute(
                    "UpdateItem",
                    {
                        "TableName": "Messages",
                        "Key": KEY,
                        "UpdateExpression": "SET n = n + :one",
                        "ConditionExpression": "n = :seen",
                        "ExpressionAttributeValues": {
                            ":one": {"N": "1"},
                            ":seen": found["Item"]["n"],
                        },
                    },
                )
            except EngineError as error:
                if error.code != "ConditionalCheckFailedException":
                    raise
            else:
                done += 1
        return done

    assert sum(_on_threads(increment)) == THREADS * 25
    item = engine.execute("GetItem", {"TableName": "Messages", "Key": KEY})["Item"]
    assert item["n"] == {"N": str(THREADS * 25)}
    records = engine.read_stream("Messages", 0, 1000)
    seen = [record.new_image["n"]["N"] for record in records if record.new_image]
    assert seen == [str(number) for number in range(THREADS * 25 + 1)]


def test_a_thread_sees_every_answered_write_of_the_others(engine: Engine) -> None:
    def write_and_read_back(thread: int) -> bool:
        key = {"pk": {"S": "p"}, "sk": {"S": str(thread)}}
        for number in range(50):
            item = {**key, "n": {"N": str(number)}}
            engine.execute("PutItem", {"TableName": "Messages", "Item": item})
            found = engine.execute("GetItem", {"TableName": "Messages", "Key": key})
            if found["Item"] != item:
                return False
        return True

    assert all(_on_threads(write_and_read_back))


def test_readers_never_see_half_a_transaction(engine: Engine) -> None:
    keys = [{"pk": {"S": "p"}, "sk": {"S": sk}} for sk in "12"]
    gets = [{"Get": {"TableName": "Messages", "Key": key}} for key in keys]
    stop = threading.Event()

    def write(number: int) -> None:
        puts = [
            {"Put": {"TableName": "Messages", "Item": {**key, "n": {"N": str(number)}}}}
            for key in keys
        ]
        engine.execute("TransactWriteItems", {"TransactItems": puts})

    def read(_: int) -> bool:
        while not stop.is_set():
            answer = engine.execute("TransactGetItems", {"TransactItems": gets})
            first, second = (response["Item"]["n"] for response in answer["Responses"])
            query = engine.execute(
                "Query",
                {
                    "TableName": "Messages",
                    "KeyConditionExpression": "pk = :p",
                    "ExpressionAttributeValues": {":p": {"S": "p"}},
                },
            )
            if first != second or len({item["n"]["N"] for item in query["Items"]}) > 1:
                return False
        return True

    write(0)
    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read, number) for number in range(2)]
        for number in range(200):
            write(number)
        stop.set()
    assert all(reader.result() for reader in readers)


def test_a_broken_write_does_not_break_others_of_its_commit(tmp_path: Path, clock: Any) -> None:
    engine = Engine(tmp_path / "engine.db", SPECS, now_ms=clock)
    # From outside, as a full disk would: every write of one partition fails.
    with sqlite3.connect(tmp_path / "engine.db") as connection:
        connection.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON \"items:Messages\" WHEN NEW.pk = 'bad' "
            "BEGIN SELECT RAISE(ABORT, 'no room'); END"
        )
    connection.close()

    def put(thread: int) -> int:
        done = 0
        for number in range(30):
            pk = "bad" if thread == 0 else str(thread)
            item = {"pk": {"S": pk}, "sk": {"S": str(number)}}
            try:
                engine.execute("PutItem", {"TableName": "Messages", "Item": item})
            except sqlite3.IntegrityError:
                continue
            done += 1
        return done

    assert _on_threads(put) == [0] + [30] * (THREADS - 1)
    assert len(_scan(engine)) == 30 * (THREADS - 1)
    engine.close()


def _on_threads(run: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def _scan(engine: Engine) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    start: dict[str, Any] = {}
    while True:
        page = engine.execute("Scan", {"TableName": "Messages", **start})
        items += page["Items"]
        if "LastEvaluatedKey" not in page:
            return items
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
