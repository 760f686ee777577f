"""An environment's hints of the heads of partitions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.parcels import parcel

from cirrusmq.base.limits import MOVES_PER_SECOND
from cirrusmq.model.head_mark import Mark
from cirrusmq.model.parcel import DELETED, Parcel
from cirrusmq.runtime.head_hints import Hints, KnownMark

PK, OTHER = "Q#queue#0", "Q#queue#1"


def numbered(*numbers: int) -> list[Parcel]:
    return [replace(parcel(1), sort_key=f"{number}") for number in numbers]


def test_a_claim_that_failed_makes_claims_be_spread_for_a_second() -> None:
    hints = Hints()
    assert not hints.contended(PK, 0)

    hints.contend(PK, 5_000)

    assert hints.contended(PK, 5_999)
    assert not hints.contended(PK, 6_000)
    assert not hints.contended(OTHER, 5_999)


def test_a_head_is_clear_until_a_look_has_something_to_pass() -> None:
    hints = Hints()
    assert not hints.clear(PK, 0)

    hints.note_first(PK, clear=True)

    assert hints.clear(PK, 0)
    assert not hints.clear(OTHER, 0)

    hints.note_first(PK, clear=False)

    assert not hints.clear(PK, 0)


def test_a_head_is_not_clear_while_others_take_from_it() -> None:
    hints = Hints()
    hints.note_first(PK, clear=True)
    hints.contend(PK, 5_000)
    assert not hints.clear(PK, 5_999)
    assert hints.clear(PK, 6_000)


def test_a_partition_is_crowded_until_its_mark_is_gone() -> None:
    hints = Hints()
    hints.crowd(PK, 0)
    assert hints.crowded(PK, 59_999)
    assert not hints.crowded(PK, 60_000)
    assert not hints.crowded(OTHER, 0)

    assert hints.know(PK, KnownMark(Mark(), 0, 0.0)).mark == Mark()
    assert hints.crowded(PK, 0)

    hints.know(PK, KnownMark(None, 0, 0.0))

    assert not hints.crowded(PK, 0)


def test_the_copy_of_a_mark_is_kept_for_its_partition() -> None:
    hints = Hints()
    assert hints.known_mark(PK) is None
    for known in (KnownMark(Mark(before="5"), 1_000, 0.25), KnownMark(None, 2_000, 0.5)):
        assert hints.know(PK, known) == known
        assert hints.known_mark(PK) == known
    assert hints.known_mark(OTHER) is None


def test_what_was_seen_is_passed_over_for_a_moment() -> None:
    hints = Hints()
    hints.see(PK, "3", "5", 1_000, 300)

    assert hints.seen(PK, "3", 1_299) == "5"
    assert hints.seen(PK, "4", 1_299) == "5"
    assert hints.seen(PK, "6", 1_299) == "6"
    assert hints.seen(PK, "2", 1_299) == "2"
    assert hints.seen(PK, "3", 1_300) == "3"


def test_a_look_that_goes_on_does_not_make_what_was_seen_before_any_younger() -> None:
    hints = Hints()
    hints.see(PK, "3", "5", 1_000, 300)
    hints.see(PK, "3", "7", 1_200, 300)

    assert hints.seen(PK, "3", 1_299) == "7"
    assert hints.seen(PK, "3", 1_300) == "3"


def test_a_look_from_the_end_of_an_earlier_one_goes_on_from_there() -> None:
    hints = Hints()
    hints.see(PK, "3", "5", 1_000, 300)
    hints.see(PK, "5", "7", 1_299, 300)

    assert hints.seen(PK, "5", 1_299) == "7"
    assert hints.seen(PK, "5", 1_300) == "5"


def test_a_look_that_ends_earlier_hides_no_less_than_the_one_before() -> None:
    hints = Hints()
    hints.see(PK, "3", "7", 1_000, 300)
    hints.see(PK, "3", "5", 1_100, 300)

    assert hints.seen(PK, "3", 1_299) == "7"


@pytest.mark.parametrize(
    ("start", "end", "now_ms"),
    [("2", "4", 1_100), ("6", "8", 1_100), ("3", "4", 1_300)],
    ids=["from further in front", "behind a gap", "when the earlier one is over"],
)
def test_a_look_that_does_not_go_on_counts_for_itself(start: str, end: str, now_ms: int) -> None:
    hints = Hints()
    hints.see(PK, "3", "5", 1_000, 300)
    hints.see(PK, start, end, now_ms, 300)

    assert hints.seen(PK, start, now_ms + 299) == end
    assert hints.seen(PK, start, now_ms + 300) == start


def test_so_many_give_backs_of_a_second_may_move() -> None:
    hints = Hints()
    assert sum(hints.may_move(PK, 1_000) for _ in range(100)) == MOVES_PER_SECOND
    assert sum(hints.may_move(PK, 1_500) for _ in range(100)) == MOVES_PER_SECOND // 2
    assert sum(hints.may_move(PK, 60_000) for _ in range(100)) == MOVES_PER_SECOND
    assert hints.may_move(OTHER, 60_000)


def test_chores_are_taken_a_few_at_a_time_and_once() -> None:
    hints = Hints()
    hints.remember_chores(PK, numbered(1, 2, 3))
    hints.remember_chores(PK, numbered(2, 3, 4))

    assert [each.sort_key for each in hints.take_chores(PK, 3, 0)] == ["1", "2", "3"]
    assert hints.take_chores(OTHER, 3, 0) == []
    assert [each.sort_key for each in hints.take_chores(PK, 3, 0)] == ["4"]


def test_a_parcel_counts_with_its_messages_and_an_empty_one_as_one() -> None:
    full = replace(parcel(3), sort_key="1")
    spent = replace(parcel(16, visible_ms=(DELETED,) * 16), sort_key="2")
    rest = numbered(3, 4)
    hints = Hints()
    hints.remember_chores(PK, [full, spent, *rest])

    assert hints.take_chores(PK, 5, 0) == [full, spent, rest[0]]
    assert hints.take_chores(PK, 5, 0) == [rest[1]]


def test_chores_rest_for_a_while_when_the_store_refused_one() -> None:
    hints = Hints()
    hints.remember_chores(PK, numbered(1))
    hints.pause_chores(PK, 1_000)

    assert hints.take_chores(PK, 1, 5_999) == []
    assert len(hints.take_chores(PK, 1, 6_000)) == 1


def test_chores_without_end_are_not_all_remembered() -> None:
    hints = Hints()
    hints.remember_chores(PK, numbered(*range(10_000)))

    assert len(hints.take_chores(PK, 10_000, 0)) == 4_000
    hints.remember_chores(OTHER, numbered(1))
    assert len(hints.take_chores(OTHER, 1, 0)) == 1


def test_ages_are_looked_at_once_a_second_and_not_after_a_refusal() -> None:
    hints = Hints()
    assert hints.may_look_at_ages(PK, 5_000)
    assert not hints.may_look_at_ages(PK, 5_999)
    assert hints.may_look_at_ages(OTHER, 5_999)
    assert hints.may_look_at_ages(PK, 6_000)

    hints.pause_chores(PK, 6_500)

    assert not hints.may_look_at_ages(PK, 11_499)
    assert hints.may_look_at_ages(PK, 11_500)


def test_a_fair_partition_remembers_its_last_turn_and_how_much_may_be_read_at_once() -> None:
    hints = Hints()
    few = hints.at_once(PK)
    assert (hints.turn(PK), few > 0) == ("", True)

    hints.take_turn(PK, "3f#")
    hints.read_at_once(PK, 0)

    assert (hints.turn(PK), hints.at_once(PK)) == ("3f#", 0)
    assert (hints.turn(OTHER), hints.at_once(OTHER)) == ("", few)
