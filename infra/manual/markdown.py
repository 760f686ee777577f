"""A page's Markdown as HTML, with what the site needs of it: title, sections and links.

CommonMark and tables; HTML in a page is text. The HTML has neither styles nor scripts of its own,
so that a browser may be told to refuse them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

CALCULATOR = "calculator"
"""The language of a block in which a script puts the calculator of costs."""
_FORMATTER = HtmlFormatter(nowrap=True)


@dataclass
class Section:
    """A heading, and the text below it up to the next one."""

    title: str
    anchor: str
    level: int
    text: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Page:
    """A page as the site shows it; `links` are its targets as they are written."""

    html: str
    sections: Sequence[Section]
    links: Sequence[str]
    scripts: Sequence[str]

    @property
    def title(self) -> str:
        """The page's first heading."""
        return self.sections[0].title

    @property
    def anchors(self) -> set[str]:
        """What a link to the page may name behind `#`."""
        return {section.anchor for section in self.sections}


def render(text: str, placed: dict[str, str | None]) -> Page:
    """The page; `placed` has the targets that are another on the site, None: no link there."""
    markdown = MarkdownIt("commonmark", {"html": False, "highlight": _highlighted}).enable("table")
    tokens = markdown.parse(text)
    sections = _sections(tokens)
    links: list[str] = []
    for token in tokens:
        _class_for_style(token)
        links += _place(token, placed)
    html = markdown.renderer.render(tokens, markdown.options, {})
    # A table may be wider than a phone: it is scrolled by itself, also by the keyboard.
    html = html.replace("<table>", '<div class="wide" tabindex="0"><table>')
    html = html.replace("</table>", "</table></div>").replace("<pre>", '<pre tabindex="0">')
    scripts = [f"{CALCULATOR}.js"] if f'class="language-{CALCULATOR}"' in html else []
    html = re.sub(
        rf'<pre[^>]*><code class="language-{CALCULATOR}">.*?</code></pre>',
        f'<div id="{CALCULATOR}"></div>',
        html,
        flags=re.DOTALL,
    )
    return Page(html, sections, links, scripts)


def slug(title: str) -> str:
    """The anchor of a heading: `A message's life, in units` is `a-messages-life-in-units`."""
    return re.sub(r"[^\w]+", "-", re.sub("['`]", "", title.lower())).strip("-")


def _highlighted(code: str, language: str, _: str) -> str:
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, _FORMATTER))


def _sections(tokens: Sequence[Token]) -> list[Section]:
    """The sections of a page, whose headings get their anchors here."""
    sections: list[Section] = []
    for heading, token in zip((None, *tokens), tokens, strict=False):
        if heading is not None and heading.type == "heading_open":
            title = _text(token)
            anchor, taken = slug(title), {section.anchor for section in sections}
            heading.attrSet("id", anchor if anchor not in taken else f"{anchor}-{len(sections)}")
            sections.append(Section(title, str(heading.attrs["id"]), int(heading.tag[1])))
        elif sections and token.type in ("inline", "fence", "code_block"):
            sections[-1].text.append(_text(token))
    return sections


def _text(token: Token) -> str:
    if token.children is None:
        return token.content
    return "".join(
        " " if child.type in ("softbreak", "hardbreak") else child.content
        for child in token.children
    )


def _class_for_style(token: Token) -> None:
    style = token.attrs.pop("style", None)
    if style is not None:
        token.attrSet("class", str(style).removeprefix("text-align:"))


def _place(token: Token, placed: dict[str, str | None]) -> list[str]:
    """Put the site's targets into links and pictures; the targets as they were."""
    found: list[str] = []
    opened: list[str] = []
    for child in token.children or ():
        if child.type == "link_close":
            child.tag = opened.pop()
        name = {"link_open": "href", "image": "src"}.get(child.type)
        if name is None:
            continue
        target = str(child.attrs[name])
        found.append(target)
        put = placed.get(target, target)
        if put is None:
            # A file of the repository is not on the site: its name is shown without a link.
            child.attrs, child.tag = {"class": "file", "title": target.lstrip("./")}, "span"
        else:
            child.attrSet(name, put)
        if child.type == "link_open":
            opened.append(child.tag)
    return found
