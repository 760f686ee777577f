from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from cirrusmq_local.stack.trouble import QUIET_SECONDS, Trouble

FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def trouble(tmp_path: Path, hand_time: Any, told: list[str]) -> Trouble:
    return Trouble(tmp_path, told.append, monotonic=hand_time.monotonic)


def test_a_thousand_failures_are_one_line(
    trouble: Trouble, told: list[str], tmp_path: Path
) -> None:
    assert trouble.reason is None
    for _ in range(1_000):
        trouble.note(FULL)
        trouble.look()
    (line,) = told
    assert line.startswith(f"{tmp_path}: its disk is full")
    assert trouble.reason is not None
    assert "its disk is full" in trouble.reason


def test_the_end_is_told_when_nothing_fails_any_more(
    trouble: Trouble, told: list[str], hand_time: Any
) -> None:
    trouble.note(FULL)
    hand_time.seconds += QUIET_SECONDS - 1
    trouble.note(FULL)
    hand_time.seconds += QUIET_SECONDS - 1
    trouble.look()
    assert trouble.reason is not None
    hand_time.seconds += 1
    trouble.look()
    assert trouble.reason is None
    assert told[1:] == [f"{told[0].partition(':')[0]}: it can be written again"]


def test_silence_alone_is_no_end(
    trouble: Trouble, told: list[str], hand_time: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without calls, nothing fails."""
    trouble.note(FULL)
    hand_time.seconds += 1_000

    def fail(descriptor: int) -> None:
        raise FULL

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", fail)
        trouble.look()
    assert trouble.reason is not None
    trouble.look()
    assert trouble.reason is None
    assert len(told) == 2


def test_a_damaged_store_is_told_whatever_was_told_before_and_stays(
    trouble: Trouble, told: list[str], hand_time: Any
) -> None:
    damaged = sqlite3.DatabaseError("database disk image is malformed")
    damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    trouble.note(FULL)
    for _ in range(3):
        trouble.note_store("store.sqlite", damaged)
        hand_time.seconds += 1_000
        trouble.look()
    assert len(told) == 2
    assert "store.sqlite is damaged (database disk image is malformed)" in told[1]
    assert trouble.reason is not None
