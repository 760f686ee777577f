"""Faults are undone from a file, also when the run that made them is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from cirrusmq_local.verifying.journal import Journal, Step, play


def test_open_faults_are_undone_the_last_first(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "undo.jsonl")
    journal.note({"kind": "a", "name": "first"})
    second = journal.note({"kind": "a", "name": "second"})
    journal.note({"kind": "a", "name": "third"})
    journal.done(second)
    undone: list[Step] = []

    assert len(play(journal.path, {"a": undone.append})) == 2

    assert [step["name"] for step in undone] == ["third", "first"]
    assert play(journal.path, {"a": undone.append}) == []


def test_a_failing_step_stays(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "undo.jsonl")
    journal.note({"kind": "a"})

    def fails(step: Step) -> None:
        raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        play(journal.path, {"a": fails})
    assert len(play(journal.path, {"a": lambda step: None})) == 1


def test_a_torn_line_is_a_never_made_fault(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "undo.jsonl")
    journal.note({"kind": "a"})
    with journal.path.open("a") as file:
        file.write('{"number": 1, "undo": {"ki')
    assert len(play(journal.path, {"a": lambda step: None})) == 1
