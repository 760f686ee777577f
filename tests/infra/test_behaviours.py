"""The page of the models' behaviours names tests that there are, and adds its lines up."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS / "behaviours.md").read_text()
STATES = ("as there", "differs: ", "missing: ")
SYSTEMS = {"CMQ", "RocketMQ", "EMQ"}


def lines() -> list[list[str]]:
    """The cells of each behaviour's line: those behind a table's head, to its end."""
    found: list[list[str]] = []
    inside = False
    for line in PAGE.splitlines():
        if not line.startswith("|"):
            inside = False
        elif inside:
            found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        else:
            inside = line == "| --- | --- | --- | --- |"
    return found


@cache
def collected(path: str) -> set[str]:
    """The names of a file's tests, with their classes', as pytest collects them."""
    names = set()
    for node in ast.parse((TESTS.parent / path).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            held = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
            names |= {f"{node.name}::{name}" for name in held}
    return {name for name in names if re.search(r"(^|::)test_\w+$", name)}


def test_each_test_named_on_the_page_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", PAGE)
    assert len(named) == PAGE.count(".py::"), "a test is not named as `tests/file.py::test`"
    missing = [f"{path}::{name}" for path, name in named if name not in collected(path)]
    assert missing == []


def test_each_line_names_its_system_its_state_and_its_tests() -> None:
    told = Counter(behaviour for behaviour, *_ in lines())
    for behaviour, systems, here, tests in lines():
        assert told[behaviour] == 1, behaviour
        assert set(systems.split(", ")) <= SYSTEMS, behaviour
        assert here.startswith(STATES), behaviour
        assert ("::" in tests) != here.startswith("missing"), behaviour


def test_its_sums_are_those_of_its_lines() -> None:
    here = [cells[2] for cells in lines()]
    sums = PAGE.rpartition("## Sum")[2]
    for state in STATES:
        count = sum(each.startswith(state) for each in here)
        assert f"| {state.rstrip(': ')} | {count} |" in sums
    assert f"| all | {len(here)} |" in sums


def test_the_comparison_of_the_manual_has_these_sums() -> None:
    page = (TESTS.parent / "infra/manual/comparison.md").read_text()
    as_there, differing, missing = (
        sum(cells[2].startswith(state) for cells in lines()) for state in STATES
    )
    absent = "none is missing" if not missing else f"{missing} are missing"
    told = f"of {len(lines())}, {as_there} are as there, {differing} differ and {absent}."
    assert told in " ".join(page.split())
