"""The note of a request: a message that asks for a reply until a deadline, in its parcel.

    Y    `<deadline, ms> <account that asks> <id of the queue that it asks>`

It is among the parcel's `others`, which every move takes along. The life of the message ends at
the deadline wherever it is, also as a dead letter, so that nobody receives it after its sender has
given up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

ASKS = "Y"


class ReplyNote(msgspec.Struct, frozen=True, kw_only=True):
    """The account that waits for the reply, and its deadline."""

    asker: str
    """The account that sent the request."""
    queue_id: str
    """The queue to which it was sent."""
    due_ms: int
    """The deadline: no reply is taken from then on."""


def note_attribute(note: ReplyNote) -> Mapping[str, Any]:
    """Returns the attribute for a parcel's `others`."""
    return {ASKS: {"S": f"{note.due_ms} {note.asker} {note.queue_id}"}}


def reply_note(others: Mapping[str, Any]) -> ReplyNote | None:
    """Returns the note among a parcel's `others`, or None if its message asks for no reply."""
    if ASKS not in others:
        return None
    due_ms, asker, queue_id = others[ASKS]["S"].split(" ")
    return ReplyNote(asker=asker, queue_id=queue_id, due_ms=int(due_ms))


def life_end_ms(others: Mapping[str, Any], now_ms: int, expires_ms: int) -> int:
    """Returns when a message's life ends: at `expires_ms`, or at the deadline if that is earlier.

    It is not before now: a move by an earlier release gave a request a longer life.
    """
    note = reply_note(others)
    return expires_ms if note is None else min(expires_ms, max(now_ms, note.due_ms))
