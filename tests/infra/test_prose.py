"""Turns of phrase are counted by package, and their ceilings only fall."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from prose import __main__ as command
from prose.counting import PATTERNS, clauses_in, files, package_of
from prose.texts import texts_of

SOURCE = '''"""Reads the one that waits: `what is` is code.

    a ──> b      those that are drawn
"""

VALUE = 1
"""None where there is none."""


def read() -> None:
    # Whether it is told.
    # So many of them are read anew.
    raise ValueError("what is wrong with it")
'''


def found(path: Path) -> dict[str, int]:
    texts = list(texts_of(path))
    counts = {
        name: sum(len(pattern.findall(text)) for text in texts)
        for name, pattern in PATTERNS.items()
    }
    return {name: number for name, number in counts.items() if number}


def test_docstrings_comments_and_errors_are_read_without_code_and_drawings(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(SOURCE)

    assert found(path) == {
        "those that": 2,
        "where for if": 1,
        "begins with Of, What, Where": 1,
        "is told": 1,
        "anew, meanwhile": 1,
        "so many": 1,
    }


def test_files_made_from_pages_are_not_counted_again(tmp_path: Path) -> None:
    """`make up` makes the site; a checkout that has it must pass the same checks."""
    for name in ("infra/manual/push.md", "functions/pages/docs/push.md", "functions/send/app.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")

    counted = {str(path.relative_to(tmp_path)) for path in files(tmp_path)}
    assert counted == {
        "infra/manual/push.md",
        "functions/send/app.py",
        "README.md",
        "CONTRIBUTING.md",
    }


def test_a_page_is_read_without_fenced_code(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("Answers it anew.\n\n```\nwhat is this\n```\n[here](anew)\n")

    assert found(path) == {"answers for returns": 1, "anew, meanwhile": 1}


def test_a_package_is_named_by_its_folders() -> None:
    root = Path(__file__).parents[2]

    assert package_of(root / "layers/core/cirrusmq/push/posting.py") == "layers/core/cirrusmq/push"
    assert package_of(root / "README.md") == "."


@pytest.mark.parametrize(
    ("name", "clauses"),
    [
        ("test_what_is_sent_comes", 1),
        ("test_a_message_that_is_sent_arrives", 1),
        ("test_an_answer_tells_what", 1),
        ("test_a_sent_message_arrives_somewhere", 0),
        ("a_message_that_is_sent", 0),
    ],
)
def test_a_relative_clause_in_the_name_of_a_test_is_counted_once(name: str, clauses: int) -> None:
    for source in (f"def {name}() -> None:\n    assert x\n", f"    async def {name}(self): ...\n"):
        assert clauses_in(source) == clauses


def test_more_than_the_ceiling_is_told() -> None:
    counts = {"a": Counter({"is told": 3}), "new": Counter({"so many": 1})}

    assert command.exceeded(counts, {"a": {"is told": 2}}) == [
        'a: 3 times "is told", at most 2',
        'new: 1 times "so many", at most 0',
    ]
    assert command.exceeded(counts, {"a": {"is told": 3}, "new": {"so many": 1}}) == []


def test_ceilings_only_fall() -> None:
    counts = {"a": Counter({"is told": 1, "so many": 5}), "new": Counter({"so many": 1})}
    ceilings = {"a": {"is told": 2, "so many": 4}, "gone": {"is told": 9}}

    assert command.lowered(counts, ceilings) == {"a": {"is told": 1, "so many": 4}}


def test_the_command_fails_above_a_ceiling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "CEILINGS", tmp_path / "ceilings.json")
    monkeypatch.setattr(command, "count", lambda: {"a": Counter({"words": 9, "is told": 1})})
    command.CEILINGS.write_bytes(b'{"a": {"is told": 2}}')

    assert command.main(["--write"]) == 0
    assert msgspec.json.decode(command.CEILINGS.read_bytes()) == {"a": {"is told": 1}}
    monkeypatch.setattr(command, "count", lambda: {"a": Counter({"words": 9, "is told": 2})})
    assert command.main(["--write"]) == 1
    assert 'a: 2 times "is told", at most 1' in capsys.readouterr().out
