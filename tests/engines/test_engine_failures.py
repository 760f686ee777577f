"""A disk that fails: the caller gets an error, and nothing of a failed write stays."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cirrusmq_local.engine import Engine, EngineError, TableSpec
from cirrusmq_local.engine.errors import OtherFormError

SPECS = [TableSpec("Messages", stream=True)]
LARGE = {"S": "x" * 300_000}


@pytest.fixture
def failures() -> list[sqlite3.Error]:
    return []


@pytest.fixture
def engine(tmp_path: Path, clock: Any, failures: list[sqlite3.Error]) -> Iterator[Engine]:
    made = Engine(tmp_path / "engine.db", SPECS, now_ms=clock, on_failure=failures.append)
    yield made
    made.close()


def put(engine: Engine, number: int, body: dict[str, str] | None = None) -> None:
    item = {"pk": {"S": "p"}, "sk": {"S": f"{number:03d}"}, "body": body or {"S": "small"}}
    engine.execute("PutItem", {"TableName": "Messages", "Item": item})


def refusal(engine: Engine, number: int) -> EngineError | None:
    try:
        put(engine, number, LARGE)
    except EngineError as error:
        return error
    return None


def kept(engine: Engine) -> list[str]:
    return [item["sk"]["S"] for item in engine.execute("Scan", {"TableName": "Messages"})["Items"]]


def limit(engine: Engine, pages: int) -> None:
    """Let the database have so many pages at most: more is SQLITE_FULL, as on a full disk."""
    engine._core.store._writer.execute(f"PRAGMA max_page_count = {pages}")


def fill(engine: Engine) -> int:
    """Write until the disk is full; how many items it took."""
    (pages,) = engine._core.store._writer.execute("PRAGMA page_count").fetchone()
    limit(engine, pages + 100)
    taken = 0
    while (refused := refusal(engine, taken)) is None:
        taken += 1
    assert (refused.code, refused.status) == ("InternalServerError", 500)
    return taken


def test_a_full_disk_fails_the_write_and_goes_on_with_space(
    engine: Engine, failures: list[sqlite3.Error]
) -> None:
    taken = fill(engine)
    assert taken > 0
    assert [error.sqlite_errorcode for error in failures] == [sqlite3.SQLITE_FULL]
    assert kept(engine) == [f"{number:03d}" for number in range(taken)]
    limit(engine, 1_000_000)
    put(engine, taken, LARGE)
    assert len(kept(engine)) == taken + 1
    assert [r.sequence for r in engine.read_stream("Messages", 0, 100)] == list(range(1, taken + 2))


def test_a_write_without_space_does_not_fail_others_of_its_commit(
    engine: Engine,
) -> None:
    taken = fill(engine)

    def write(number: int) -> bool:
        try:
            put(engine, number, LARGE if number % 2 else None)
        except EngineError:
            return False
        return True

    numbers = range(taken, taken + 64)
    with ThreadPoolExecutor(16) as threads:
        answers = dict(zip(numbers, threads.map(write, numbers, timeout=60), strict=True))
    answered = {f"{number:03d}" for number, done in answers.items() if done}
    assert answered == set(kept(engine)) - {f"{number:03d}" for number in range(taken)}
    assert not any(done for number, done in answers.items() if number % 2)
    assert all(done for number, done in answers.items() if not number % 2)


class Unrollable:
    """A connection whose disk fails at the commit and at the rollback."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, *values: Any) -> Any:
        if statement in ("COMMIT", "ROLLBACK"):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error
        return self._connection.execute(statement, *values)


def test_a_write_beyond_rollback_ends_with_its_connection(engine: Engine) -> None:
    store: Any = engine._core.store
    put(engine, 1)
    store._writer = Unrollable(store._writer)
    with pytest.raises(EngineError, match="disk I/O error"):
        put(engine, 2)
    put(engine, 3)
    assert kept(engine) == ["001", "003"]


def test_a_failed_reader_serves_nobody_an_old_moment(engine: Engine) -> None:
    store: Any = engine._core.store
    put(engine, 1)
    with pytest.raises(sqlite3.ProgrammingError), store.snapshot() as connection:
        connection.execute("SELECT ?")
    put(engine, 2)
    assert kept(engine) == ["001", "002"]


def test_a_vanished_file_is_not_begun_anew(
    tmp_path: Path, engine: Engine, failures: list[sqlite3.Error]
) -> None:
    for path in tmp_path.iterdir():
        path.unlink()
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(kept, engine) for _ in range(4)]
    assert [path.name for path in tmp_path.iterdir()] == []
    assert len([each for each in asked if each.exception() is not None]) == len(failures)


def test_a_damaged_file_is_not_opened(tmp_path: Path, clock: Any) -> None:
    path = tmp_path / "engine.db"
    made = Engine(path, SPECS, now_ms=clock)
    for number in range(20):
        put(made, number, LARGE)
    made.close()
    with path.open("r+b") as file:
        file.seek(8192 * 3)
        file.write(b"\xff" * 8192)
    with pytest.raises(sqlite3.DatabaseError) as refused:
        Engine(path, SPECS, now_ms=clock)
    assert refused.value.sqlite_errorcode == sqlite3.SQLITE_CORRUPT


def test_a_file_of_another_form_stays_as_it_is(tmp_path: Path, clock: Any) -> None:
    path = tmp_path / "engine.db"
    Engine(path, SPECS, now_ms=clock).close()
    with sqlite3.connect(path) as connection:
        connection.execute('ALTER TABLE "items:Messages" RENAME COLUMN size TO bytes')
    connection.close()
    with pytest.raises(OtherFormError, match="items:Messages has the columns pk, sk, bytes"):
        Engine(path, [*SPECS, TableSpec("More")], now_ms=clock)
    with sqlite3.connect(path) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    connection.close()
    assert "items:More" not in names


def test_the_last_write_tells_its_time(tmp_path: Path) -> None:
    now = [1_000]
    made = Engine(tmp_path / "engine.db", SPECS, now_ms=lambda: now[0])
    assert made.newest_write_ms() == 0
    now[0] = 5_000
    put(made, 1)
    now[0] = 9_000
    kept(made)
    assert made.newest_write_ms() == 5_000
    made.close()
