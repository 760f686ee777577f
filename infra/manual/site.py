"""The site: every page in the order of `navigation.yaml`, the search's index, style and scripts.

Beside each page there is its Markdown, with its tables, and `llms.txt` lists these for programs
that read (https://llmstxt.org).
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .made import with_tables
from .markdown import Page, render
from .plain import listing, plain_page

PAGES = Path(__file__).parent
ROOT = PAGES.parents[1]
FAULTS = ExceptionGroup
"""What `build` raises: a LookupError for each fault of the pages."""
ABOVE = {"../console/index.html", "api"}
"""What the same server has beside the manual: the console, and the page to try the API."""
CHARTS = ROOT / "infra/bench/charts"


def build(folder: Path) -> None:
    """Make `folder` the site, in the place of what it was; FAULTS: nothing was written."""
    navigation = _navigation()
    listed, written = list(_names(navigation)), {path.stem for path in PAGES.glob("*.md")}
    pages = {name: _read(name) for name in listed if name in written}
    faults = [*_out_of_place(listed, written), *chain.from_iterable(_dead_links(pages))]
    if faults:
        raise FAULTS("the manual cannot be built", faults)
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    template = Environment(
        loader=FileSystemLoader(PAGES / "theme"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template("page.html")
    titles = {name: page.title for name, page in pages.items()}
    ordered = list(pages)
    for place, name in enumerate(ordered):
        html = template.render(
            page=pages[name],
            name=name,
            content=Markup(pages[name].html),
            navigation=navigation,
            titles=titles,
            before=ordered[place - 1] if place else None,
            after=ordered[place + 1] if place + 1 < len(ordered) else None,
        )
        (new / f"{name}.html").write_text(html, encoding="utf-8")
        (new / f"{name}.md").write_text(plain_page(_text(name), _placed), encoding="utf-8")
    (new / "search.json").write_text(_index(pages), encoding="utf-8")
    (new / "llms.txt").write_text(listing(navigation, pages), encoding="utf-8")
    shutil.copytree(CHARTS, new / "charts")
    theme = [path for path in (PAGES / "theme").iterdir() if path.suffix in (".css", ".js")]
    for path in (
        *(PAGES / "pictures").glob("*.svg"),
        *theme,
        PAGES / "costs.json",
        PAGES / "certificate.json",
    ):
        shutil.copy(path, new)
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)


def _navigation() -> list[dict[str, Any]]:
    """Sections with their pages."""
    read: list[dict[str, Any]] = yaml.safe_load((PAGES / "navigation.yaml").read_text("utf-8"))
    return read


def _names(navigation: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    return chain.from_iterable(section["pages"] for section in navigation)


def _text(name: str) -> str:
    """A page's Markdown with its tables."""
    return with_tables((PAGES / f"{name}.md").read_text("utf-8"))


def _read(name: str) -> Page:
    text = _text(name)
    return render(
        text, {target: _placed(target) for target in re.findall(r"\]\(([^)\s]+)\)", text)}
    )


def _placed(target: str) -> str | None:
    """Where a link of a page leads on the site; None: to a file that the site has not."""
    path, _, anchor = target.partition("#")
    if not path or target in ABOVE or ":" in path:
        return target
    if path.endswith(".md") and "/" not in path:
        return f"{path.removesuffix('.md')}.html" + (f"#{anchor}" if anchor else "")
    if not path.endswith(".svg"):
        return None
    return "/".join(path.split("/")[-2:]).removeprefix("pictures/")


def _out_of_place(listed: Sequence[str], written: Set[str]) -> Iterator[LookupError]:
    for name in sorted(written - set(listed)):
        yield LookupError(f"{name}.md: the page is not in navigation.yaml")
    for name in sorted(set(listed) - written):
        yield LookupError(f"navigation.yaml: there is no page {name}.md")


def _dead_links(pages: Mapping[str, Page]) -> Iterator[Iterator[LookupError]]:
    for name, page in pages.items():
        yield (
            LookupError(f"{name}.md: the link {target} leads nowhere")
            for target in page.links
            if not _leads_somewhere(target, name, pages)
        )


def _leads_somewhere(target: str, name: str, pages: Mapping[str, Page]) -> bool:
    path, _, anchor = target.partition("#")
    if target in ABOVE or re.match(r"https?://", target):
        return True
    to = path.removesuffix(".md") if path else name
    if to in pages:
        return not anchor or anchor in pages[to].anchors
    return not anchor and path != "" and (PAGES / path).exists()


def _index(pages: Mapping[str, Page]) -> str:
    """Entries of the search: page, title, heading, anchor and text of each section."""
    found = [
        [name, page.title, section.title, section.anchor, " ".join(" ".join(section.text).split())]
        for name, page in pages.items()
        for section in page.sections
    ]
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
