"""Counts with their nouns, for what the command line prints."""

from __future__ import annotations


def counted(count: float, noun: str) -> str:
    """Returns `1 message`, `2 messages`, `1,200 messages`. noun: in the singular."""
    number = f"{count:,}" if isinstance(count, int) else f"{count:g}"
    return f"{number} {noun}{'' if count == 1 else 's'}"
