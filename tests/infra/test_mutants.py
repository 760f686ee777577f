"""The count of planted faults that tests notice: faults nobody looked for are not among them."""

from __future__ import annotations

import ast
import json
import signal
import sys
import tomllib
from pathlib import Path

import pytest

from mutants.__main__ import endless, judge
from pins import pins


def played(folder: Path, verdicts: dict[str, int | None]) -> None:
    """Results as the tool leaves them, a file for each module."""
    for module in ("names", "ulid"):
        path = folder / "mutants" / "cirrusmq" / f"{module}.py.meta"
        path.parent.mkdir(parents=True, exist_ok=True)
        of_module = {name: code for name, code in verdicts.items() if name.startswith(module)}
        path.write_text(json.dumps({"exit_code_by_key": of_module}))


def test_surviving_or_untested_mutants_are_not_killed(
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


def test_a_named_file_of_tests_imports_existing_packages(root: Path) -> None:
    """Files that are found in a folder are left out if a package is missing; these would fail."""
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["mutmut"]
    files = [
        root / name
        for name in settings["pytest_add_cli_args_test_selection"]
        if name.endswith(".py")
    ]
    assert len(files) == 3
    installed = pins((root / "infra/requirements-mutants.lock").read_text())
    there = {*installed, *sys.stdlib_module_names, "cirrusmq", "tests"}
    for file in files:
        assert {name for name in imported(file) if name not in there} == set(), file


def imported(file: Path) -> set[str]:
    """The packages that a file of tests imports when it is loaded."""
    found = set()
    for statement in ast.parse(file.read_text()).body:
        if isinstance(statement, ast.Import):
            found |= {each.name.partition(".")[0] for each in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            found.add(str(statement.module).partition(".")[0])
    return found
