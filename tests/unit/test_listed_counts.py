"""The columns of a listing of queues with their counts."""

from __future__ import annotations

from cirrusmq_local.commands.backlogs import counted_columns


def test_approximate_counts_are_marked_in_a_listing() -> None:
    exact = {"name": "a", "active": 1}
    late = {"name": "b", "active": 9_743, "approximate": True}

    assert "approximate" not in counted_columns([exact])
    assert counted_columns([exact, late])[-1] == "approximate"
