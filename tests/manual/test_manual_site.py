"""The site: built without a fault, nothing dead, nothing inline, everything found."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.manual.pages import MANUAL, README, ROOT

import cirrusmq
from manual import site as maker
from manual.made import with_marked_tables, with_tables
from manual.markdown import render

FIELD = {
    "idempotent": "how-to-idempotent#write-idempotent-handlers",
    "consumer group": "topics#three-kinds-of-subscription-queue-url-consumer-group",
    "acknowledge": "queues#acknowledge-give-back-extend-give-up",
    "webhook": "push#push-webhooks-and-how-to-verify-them",
    "backoff": "retries#the-policies-waits-and-backoff",
    "dead-letter queue": "retries#dead-letters-and-the-dead-letter-queue",
}
"""What an engineer asks for in words of the field, and the section that answers."""
EVERYDAY = {"object", "history"}
"""Words of the core's glossary that pages use as everybody does."""
OF_THE_SERVICE = {"../console/index.html", "api"}


class Parsed(HTMLParser):
    """A page's elements: what it leads to, loads, and can be led to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.attributes: set[str] = set()
        self.inline: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value or "" for name, value in attrs}
        self.attributes |= set(held)
        if "id" in held:
            self.ids.append(held["id"])
        if tag == "a":
            self.links.append(held["href"])
        if tag in ("img", "script", "link"):
            self.loaded.append(held.get("src") or held.get("href", ""))
        if tag == "style" or (tag == "script" and "src" not in held):
            self.inline.append(tag)
        if tag == "img":
            assert "alt" in held


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manual as it is served."""
    folder = tmp_path_factory.mktemp("manual") / "docs"
    maker.build(folder)
    return folder


@pytest.fixture(scope="session")
def parsed(site: Path) -> dict[str, Parsed]:
    return {path.name: Parsed(path.read_text("utf-8")) for path in sorted(site.glob("*.html"))}


def test_every_page_is_there_and_led_to_from_every_other(parsed: dict[str, Parsed]) -> None:
    assert set(parsed) == {f"{path.stem}.html" for path in MANUAL.glob("*.md")}
    for page in parsed.values():
        assert set(parsed) <= set(page.links)


def test_no_link_is_dead(site: Path, parsed: dict[str, Parsed]) -> None:
    for name, page in parsed.items():
        for link in page.links:
            if link in OF_THE_SERVICE or link.startswith("https://"):
                continue
            to, _, anchor = unquote(link).partition("#")
            assert (to or name) in parsed, f"{name}: {link}"
            assert not anchor or anchor in parsed[to or name].ids, f"{name}: {link}"
        for loaded in page.loaded:
            assert (site / loaded).is_file(), f"{name}: {loaded}"


def test_a_strict_policy_for_content_refuses_nothing(parsed: dict[str, Parsed]) -> None:
    for name, page in parsed.items():
        assert page.inline == [], name
        assert not any(each.startswith("on") or each == "style" for each in page.attributes), name
        assert not any(re.match(r"\w+:|//", each) for each in page.loaded), name


def test_scripts_and_styles_ask_no_other_host(site: Path) -> None:
    for path in [*site.glob("*.js"), *site.glob("*.css")]:
        assert not re.search(r"https?://|\beval\(|\.innerHTML", path.read_text("utf-8")), path.name


def test_anchors_are_told_apart(parsed: dict[str, Parsed]) -> None:
    for name, page in parsed.items():
        assert len(page.ids) == len(set(page.ids)), name


