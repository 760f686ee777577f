"""The list of behaviours that others have recorded: its verdicts, its share, and its tests."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
LISTS = {"sqs_behaviours.md": 0.95, "sns_behaviours.md": 0.85}
"""The least share of the rows that hold, of those that are not left out."""
_VERDICT = re.compile(r"holds|(differs|left out): .+")


def rows(name: str) -> list[tuple[str, str, str]]:
    """Behaviour, verdict and test of each row."""
    found = []
    for line in (FOLDER / name).read_text().splitlines():
        cells = [each.strip() for each in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] not in ("behaviour", "---"):
            behaviour, verdict, test = cells
            found.append((behaviour, verdict, test))
    return found


@cache
def known_tests() -> frozenset[str]:
    texts = (each.read_text() for each in FOLDER.glob("test_*.py"))
    return frozenset(name for text in texts for name in re.findall(r"def (test_\w+)", text))


@pytest.mark.parametrize("name", LISTS)
def test_each_behaviour_has_its_verdict_and_its_test(name: str) -> None:
    for behaviour, verdict, test in rows(name):
        assert _VERDICT.fullmatch(verdict), behaviour
        assert test in known_tests() or (verdict.startswith("left out") and not test), behaviour


@pytest.mark.parametrize(("name", "least"), LISTS.items())
def test_most_behaviours_hold(name: str, least: float) -> None:
    verdicts = [verdict.partition(":")[0] for _, verdict, _ in rows(name)]
    concerned = [each for each in verdicts if each != "left out"]
    assert concerned.count("holds") / len(concerned) >= least
