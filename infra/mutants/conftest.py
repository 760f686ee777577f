"""pytest's settings where faults are planted; copied beside the tests there."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from hypothesis import Phase, settings

# Each call of a function with mutants takes three of Python's stack, and filters nest deep.
sys.setrecursionlimit(4_000)

# The same examples each time, and none made smaller: that something failed is all that counts.
settings.register_profile(
    "mutants",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=50,
    phases=(Phase.explicit, Phase.generate),
)
settings.load_profile("mutants")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out tests that need packages which are not installed here, nor copied."""
    if collection_path.suffix != ".py":
        return None
    found = {name.partition(".")[0] for name in _imports(ast.parse(collection_path.read_text()))}
    return True if any(find_spec(name) is None for name in found) else None


def _imports(module: ast.Module) -> Iterator[str]:
    for statement in module.body:
        if isinstance(statement, ast.Import):
            yield from (each.name for each in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            yield statement.module
