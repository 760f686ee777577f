"""The manual's pages and the README as the tests read them: their blocks, commands and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
MANUAL = ROOT / "infra/manual"
README = ROOT / "README.md"
PAGES = [README, *sorted(MANUAL.glob("*.md"))]
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)
_INLINE = re.compile(r"`(cirrusmq [^`]+)`")


def languages(page: Path) -> list[str]:
    """The languages of a page's blocks, in order."""
    return [language for _, language, _ in _BLOCK.findall(page.read_text("utf-8"))]


@dataclass(frozen=True)
class Command:
    """A line behind `$`, and the lines that a page shows of its output."""

    line: str
    shown: tuple[str, ...]


def blocks(page: Path, *wanted: str) -> Iterator[str]:
    """The contents of a page's blocks of these languages."""
    for _, language, content in _BLOCK.findall(page.read_text("utf-8")):
        if language in wanted:
            yield content


def commands(page: Path) -> list[Command]:
    """What a page's `console` blocks say to type, in order."""
    found: list[Command] = []
    for block in blocks(page, "console"):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Command(line.removeprefix("$ "), ()))
            else:
                found[-1] = Command(found[-1].line, (*found[-1].shown, line))
    return found


def scripts(page: Path) -> Iterator[str]:
    """The lines of a page's `sh` blocks, those that go on joined."""
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            if line.strip():
                yield line.strip()


def mentioned(page: Path) -> Iterator[str]:
    """Commands of `cirrusmq` in a page's blocks, and within its sentences."""
    text = _BLOCK.sub("", page.read_text("utf-8"))
    yield from (" ".join(each.split()) for each in _INLINE.findall(text))
    lines = [*(command.line for command in commands(page)), *scripts(page)]
    yield from (line for line in lines if line.startswith("cirrusmq "))
