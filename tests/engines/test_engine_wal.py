"""A log that was damaged after a kill is told of and kept; one that a kill has cut is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cirrusmq_local.engine import Engine, TableSpec
from cirrusmq_local.engine.wal import Damage, find_damage

HEADER, FRAME = 32, 24 + 8_192
SENT = 40


def open_engine(path: Path, told: list[str] | None = None) -> Engine:
    tell = (lambda sentence: None) if told is None else told.append
    return Engine(path, [TableSpec("Messages")], now_ms=lambda: 7, on_damage=tell)


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The files of an engine that was killed after it had stored 40 items."""
    engine = open_engine(tmp_path / "live.db")
    for number in range(SENT):
        item = {"pk": {"S": "p"}, "sk": {"S": f"{number:03d}"}}
        engine.execute("PutItem", {"TableName": "Messages", "Item": item})
    for suffix in ("", "-wal"):
        shutil.copyfile(tmp_path / f"live.db{suffix}", tmp_path / f"killed.db{suffix}")
    engine.close()
    return tmp_path / "killed.db"


def flip(log: Path, offset: int) -> None:
    data = bytearray(log.read_bytes())
    data[offset] ^= 1
    log.write_bytes(data)


def count(engine: Engine) -> int:
    stored: int = engine.execute("Scan", {"TableName": "Messages"})["Count"]
    engine.close()
    return stored


def frames_of(log: Path) -> int:
    return (log.stat().st_size - HEADER) // FRAME


@pytest.mark.parametrize("offset", [0, 4, 9, 17, 24 + 5_000])
def test_one_bit_of_a_frame_is_told_and_the_log_kept(killed: Path, offset: int) -> None:
    """In its page number, size, salt, checksum or page."""
    log = killed.with_name("killed.db-wal")
    frames, bad = frames_of(log), 9
    flip(log, HEADER + (bad - 1) * FRAME + offset)
    damaged = log.read_bytes()
    told: list[str] = []

    assert find_damage(log) == Damage(bad, frames - bad + 1)
    assert count(open_engine(killed, told)) < SENT

    (sentence,) = told
    copy = killed.with_name("killed.db-wal.damaged-7")
    assert str(copy) in sentence
    assert copy.read_bytes() == damaged


def test_one_bit_of_the_header_is_told(killed: Path) -> None:
    log = killed.with_name("killed.db-wal")
    flip(log, 17)
    assert find_damage(log) == Damage(0, frames_of(log))


@pytest.mark.parametrize("cut", [0, 1, 24, 25, FRAME - 1, FRAME, 5 * FRAME + 100])
def test_a_log_cut_by_a_kill_is_no_damage(killed: Path, cut: int) -> None:
    log, told = killed.with_name("killed.db-wal"), list[str]()
    data = log.read_bytes()
    log.write_bytes(data[: len(data) - cut])
    assert count(open_engine(killed, told)) >= SENT - cut // FRAME - 1
    assert told == []


def test_frames_of_an_older_generation_behind_a_cut_frame_are_no_damage(killed: Path) -> None:
    log = killed.with_name("killed.db-wal")
    frames = frames_of(log)
    data = bytearray(log.read_bytes())
    for number in range(frames // 2, frames):
        start = HEADER + number * FRAME
        data[start + 8 : start + 16] = b"olderone"
    data[HEADER + (frames // 2 - 1) * FRAME + 100] ^= 1  # written over half of an older frame
    log.write_bytes(data)
    assert find_damage(log) is None


def test_no_log_and_an_empty_one_are_no_damage(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert find_damage(log) is None
    log.touch()
    assert find_damage(log) is None
