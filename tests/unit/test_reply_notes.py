"""The note of a request in its parcel, and the end of its message's life."""

from __future__ import annotations

import pytest

from cirrusmq.model.reply_note import ReplyNote, life_end_ms, note_attribute, reply_note

NOTE = ReplyNote(asker="alice", queue_id="q1", due_ms=5_000)


def test_a_note_is_read_as_it_was_written() -> None:
    assert reply_note(note_attribute(NOTE)) == NOTE
    assert reply_note({"N": {"S": "x"}}) is None


@pytest.mark.parametrize(
    ("now_ms", "expires_ms", "ends_ms"),
    [(1_000, 9_000, 5_000), (1_000, 4_000, 4_000), (5_000, 9_000, 5_000), (6_000, 9_000, 6_000)],
)
def test_a_life_ends_at_the_deadline_and_not_before_now(
    now_ms: int, expires_ms: int, ends_ms: int
) -> None:
    assert life_end_ms(note_attribute(NOTE), now_ms, expires_ms) == ends_ms
    assert life_end_ms({}, now_ms, expires_ms) == expires_ms
