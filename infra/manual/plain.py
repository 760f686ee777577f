"""The pages for programs that read: the Markdown of each, and the list of them, `llms.txt`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .markdown import Page

_LINK = re.compile(r"(?P<mark>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_HEAD = """\
# CirrusMQ

> A message queue and topic service on AWS Lambda and DynamoDB, in an account of your own or on
> one machine. Programs reach it by HTTP and JSON, by libraries for Python and TypeScript, or by
> the SDKs of SQS, CMQ and RocketMQ.

Each page below is Markdown. The contract of all calls is /openapi.json.
"""


def plain_page(text: str, placed: Callable[[str], str | None]) -> str:
    """A page's Markdown as it lies on the site: links lead to Markdown, or are text.

    placed: where a target lies on the site, None for a file that the site has not.
    """

    def link(found: re.Match[str]) -> str:
        to = placed(found["target"])
        if to is None:
            return found["text"]
        to = re.sub(r"^([\w-]+)\.html(?=#|$)", r"\1.md", to)
        return f"{found['mark']}[{found['text']}]({to})"

    return _LINK.sub(link, text)


def listing(navigation: Sequence[Mapping[str, Any]], pages: Mapping[str, Page]) -> str:
    """The pages in their order, each with its first sentence."""
    lines = [_HEAD]
    for section in navigation:
        lines.append(f"## {section['title']}\n")
        for name in section["pages"]:
            lines.append(f"- [{pages[name].title}]({name}.md): {_first_sentence(pages[name])}")
        lines.append("")
    return "\n".join(lines)


def _first_sentence(page: Page) -> str:
    text = " ".join(" ".join(page.sections[0].text[:1]).split())
    return re.split(r"(?<=[.?:]) ", text)[0]
