"""Answers to calls that speak of messages by receipt."""

from __future__ import annotations

from typing import Any

from cirrusmq.base.errors import CirrusMQError
from cirrusmq.base.timestamps import format_time
from cirrusmq.settlement.settle import Fate


def failures(fates: Fate) -> list[dict[str, Any]]:
    """The entries of `failed`."""
    return [
        {"receipt": text, "code": fate.code, "detail": fate.detail}
        for text, fate in fates.items()
        if isinstance(fate, CirrusMQError)
    ]


def done(fates: Fate) -> dict[str, Any]:
    """The answer where success says nothing but that."""
    deleted = [text for text, fate in fates.items() if not isinstance(fate, CirrusMQError)]
    return {"deleted": deleted, "failed": failures(fates)}


def visible(name: str, fates: Fate) -> dict[str, Any]:
    """The answer where success says when each message is visible."""
    changed = [
        {"receipt": text, "visible_at": format_time(fate)}
        for text, fate in fates.items()
        if not isinstance(fate, CirrusMQError)
    ]
    return {name: changed, "failed": failures(fates)}
