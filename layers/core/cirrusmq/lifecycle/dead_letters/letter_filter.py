"""Choosing dead letters by the notes of their sources."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cirrusmq.base import limits
from cirrusmq.base.shapes import integer
from cirrusmq.model.parcel import Parcel

_Name = Annotated[
    str, Meta(min_length=1, max_length=64, description="a name of 1 to 64 characters")
]
_AGE = (0, limits.RETENTION_SECONDS[1])


class DeadLetterFilter(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Conditions on a dead letter's note; a message without a note is not a dead letter.

    Ages are of the move into the dead-letter queue, at the time of the call.
    """

    reason: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=limits.REASON_CHARACTERS,
                description=f"a text of 1 to {limits.REASON_CHARACTERS} characters",
            ),
        ]
        | UnsetType
    ) = UNSET
    source_queue: _Name | UnsetType = UNSET
    """A queue, or the topic of a subscription."""
    receiver: _Name | UnsetType = UNSET
    subscription: _Name | UnsetType = UNSET
    older_than_seconds: Annotated[int, integer(_AGE, " seconds")] | UnsetType = UNSET
    younger_than_seconds: Annotated[int, integer(_AGE, " seconds")] | UnsetType = UNSET

    def selects(self, parcel: Parcel, at_ms: int) -> bool:
        """Returns True if a parcel's messages are such dead letters, by their ages at `at_ms`."""
        note = parcel.dead_letter
        if not note:
            return False
        for name in ("reason", "source_queue", "receiver", "subscription"):
            wanted = getattr(self, name)
            if wanted is not UNSET and note.get(name) != wanted:
                return False
        age_ms = at_ms - int(note["dead_at"])
        older, younger = self.older_than_seconds, self.younger_than_seconds
        if not isinstance(older, UnsetType) and age_ms < older * 1000:
            return False
        return isinstance(younger, UnsetType) or age_ms < younger * 1000

    def from_key(self, at_ms: int) -> str:
        """Returns a key before all such dead letters in an unordered queue: keys only grow."""
        if isinstance(self.younger_than_seconds, UnsetType):
            return ""
        return f"{max(0, at_ms - self.younger_than_seconds * 1000):013d}"

    def to_json(self) -> dict[str, Any]:
        """Returns the conditions that were given."""
        given: dict[str, Any] = msgspec.to_builtins(self)
        return given