def test_the_readme_links_to_existing_files() -> None:
    text = README.read_text("utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
    assert len(text.splitlines()) <= 90


def test_before_every_table_there_is_a_sentence() -> None:
    for path in [README, *MANUAL.glob("*.md")]:
        written = re.sub(r"<!-- made.*?<!-- end -->", "", path.read_text("utf-8"), flags=re.S)
        lines = written.splitlines()
        for number, line in enumerate(lines):
            if re.match(r" *\| *---", line):
                before = next(each for each in reversed(lines[: number - 1]) if each.strip())
                assert before.strip()[-1] in ".:,", f"{path.name}: {before}"
                assert not before.startswith(("#", "|", "```")), f"{path.name}: {before}"


def test_every_column_has_a_name() -> None:
    for path in [README, *MANUAL.glob("*.md")]:
        heads = re.findall(r"^ *\|(.*)\|\n *\| *---", path.read_text("utf-8"), re.M)
        assert not any(not cell.strip() for head in heads for cell in head.split("|")), path.name


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the pages, to be damaged."""
    copy = tmp_path / "infra/manual"
    shutil.copytree(MANUAL, copy)
    shutil.copytree(ROOT / "infra/decisions", tmp_path / "infra/decisions")
    monkeypatch.setattr(maker, "PAGES", copy)
    return copy


def test_dead_links_are_faults(pages: Path, tmp_path: Path) -> None:
    targets = ("gone.md", "queues.md#gone", "#gone", "../gone.py")
    links = " ".join(f"[a]({target})" for target in targets)
    (pages / "faq.md").write_text(f"# Questions\n\n{links} ![a](pictures/gone.svg)\n")
    assert set(_faults(tmp_path)) >= {
        f"faq.md: the link {target} leads nowhere" for target in (*targets, "pictures/gone.svg")
    }


def test_an_unlisted_page_and_a_missing_listed_page_are_faults(pages: Path, tmp_path: Path) -> None:
    (pages / "more.md").write_text("# More\n")
    (pages / "faq.md").unlink()
    found = list(_faults(tmp_path))
    assert "more.md: the page is not in navigation.yaml" in found
    assert "navigation.yaml: there is no page faq.md" in found
    assert not (tmp_path / "docs").exists()


def _faults(folder: Path) -> Iterator[str]:
    with pytest.raises(maker.FAULTS) as caught:
        maker.build(folder / "docs")
    return (str(each) for each in caught.value.exceptions)


def test_html_in_a_page_is_text() -> None:
    html = render("# A\n\n<script>alert(1)</script>\n", {}).html
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_a_file_of_the_repository_is_named_and_no_link() -> None:
    html = render("# A\n\n[`x.py`](../x.py)\n", {"../x.py": None}).html
    assert '<span class="file" title="x.py"><code>x.py</code></span>' in html


def test_the_index_leads_to_existing_sections(site: Path, parsed: dict[str, Parsed]) -> None:
    entries = json.loads((site / "search.json").read_text("utf-8"))
    assert {f"{page}.html" for page, *_ in entries} == set(parsed)
    for page, _, _, anchor, _ in entries:
        assert anchor in parsed[f"{page}.html"].ids


def test_beside_each_page_is_its_markdown_and_a_list_leads_to_each(site: Path) -> None:
    listed = re.findall(r"^- \[.+?\]\((.+?)\): \S", (site / "llms.txt").read_text("utf-8"), re.M)
    assert sorted(listed) == sorted(path.name for path in MANUAL.glob("*.md"))
    for name in listed:
        text = (site / name).read_text("utf-8")
        assert not re.search(r"^```(fields|errors|troubleshooting|parameters)$", text, re.M), name
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path = link.partition("#")[0]
            assert not path.endswith(".html") or link in OF_THE_SERVICE, f"{name}: {link}"
            if path and link not in OF_THE_SERVICE and "://" not in link:
                assert (site / path).is_file(), f"{name}: {link}"


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not on this machine")
def test_the_search_finds_the_section_asked_for(site: Path) -> None:
    program = """
        import { readFileSync } from "node:fs";
        import { look } from "./look.js";
        const entries = JSON.parse(readFileSync("search.json", "utf8"));
        for (const asked of process.argv.slice(1)) {
          const [best] = look(entries, asked);
          console.log(best === undefined ? "nothing" : `${best[0]}#${best[3]}`);
        }
    """
    (site / "package.json").write_text('{"type": "module"}')
    asked = ["visibility timeout", "Lease", "verify signature", "half message", "xyzzy", *FIELD]
    run = subprocess.run(
        ["node", "--input-type=module", "-e", program, *asked],
        cwd=site,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    _, lease, verify, half, nothing, *of_the_field = run.stdout.split()
    assert lease == "concepts#lease"
    assert verify == "push#verify-the-signature"
    assert half != "nothing"
    assert nothing == "nothing"
    assert dict(zip(FIELD, of_the_field, strict=True)) == FIELD


def test_made_parts_are_written_into_the_pages() -> None:
    stale = [
        path.name
        for path in MANUAL.glob("*.md")
        if with_marked_tables(path.read_text("utf-8")) != path.read_text("utf-8")
    ]

    assert stale == [], "run: python -m infra.manual --write"


def test_a_stale_part_is_seen() -> None:
    text = "# A\n\n<!-- made: fields TopicInput -->\n\nof before\n\n<!-- end -->\n\nend\n"

    made = with_marked_tables(text)

    assert "of before" not in made
    assert "| `partitions` |" in made
    assert made.endswith("<!-- end -->\n\nend\n")
    assert with_marked_tables(made) == made
    assert "<!--" not in with_tables(made)


def test_words_of_the_core_used_on_pages_are_in_the_manuals_glossary() -> None:
    lines = [line[4:] for line in str(cirrusmq.__doc__).splitlines() if line.startswith("    ")]
    words = {line.partition("  ")[0].lower() for line in lines}
    glossary = (MANUAL / "glossary.md").read_text("utf-8").lower()
    pages = " ".join(
        path.read_text("utf-8").lower()
        for path in MANUAL.glob("*.md")
        if path.stem not in ("glossary", "troubleshooting")
    )
    used = {word for word in words if re.search(rf"\b{word}s?\b", pages)}
    missing = {word for word in used if not re.search(rf"\b{word}s?\b", glossary)}
    assert "parcel" in used
    assert missing == EVERYDAY
