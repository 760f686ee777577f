"""The console's files: small, complete in both languages, and from this service alone."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from tests.console.browsing import ROOT

FOLDER = ROOT / "functions/pages/console"
FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file())
MODULES = [path for path in FILES if path.suffix == ".js"]
TEXTS = sorted((FOLDER / "texts").glob("*.js"))
LANGUAGES = ("en", "zh")
WIRE_BYTES = 150_000
MAX_LINES = 300
MAX_COLUMNS = 104
# Keys whose last word the service or a list decides.
DECIDED = ("nav", "unit", "rate", "state", "mode", "delivery", "operation", "queue.tab",
           "topic.tab", "retry", "message_state", "search.order")  # fmt: skip


def read_texts(language: str) -> dict[str, str]:
    """All texts of a language: each file is an object, which is JSON but for its last comma."""
    texts: dict[str, str] = {}
    for path in TEXTS:
        if path.stem.partition("_")[0] == language:
            _, _, held = path.read_text("utf-8").partition("= ")
            found: dict[str, str] = json.loads(held.rstrip().rstrip(";").replace(",\n}", "\n}"))
            assert found.keys().isdisjoint(texts)
            texts |= found
    return texts


def test_all_of_it_is_small_on_the_wire_and_in_readable_files() -> None:
    assert len(MODULES) > 20
    assert sum(len(gzip.compress(path.read_bytes())) for path in FILES) < WIRE_BYTES
    lines = {path.name: len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}
    code = [path for path in MODULES if path not in TEXTS]
    longest = {path.name: max(map(len, path.read_text("utf-8").splitlines())) for path in code}
    assert {name: length for name, length in longest.items() if length > MAX_COLUMNS} == {}


def test_every_language_has_every_text_with_the_same_values() -> None:
    first, *others = map(read_texts, LANGUAGES)
    assert len(first) > 200
    assert others
    for other in others:
        assert other.keys() == first.keys()
        for key, text in first.items():
            held = [sorted(re.findall(r"{\w+}", each)) for each in (text, other[key])]
            assert held[0] == held[1], key


def test_every_text_is_used_and_every_used_text_is_there() -> None:
    code = "".join(path.read_text("utf-8") for path in MODULES if path not in TEXTS)
    there = set(read_texts("en"))
    assert set(re.findall(r'\bt\(\s*"([^"]+)"', code)) <= there
    spelled = set(re.findall(r'"([a-z_.]+)"', code))
    decided = {
        key for key in there if key.rpartition(".")[0] in DECIDED or key.startswith("retry.")
    }
    assert there - spelled - decided == set()


def test_the_page_asks_for_every_module_at_once_and_for_nothing_else() -> None:
    page = (FOLDER / "index.html").read_text("utf-8")
    asked = re.findall(r'<link rel="modulepreload" href="([^"]+)">', page)
    assert asked == [str(path.relative_to(FOLDER)) for path in MODULES]
    others = set(re.findall(r'(?:href|src)="([^"]+)"', page)) - set(asked)
    assert others == {"data:,", "console.css"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_is_read_as_html_or_from_another_host(path: Path) -> None:
    text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    assert not re.search(r"(?:href|src)=\"(?:https?:)?//|import\(|@import|url\(", text)
    assert "localStorage.setItem" not in text or path.name == "i18n.js"


def test_each_module_imports_existing_files() -> None:
    for path in MODULES:
        for name in re.findall(r'from "([^"]+)"', path.read_text("utf-8")):
            assert (path.parent / name).resolve() in FILES, f"{path.name} imports {name}"
