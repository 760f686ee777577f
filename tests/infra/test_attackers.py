"""The page on access says of each attacker what bounds him, by the name of a test that there is."""

from __future__ import annotations

import re

from tests.infra.test_behaviours import collected
from tests.infra.tools import ROOT

PAGE = (ROOT / "infra/manual/access.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## What an attacker can do")[1].split("\n## ")[0]
ROWS = [
    [cell.strip() for cell in line.split(" | ")]
    for line in SECTION.splitlines()
    if line.startswith("| ") and not line.startswith(("| who |", "| role of |", "| --- "))
]


def test_each_row_names_existing_tests() -> None:
    assert len(ROWS) >= 20
    paths = (path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py"))
    there = set[str]().union(*(collected(str(path)) for path in paths))
    for row in ROWS:
        named = re.findall(r"`(test_\w+)`", row[-1])
        assert named, row[0]
        assert not set(named) - there, row[0]


def test_the_role_of_each_function_has_a_row() -> None:
    of_roles = SECTION.split("| role of ")[1]
    told = {
        name
        for line in of_roles.splitlines()
        if line.startswith("| ")
        for name in re.findall(r"`(\w+)`", line.split(" | ")[0])
    }
    assert told == {path.parent.name for path in ROOT.glob("functions/*/app.py")}
