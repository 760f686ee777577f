"""The count of planted faults that tests notice: faults nobody looked for are not among them."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from mutants.__main__ import endless, judge


def played(folder: Path, verdicts: dict[str, int | None]) -> None:
    """Results as the tool leaves them, a file for each module."""
    for module in ("names", "ulid"):
        path = folder / "mutants" / "cirrusmq" / f"{module}.py.meta"
        path.parent.mkdir(parents=True, exist_ok=True)
        of_module = {name: code for name, code in verdicts.items() if name.startswith(module)}
        path.write_text(json.dumps({"exit_code_by_key": of_module}))


def test_mutants_that_lived_or_had_no_test_are_not_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    played(
        tmp_path,
        {
            "names.failed": 1,
            "names.stopped": 3,
            "names.lived": 0,
            "ulid.untested": 33,
            "ulid.pending": None,
            "ulid.endless": -signal.SIGXCPU,
            "ulid.ended": -signal.SIGKILL,
            "ulid.failed": 1,
        },
    )
    assert not judge(tmp_path)
    assert capsys.readouterr().out.splitlines() == [
        "  lives: names.lived",
        "  lives: ulid.pending (not played)",
        "  lives: ulid.untested (no test calls its function)",
        "5 of 8 mutants killed: 62.5 %",
        "2 of those never ended, which a test notices as well",
        "1 lived; 2 were not played, or no test calls their function",
    ]
    assert sorted(endless(tmp_path)) == ["ulid.ended", "ulid.endless"]


@pytest.mark.parametrize(("lived", "enough"), [(4, True), (5, False)])
def test_96_of_100_are_enough(tmp_path: Path, lived: int, enough: bool) -> None:
    played(tmp_path, {f"names.{number}": int(number >= lived) for number in range(100)})
    assert judge(tmp_path) is enough
