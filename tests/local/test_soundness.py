"""Data folders that a start would refuse are told from those that it would take, and left alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from cirrusmq.runtime.secret import Generations, written
from cirrusmq_local.cloud.tables import table_specs
from cirrusmq_local.cloud.template import TEMPLATE, load
from cirrusmq_local.engine import Engine, TableSpec
from cirrusmq_local.engine.data_errors import DataError
from cirrusmq_local.stack.data import DataFolder
from cirrusmq_local.stack.soundness import check_data

CONNECTION = {"url": "http://127.0.0.1:1", "account": "a", "access_key_id": "k", "secret": "s"}


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """A data folder as a service that has ended leaves it."""
    made = DataFolder(tmp_path / "data")
    made.path.mkdir()
    made.write_connection(CONNECTION)
    made.clock.write_text('{"now_ms": 1795160000000}')
    made.secret.write_text(written(Generations(key="ab" * 32)))
    made.sealing.write_text("ab" * 32)
    Engine(made.store, table_specs(load(TEMPLATE)), now_ms=lambda: 1_795_160_000_000).close()
    return made


def contents(folder: DataFolder) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.path.iterdir()}


def test_a_whole_folder_is_left_as_it_is(folder: DataFolder) -> None:
    before = contents(folder)
    check_data(folder.path)
    assert contents(folder) == before


def test_a_folder_open_in_a_service_may_be_checked(folder: DataFolder) -> None:
    running = Engine(folder.store, table_specs(load(TEMPLATE)), now_ms=lambda: 1_795_160_000_000)
    check_data(folder.path)
    running.close()


@pytest.mark.parametrize(
    ("name", "damaged"),
    [
        ("connection.json", "{"),
        ("clock.json", '{"now_ms": "noon"}'),
        ("secret.json", "[]"),
        ("sealing.key", "xyz"),
        ("store.sqlite", "not a database, however long this text may be made here"),
    ],
)
def test_a_damaged_file_is_named(folder: DataFolder, name: str, damaged: str) -> None:
    (folder.path / name).write_text(damaged)
    before = contents(folder)
    with pytest.raises(DataError, match=name) as raised:
        check_data(folder.path)
    assert "damaged" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert contents(folder) == before


def test_a_store_of_another_version_is_named(folder: DataFolder) -> None:
    (table, *_) = table_specs(load(TEMPLATE))
    with sqlite3.connect(folder.store) as connection:
        connection.execute(f'ALTER TABLE "items:{table.name}" RENAME COLUMN size TO bytes')
    connection.close()
    with pytest.raises(DataError, match="of another version"):
        check_data(folder.path)


def test_a_store_without_a_table_passes_the_check(tmp_path: Path) -> None:
    held = DataFolder(tmp_path)
    some: list[TableSpec] = table_specs(load(TEMPLATE))[:1]
    Engine(held.store, some, now_ms=lambda: 1_795_160_000_000).close()
    check_data(tmp_path)


def test_a_file_in_the_folders_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(DataError, match="a file is where a folder should be"):
        check_data(tmp_path / "data")
