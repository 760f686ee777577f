"""What `cirrusmq doctor` found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """One line: `note` is of what is missing and not needed yet."""

    state: Literal["ok", "note", "wrong"]
    about: str
    text: str
    """With what to do, where it is not ok."""


def ok(about: str, text: str) -> Finding:
    """All is well."""
    return Finding("ok", about, text)


def note(about: str, text: str) -> Finding:
    """Nothing is wrong, but something may be wanted."""
    return Finding("note", about, text)


def wrong(about: str, text: str) -> Finding:
    """This has to be mended."""
    return Finding("wrong", about, text)
