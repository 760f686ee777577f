from __future__ import annotations

import errno
import io
import json
import multiprocessing
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from cirrusmq_local.engine.data_errors import DataError, DataInUseError
from cirrusmq_local.stack.data import DataFolder, read_connection
from cirrusmq_local.stack.logfile import LogFile

CONNECTION = {"url": "http://h", "account": "local", "access_key_id": "k", "secret": "s"}


def test_two_stacks_do_not_share_data(tmp_path: Path) -> None:
    first = DataFolder(tmp_path / "data")
    first.lock()
    with pytest.raises(DataInUseError, match="in use by process"):
        DataFolder(tmp_path / "data").lock()
    first.unlock()
    second = DataFolder(tmp_path / "data")
    second.lock()
    second.unlock()


def lock_and_die(path: Path) -> None:
    DataFolder(path).lock()


def test_a_dead_stack_leaves_no_lock(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=lock_and_die, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == 0
    data = DataFolder(tmp_path)
    data.lock()
    data.unlock()


def test_a_connection_is_for_its_owner_alone(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    assert data.read_connection() is None
    data.write_connection(CONNECTION)
    assert data.read_connection() == CONNECTION
    assert json.loads((tmp_path / "connection.json").read_text()) == CONNECTION
    assert stat.S_IMODE((tmp_path / "connection.json").stat().st_mode) == 0o600


def test_a_connection_is_replaced_whole(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    data.write_connection(CONNECTION)
    # A file that a crash may leave beside it.
    (tmp_path / "connection.json.new").write_text("{", encoding="utf-8")
    data.write_connection(CONNECTION | {"url": "http://other"})
    assert data.read_connection() == CONNECTION | {"url": "http://other"}


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", '{"url": "http://h"}', '{"url": 1}'),
        json.dumps({name: held for name, held in CONNECTION.items() if name != "account"}),
        json.dumps({**CONNECTION, "signing_key": {"access_key_id": "AKID"}}),
    ],
)
def test_a_damaged_connection_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "connection.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"connection.json is damaged.*: remove it"):
        read_connection(path)


def test_a_log_does_not_grow_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogFile(path, limit=100)
    for number in range(100):
        log.write(f"line {number:04d}\n")
    log.close()
    log.write("too late\n")
    assert path.stat().st_size <= 100
    assert (tmp_path / "log.1").stat().st_size <= 100
    assert path.read_text().splitlines()[-1] == "line 0099"
    assert len(list(tmp_path.iterdir())) == 2


class SmallDisk(io.FileIO):
    """A file on a disk that takes `room` bytes more, of all such files together."""

    room = 0

    def write(self, data: Any) -> int:
        taken = min(len(data), SmallDisk.room)
        if not taken:
            raise OSError(errno.ENOSPC, "No space left on device")
        SmallDisk.room -= taken
        return super().write(bytes(data[:taken])) or 0


def test_a_log_on_a_full_disk_fails_nobody_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(io, "FileIO", SmallDisk)
    SmallDisk.room = 12
    failures: list[OSError] = []
    log = LogFile(tmp_path / "log", failed=failures.append)
    for line in ("first\n", "second line\n", "third\n"):
        assert log.write(line) == len(line)
    assert [failure.errno for failure in failures] == [errno.ENOSPC] * 2
    SmallDisk.room = 100
    log.write("fourth\n")
    log.close()
    assert (tmp_path / "log").read_text() == "first\nsecond\nfourth\n"


def test_a_log_goes_on_after_a_restart(tmp_path: Path) -> None:
    for text in ("first\n", "second\n"):
        log = LogFile(tmp_path / "log")
        log.write(text)
        log.close()
    assert (tmp_path / "log").read_text() == "first\nsecond\n"


def test_a_removed_or_replaced_folder_is_missed(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    data = DataFolder(folder)
    data.lock()
    data.store.touch()
    data.bodies.mkdir()
    assert data.missing() is None
    folder.rename(tmp_path / "elsewhere")
    assert data.missing() == folder / "lock"
    shutil.copytree(tmp_path / "elsewhere", folder)
    assert data.missing() == folder / "lock"
    shutil.rmtree(folder)
    (tmp_path / "elsewhere").rename(folder)
    assert data.missing() is None
    data.bodies.rmdir()
    assert data.missing() == folder / "bodies"
    data.store.unlink()
    assert data.missing() == folder / "store.sqlite"
    data.unlock()


def test_a_folder_of_ours_and_its_store_are_closed_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    (folder / "lock").touch()
    (folder / "store.sqlite").touch(mode=0o644)
    (folder / "store.sqlite-wal").touch(mode=0o644)
    data = DataFolder(folder)
    data.lock()
    data.check_store()
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}
    del modes["lock"]  # it holds a process's number
    assert modes == dict.fromkeys(("store.sqlite", "store.sqlite-wal"), 0o600)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    data.unlock()


def test_a_folder_with_other_files_is_left_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    (folder / "notes").touch()
    data = DataFolder(folder)
    data.lock()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    data.unlock()
