"""What an environment remembers of a partition's head: it hides nothing that can be received."""

from __future__ import annotations

from cirrusmq.hints import LONGEST_MS, Hints

PK = "Q#queue#0"


def learned(hints: Hints, *, units: float = 0.5, ready_ms: int = 60_000, before: str = "5") -> None:
    _, mark = hints.start(PK, 0)
    hints.skip(PK, mark, before, units, ready_ms, 0)


def test_without_a_hint_reading_begins_at_the_beginning() -> None:
    assert Hints().start(PK, 0)[0] == ""


def test_a_hint_holds_for_a_second() -> None:
    hints = Hints()
    learned(hints)

    assert hints.start(PK, 999)[0] == "5"
    assert hints.start(PK, 1_000)[0] == ""


def test_it_ends_with_the_first_lease_of_a_short_stretch() -> None:
    hints = Hints()
    learned(hints, ready_ms=300)

    assert hints.start(PK, 299)[0] == "5"
    assert hints.start(PK, 300)[0] == ""


def test_a_dear_stretch_is_read_again_at_20_units_a_second_at_most() -> None:
    hints = Hints()
    learned(hints, units=200, ready_ms=300)

    assert hints.start(PK, 9_999)[0] == "5"
    assert hints.start(PK, 10_000)[0] == ""


def test_no_hint_holds_for_ever() -> None:
    hints = Hints()
    learned(hints, units=1e9)

    assert hints.start(PK, LONGEST_MS)[0] == ""


def test_while_one_reads_from_the_beginning_the_others_do_not() -> None:
    hints = Hints()
    learned(hints)

    assert hints.start(PK, 1_000)[0] == ""
    assert hints.start(PK, 1_001)[0] == "5"


def test_what_becomes_active_in_front_of_it_ends_it() -> None:
    hints = Hints()
    learned(hints)

    hints.forget(PK, "3")

    assert hints.start(PK, 1)[0] < "3"


def test_what_becomes_active_behind_it_leaves_it() -> None:
    hints = Hints()
    learned(hints)

    hints.forget(PK, "7")

    assert hints.start(PK, 1)[0] == "5"


def test_a_change_during_the_reading_is_not_hidden_by_its_result() -> None:
    hints = Hints()
    _, mark = hints.start(PK, 0)
    hints.forget(PK, "3")  # after the page was read, before the hint is written

    hints.skip(PK, mark, "5", 0.5, 60_000, 0)

    assert hints.start(PK, 1)[0] == ""


def test_more_changes_than_are_kept_count_as_changes_everywhere() -> None:
    hints = Hints()
    _, mark = hints.start(PK, 0)
    hints.forget(PK, "3")
    for _ in range(1_000):
        hints.forget(PK, "9")

    hints.skip(PK, mark, "5", 0.5, 60_000, 0)

    assert hints.start(PK, 1)[0] == ""


def test_a_hint_is_extended_but_never_past_a_change() -> None:
    hints = Hints()
    learned(hints)
    _, mark = hints.start(PK, 1)
    hints.extend(PK, mark, "7")
    assert hints.start(PK, 2)[0] == "7"
    hints.forget(PK, "8")

    hints.extend(PK, mark, "9")

    assert hints.start(PK, 3)[0] == "7"


def test_partitions_have_hints_of_their_own() -> None:
    hints = Hints()
    learned(hints)

    assert hints.start("Q#queue#1", 1)[0] == ""


def test_a_claim_that_failed_makes_claims_be_spread_for_a_second() -> None:
    hints = Hints()
    assert not hints.contended(PK, 0)

    hints.contend(PK, 5_000)

    assert hints.contended(PK, 5_999)
    assert not hints.contended(PK, 6_000)
    assert not hints.contended("Q#queue#1", 5_999)


def test_a_stretch_of_one_unit_is_read_again_as_soon_as_its_first_lease_ends() -> None:
    hints = Hints()
    learned(hints, units=1.0, ready_ms=7)
    assert hints.start(PK, 6)[0] == "5"
    assert hints.start(PK, 7)[0] == ""

    dearer = Hints()
    learned(dearer, units=1.1, ready_ms=7)
    assert dearer.start(PK, 54)[0] == "5"
    assert dearer.start(PK, 55)[0] == ""


def test_a_lease_that_has_ended_leaves_no_hint_for_a_cheap_stretch() -> None:
    hints = Hints()
    _, mark = hints.start(PK, 1_000)
    hints.skip(PK, mark, "5", 0.5, 1_000, 1_000)

    assert hints.start(PK, 1_000)[0] == ""


def test_a_hint_lasts_from_when_it_was_learned_to_its_first_lease() -> None:
    hints = Hints()
    _, mark = hints.start(PK, 50_000)
    hints.skip(PK, mark, "5", 0.5, 50_200, 50_000)

    assert hints.start(PK, 50_199)[0] == "5"
    assert hints.start(PK, 50_200)[0] == ""


def test_a_hint_is_not_shortened_by_what_reaches_less_far() -> None:
    hints = Hints()
    learned(hints, before="7")
    _, mark = hints.start(PK, 1)
    hints.extend(PK, mark, "5")

    assert hints.start(PK, 2)[0] == "7"


def test_what_becomes_active_at_the_very_key_of_a_hint_is_not_hidden() -> None:
    hints = Hints()
    learned(hints, before="35")

    hints.forget(PK, "35")

    assert hints.start(PK, 1)[0] == "3"


def test_a_change_at_the_very_key_keeps_a_hint_from_being_set() -> None:
    hints = Hints()
    _, mark = hints.start(PK, 0)
    hints.forget(PK, "5")
    hints.skip(PK, mark, "5", 0.5, 60_000, 0)

    assert hints.start(PK, 1)[0] == ""


def test_only_changes_since_the_mark_count() -> None:
    hints = Hints()
    hints.forget(PK, "3")
    _, mark = hints.start(PK, 0)
    hints.skip(PK, mark, "5", 0.5, 60_000, 0)
    assert hints.start(PK, 1)[0] == "5"

    hints.forget(PK, "7")
    hints.extend(PK, mark, "6")
    assert hints.start(PK, 1)[0] == "6"
