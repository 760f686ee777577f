"""How often each turn of phrase is in the prose of each package."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from .texts import texts_of

ROOT = Path(__file__).parents[2]
PATTERNS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.MULTILINE | flags)
    for name, pattern, flags in (
        (
            "those that",
            r"\b(the ones?|those) (that|which|who|of)\b|\bthat of\b|\bwhat (is|was|are|were)\b"
            r"|\bwhoever\b",
            re.IGNORECASE,
        ),
        (
            "where for if",
            r"\bwhere (?:there (?:is|are|was|were)|no|none|nobody|nothing|another|some|any"
            r"|(?:it|he|one|that|this|they)"
            r" (?:is|are|has|have|was|were|does|did|do|may|can|cannot))\b",
            re.IGNORECASE,
        ),
        ("answers for returns", r"(?:^|[.;:] )Answers? ", 0),
        (
            "begins with Of, What, Where",
            r"(?:^|[.!?:] )(?:Of|Whether|What|Who|Where|By which|As many) ",
            0,
        ),
        ("is told", r"\b(?:is|are|was|were|be) told\b|\btells\b", re.IGNORECASE),
        (
            "anew, meanwhile",
            r"\b(?:anew|meanwhile|hence|for ever|no more|alike|of its own|by itself)\b",
            re.IGNORECASE,
        ),
        ("so many", r"\bso (?:long|many|much|often|far)\b(?! as| that)", re.IGNORECASE),
    )
}
"""Each with the regular expression that finds it."""
CLAUSES = "names with that, what, who"
"""Tests whose names have a relative clause."""
_CLAUSE = re.compile(r"\bdef test(?=\w*_(?:that|which|what|who|whose|where)(?:_|\b))")
_PRODUCT = ("functions", "infra", "layers", "spark_emr")
_TEXTS = ("README.md", "CONTRIBUTING.md")
_LEFT_OUT = {"prose", "decisions", "examples", "build", "docs", "__pycache__"}
"""This one, which names them; records, which are not changed; programs of users; the site that is
made from the manual."""


def package_of(path: Path) -> str:
    """The package of a file as the counts name it: up to four folders below the root."""
    parts = path.relative_to(ROOT).parts[:-1]
    return "/".join(parts[:4]) or "."


def files(root: Path = ROOT) -> Iterable[Path]:
    """Every file of a checkout with prose that is counted."""
    for top in _PRODUCT:
        for path in sorted((root / top).rglob("*")):
            parts = path.relative_to(root).parts
            hidden = any(part.startswith(".") or part in _LEFT_OUT for part in parts)
            if path.suffix in (".py", ".md") and not hidden and path.is_file():
                yield path
    yield from (root / name for name in _TEXTS)


def clauses_in(source: str) -> int:
    """The number of tests in a module whose names have a relative clause."""
    return len(_CLAUSE.findall(source))


def count() -> dict[str, Counter[str]]:
    """By package, how often each turn of phrase occurs; `words` is the number of words.

    Tests are counted by folder, and only their names.
    """
    found: dict[str, Counter[str]] = {}
    for path in files():
        counts = found.setdefault(package_of(path), Counter())
        for text in texts_of(path):
            counts["words"] += len(text.split())
            for name, pattern in PATTERNS.items():
                counts[name] += len(pattern.findall(text))
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        counts = found.setdefault("/".join(path.relative_to(ROOT).parts[:2]), Counter())
        counts[CLAUSES] += clauses_in(path.read_text())
    return found
