"""What an environment remembers of the heads of partitions, of turns, chores and moves."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.parcels import parcel

from cirrusmq.base.limits import MOVES_PER_SECOND
from cirrusmq.model.head_mark import Mark
from cirrusmq.model.parcel import DELETED, Parcel
from cirrusmq.receiving.chore_memory import ChoreMemory
from cirrusmq.receiving.head_memory import HeadMemory, KnownMark
from cirrusmq.receiving.turn_memory import TurnMemory
from cirrusmq.settlement.move_memory import MoveMemory

PK, OTHER = "Q#queue#0", "Q#queue#1"


def numbered(*numbers: int) -> list[Parcel]:
    return [replace(parcel(1), sort_key=f"{number}") for number in numbers]


def test_a_claim_that_failed_makes_claims_be_spread_for_a_second() -> None:
    heads = HeadMemory()
    assert not heads.contended(PK, 0)

    heads.contend(PK, 5_000)

    assert heads.contended(PK, 5_999)
    assert not heads.contended(PK, 6_000)
    assert not heads.contended(OTHER, 5_999)


def test_a_head_is_clear_until_a_look_has_something_to_pass() -> None:
    heads = HeadMemory()
    assert not heads.clear(PK, 0)

    heads.note_first(PK, clear=True)

    assert heads.clear(PK, 0)
    assert not heads.clear(OTHER, 0)

    heads.note_first(PK, clear=False)

    assert not heads.clear(PK, 0)


def test_a_head_is_not_clear_while_others_take_from_it() -> None:
    heads = HeadMemory()
    heads.note_first(PK, clear=True)
    heads.contend(PK, 5_000)
    assert not heads.clear(PK, 5_999)
    assert heads.clear(PK, 6_000)


def test_a_partition_is_crowded_until_its_mark_is_gone() -> None:
    heads = HeadMemory()
    heads.crowd(PK, 0)
    assert heads.crowded(PK, 59_999)
    assert not heads.crowded(PK, 60_000)
    assert not heads.crowded(OTHER, 0)

    assert heads.know(PK, KnownMark(Mark(), 0, 0.0)).mark == Mark()
    assert heads.crowded(PK, 0)

    heads.know(PK, KnownMark(None, 0, 0.0))

    assert not heads.crowded(PK, 0)


def test_the_copy_of_a_mark_is_kept_for_its_partition() -> None:
    heads = HeadMemory()
    assert heads.known_mark(PK) is None
    for known in (KnownMark(Mark(before="5"), 1_000, 0.25), KnownMark(None, 2_000, 0.5)):
        assert heads.know(PK, known) == known
        assert heads.known_mark(PK) == known
    assert heads.known_mark(OTHER) is None


def test_what_was_seen_is_passed_over_for_a_moment() -> None:
    heads = HeadMemory()
    heads.see(PK, "3", "5", 1_000, 300)

    assert heads.seen(PK, "3", 1_299) == "5"
    assert heads.seen(PK, "4", 1_299) == "5"
    assert heads.seen(PK, "6", 1_299) == "6"
    assert heads.seen(PK, "2", 1_299) == "2"
    assert heads.seen(PK, "3", 1_300) == "3"


def test_a_look_that_goes_on_does_not_make_what_was_seen_before_any_younger() -> None:
    heads = HeadMemory()
    heads.see(PK, "3", "5", 1_000, 300)
    heads.see(PK, "3", "7", 1_200, 300)

    assert heads.seen(PK, "3", 1_299) == "7"
    assert heads.seen(PK, "3", 1_300) == "3"


def test_a_look_from_the_end_of_an_earlier_one_goes_on_from_there() -> None:
    heads = HeadMemory()
    heads.see(PK, "3", "5", 1_000, 300)
    heads.see(PK, "5", "7", 1_299, 300)

    assert heads.seen(PK, "5", 1_299) == "7"
    assert heads.seen(PK, "5", 1_300) == "5"


def test_a_look_that_ends_earlier_hides_no_less_than_the_one_before() -> None:
    heads = HeadMemory()
    heads.see(PK, "3", "7", 1_000, 300)
    heads.see(PK, "3", "5", 1_100, 300)

    assert heads.seen(PK, "3", 1_299) == "7"


@pytest.mark.parametrize(
    ("start", "end", "now_ms"),
    [("2", "4", 1_100), ("6", "8", 1_100), ("3", "4", 1_300)],
    ids=["from further in front", "behind a gap", "when the earlier one is over"],
)
def test_a_look_that_does_not_go_on_counts_for_itself(start: str, end: str, now_ms: int) -> None:
    heads = HeadMemory()
    heads.see(PK, "3", "5", 1_000, 300)
    heads.see(PK, start, end, now_ms, 300)

    assert heads.seen(PK, start, now_ms + 299) == end
    assert heads.seen(PK, start, now_ms + 300) == start


def test_so_many_give_backs_of_a_second_may_move() -> None:
    moves = MoveMemory()
    assert sum(moves.may_move(PK, 1_000) for _ in range(100)) == MOVES_PER_SECOND
    assert sum(moves.may_move(PK, 1_500) for _ in range(100)) == MOVES_PER_SECOND // 2
    assert sum(moves.may_move(PK, 60_000) for _ in range(100)) == MOVES_PER_SECOND
    assert moves.may_move(OTHER, 60_000)


def test_chores_are_taken_a_few_at_a_time_and_once() -> None:
    chores = ChoreMemory()
    chores.remember(PK, numbered(1, 2, 3))
    chores.remember(PK, numbered(2, 3, 4))

    assert [each.sort_key for each in chores.take(PK, 3, 0)] == ["1", "2", "3"]
    assert chores.take(OTHER, 3, 0) == []
    assert [each.sort_key for each in chores.take(PK, 3, 0)] == ["4"]


def test_a_parcel_counts_with_its_messages_and_an_empty_one_as_one() -> None:
    full = replace(parcel(3), sort_key="1")
    spent = replace(parcel(16, visible_ms=(DELETED,) * 16), sort_key="2")
    rest = numbered(3, 4)
    chores = ChoreMemory()
    chores.remember(PK, [full, spent, *rest])

    assert chores.take(PK, 5, 0) == [full, spent, rest[0]]
    assert chores.take(PK, 5, 0) == [rest[1]]


def test_chores_rest_for_a_while_when_the_store_refused_one() -> None:
    chores = ChoreMemory()
    chores.remember(PK, numbered(1))
    chores.pause(PK, 1_000)

    assert chores.take(PK, 1, 5_999) == []
    assert len(chores.take(PK, 1, 6_000)) == 1


def test_chores_without_end_are_not_all_remembered() -> None:
    chores = ChoreMemory()
    chores.remember(PK, numbered(*range(10_000)))

    assert len(chores.take(PK, 10_000, 0)) == 4_000
    chores.remember(OTHER, numbered(1))
    assert len(chores.take(OTHER, 1, 0)) == 1


def test_ages_are_looked_at_once_a_second_and_not_after_a_refusal() -> None:
    chores = ChoreMemory()
    assert chores.may_look_at_ages(PK, 5_000)
    assert not chores.may_look_at_ages(PK, 5_999)
    assert chores.may_look_at_ages(OTHER, 5_999)
    assert chores.may_look_at_ages(PK, 6_000)

    chores.pause(PK, 6_500)

    assert not chores.may_look_at_ages(PK, 11_499)
    assert chores.may_look_at_ages(PK, 11_500)


def test_a_fair_partition_remembers_its_last_turn_and_how_much_may_be_read_at_once() -> None:
    turns = TurnMemory()
    few = turns.at_once(PK)
    assert (turns.turn(PK), few > 0) == ("", True)

    turns.take_turn(PK, "3f#")
    turns.read_at_once(PK, 0)

    assert (turns.turn(PK), turns.at_once(PK)) == ("3f#", 0)
    assert (turns.turn(OTHER), turns.at_once(OTHER)) == ("", few)
