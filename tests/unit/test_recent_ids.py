"""The memory of recent ids: each is in it until it is discarded or 20,000 others were added."""

from __future__ import annotations

from cirrusmq.runtime.recent_ids import Recent


def test_an_added_id_is_remembered_and_nothing_else() -> None:
    recent = Recent()
    assert "a" not in recent
    recent.add("a")
    assert "a" in recent
    assert "b" not in recent


def test_the_oldest_is_forgotten_when_20_000_newer_ones_were_added() -> None:
    recent = Recent()
    for number in range(20_000):
        recent.add(str(number))
    assert "0" in recent
    recent.add("one more")
    assert "0" not in recent
    assert "1" in recent
    assert "one more" in recent


def test_adding_an_id_again_forgets_nothing() -> None:
    recent = Recent()
    for number in range(20_000):
        recent.add(str(number))
    recent.add("19999")
    assert "0" in recent


def test_a_discarded_id_is_forgotten_alone() -> None:
    recent = Recent()
    recent.add("a")
    recent.add("b")
    recent.discard("a")
    recent.discard("never added")
    assert "a" not in recent
    assert "b" in recent
