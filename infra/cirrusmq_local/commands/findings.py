"""Findings of `cirrusmq doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """One line of the output. `note`: something is missing and not needed yet."""

    state: Literal["ok", "note", "wrong"]
    about: str
    text: str
    """The text, with a fix if the finding is not ok."""


def ok(about: str, text: str) -> Finding:
    """All is well."""
    return Finding("ok", about, text)


def note(about: str, text: str) -> Finding:
    """Return a finding about something that may be needed later."""
    return Finding("note", about, text)


def wrong(about: str, text: str) -> Finding:
    """Return a finding about a problem that needs a fix."""
    return Finding("wrong", about, text)
