"""Programs that the manual shows are files that tests run: the text is that of the file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.manual.pages import PAGES, ROOT, languages

EXAMPLES = ROOT / "tests/client/examples"
CHECKED = ("python", "js", "go", "php")
OTHERS = {
    *("console", "sh", "text", "json", "yaml", "sql"),
    *("fields", "errors", "troubleshooting", "parameters", "calculator"),
}
ELSEWHERE = {"coming-from-emq.md", "coming-from-sqs.md", "testing.md"}
"""Pages with one program more, of settings or of a few lines, beside the file's."""
# A link to a file in tests/, and the first block behind it.
_SHOWN = re.compile(
    r"\]\((?:\.\./\.\./)?(?P<path>tests/[\w./-]+)\)(?:(?!```).)*?```(?P<language>\w+)\n"
    r"(?P<code>.*?)\n```",
    re.DOTALL,
)


def shown(page: Path) -> dict[Path, str]:
    """The programs of a page, by the file that it names for each."""
    found = _SHOWN.finditer(page.read_text("utf-8"))
    return {ROOT / each["path"]: each["code"] for each in found if each["language"] in CHECKED}


def test_every_example_of_the_library_is_on_a_page() -> None:
    on_pages = {path for page in PAGES for path in shown(page)}
    assert sorted(EXAMPLES.glob("*.py")) == sorted(on_pages & set(EXAMPLES.glob("*.py")))


@pytest.mark.parametrize(
    ("page", "path"),
    [(page, path) for page in PAGES for path in shown(page)],
    ids=lambda path: path.stem,
)
def test_a_page_shows_the_tested_program(page: Path, path: Path) -> None:
    program = path.read_text("utf-8")
    if path.suffix == ".py":
        program = program.partition("from __future__ import annotations\n")[2]
    assert shown(page)[path] in program
    if path.parent == EXAMPLES:
        assert shown(page)[path] == program.strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_no_other_program(page: Path) -> None:
    found = languages(page)
    assert set(found) <= {*CHECKED, *OTHERS}
    programs = [language for language in found if language in CHECKED]
    assert len(programs) == len(shown(page)) + (page.name in ELSEWHERE)
