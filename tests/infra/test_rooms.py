"""A mechanism lies in one folder: nothing about it alone is elsewhere; the glossary names it."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import cirrusmq

CORE = Path(cirrusmq.__file__).parent
SHARED = ("cirrusmq.base.", "cirrusmq.model.", "cirrusmq.runtime.")
"""What is shared says nothing of where a file belongs."""
BESIDE = {
    "receiving/polling.py": "the pace of polls, of which waking up is one kind",
}
"""Files that import of the core one room alone, and why they are not in it."""
SAME_THING = {"__init__", "items", "memory", "rules"}
"""Names that each room may have; all others are of one file of the core."""


def modules() -> Iterator[Path]:
    return (path for path in CORE.rglob("*.py") if path.stem != "__init__")


def rooms() -> list[Path]:
    return sorted(path.parent for path in CORE.glob("*/*/__init__.py"))


@cache
def imported(path: Path) -> set[str]:
    """The modules of the core that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cirrusmq."):
            for name in node.names:
                full = f"{node.module}.{name.name}"
                is_file = (CORE.parent / full.replace(".", "/")).with_suffix(".py").exists()
                found.add(full if is_file else f"{node.module}")
    return found


def test_no_file_outside_a_room_is_about_it_alone() -> None:
    strays = set()
    for room in rooms():
        name = f"cirrusmq.{'.'.join(room.relative_to(CORE).parts)}."
        for path in modules():
            own = {each for each in imported(path) if not f"{each}.".startswith(SHARED)}
            if room not in path.parents and own and all(each.startswith(name) for each in own):
                strays.add(str(path.relative_to(CORE)))

    assert strays == {*BESIDE}


def test_each_room_is_in_the_glossary() -> None:
    glossary = cirrusmq.__doc__ or ""
    for room in rooms():
        assert str(room.relative_to(CORE)) in glossary, f"the glossary does not name {room.name}"


def test_a_name_is_of_one_file_and_of_one_class() -> None:
    files = Counter(path.stem for path in modules())
    assert {name for name, count in files.items() if count > 1} <= SAME_THING
    classes: defaultdict[str, list[str]] = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(str(path.relative_to(CORE)))
    assert {name: places for name, places in classes.items() if len(places) > 1} == {}
