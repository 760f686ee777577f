"""What an environment remembers of the heads of partitions, of turns, chores and moves."""

from __future__ import annotations

import itertools

import pytest

from cirrusmq.base.limits import MOVES_PER_SECOND
from cirrusmq.lifecycle.chore_memory import MAX_AT_ONCE, ChoreMemory
from cirrusmq.receiving.heads.memory import HeadMemory, KnownMark
from cirrusmq.receiving.heads.watermark import HeadMark
from cirrusmq.receiving.turn_memory import TurnMemory
from cirrusmq.settlement.move_memory import MoveMemory

PK, OTHER = "Q#queue#0", "Q#queue#1"


def test_a_failed_claim_spreads_claims_for_a_second() -> None:
    heads = HeadMemory()
    assert not heads.is_contended(PK, 0)

    heads.contend(PK, 5_000)

    assert heads.is_contended(PK, 5_999)
    assert not heads.is_contended(PK, 6_000)
    assert not heads.is_contended(OTHER, 5_999)


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
    assert heads.is_backlogged(PK, 59_999)
    assert not heads.is_backlogged(PK, 60_000)
    assert not heads.is_backlogged(OTHER, 0)

    assert heads.know(PK, KnownMark(HeadMark(), 0, 0.0)).mark == HeadMark()
    assert heads.is_backlogged(PK, 0)

    heads.know(PK, KnownMark(None, 0, 0.0))

    assert not heads.is_backlogged(PK, 0)


def test_a_head_passed_over_by_a_scan_is_known_for_a_minute() -> None:
    heads = HeadMemory()
    assert not heads.passes_over(PK, 1)

    heads.pass_over(PK, 5_000)

    assert heads.passes_over(PK, 64_999)
    assert not heads.passes_over(PK, 65_000)
    assert not heads.passes_over(OTHER, 5_000)


def test_the_copy_of_a_mark_is_kept_for_its_partition() -> None:
    heads = HeadMemory()
    assert heads.known_mark(PK) is None
    for known in (KnownMark(HeadMark(before="5"), 1_000, 0.25), KnownMark(None, 2_000, 0.5)):
        assert heads.know(PK, known) == known
        assert heads.known_mark(PK) == known
    assert heads.known_mark(OTHER) is None


def test_a_seen_stretch_is_passed_over_for_a_moment() -> None:
    heads = HeadMemory()
    heads.see(PK, "3", "5", 1_000, 300)

    assert heads.seen(PK, "3", 1_299) == "5"
    assert heads.seen(PK, "4", 1_299) == "5"
    assert heads.seen(PK, "6", 1_299) == "6"
    assert heads.seen(PK, "2", 1_299) == "2"
    assert heads.seen(PK, "3", 1_300) == "3"


def test_a_continued_look_does_not_make_earlier_seen_keys_younger() -> None:
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


def test_a_shorter_look_hides_no_less_than_the_previous_one() -> None:
    heads = HeadMemory()
    heads.see(PK, "3", "7", 1_000, 300)
    heads.see(PK, "3", "5", 1_100, 300)

    assert heads.seen(PK, "3", 1_299) == "7"


@pytest.mark.parametrize(
    ("start", "end", "now_ms"),
    [("2", "4", 1_100), ("6", "8", 1_100), ("3", "4", 1_300)],
    ids=["from further in front", "behind a gap", "when the earlier one is over"],
)
def test_an_unconnected_look_counts_for_itself(start: str, end: str, now_ms: int) -> None:
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


def test_chores_are_named_once_a_second_and_each_again_after_five() -> None:
    chores = ChoreMemory()
    chores.remember(PK, ["1", "2"], 10_000)

    assert chores.take(PK, 10_000) == ["1", "2"]
    assert (chores.next_ms(PK), chores.next_ms(OTHER)) == (None, None)
    chores.remember(PK, ["2", "3"], 10_500)
    chores.remember(OTHER, ["1"], 10_500)
    assert chores.take(PK, 10_999) == []
    assert (chores.next_ms(PK), chores.next_ms(OTHER)) == (11_000, 0)
    assert chores.take(OTHER, 10_999) == ["1"]
    assert chores.take(PK, 11_000) == ["3"]
    chores.remember(PK, ["1", "3"], 14_999)
    assert chores.take(PK, 14_999) == []
    chores.remember(PK, ["1", "2", "3"], 15_000)
    assert chores.take(PK, 15_000) == ["1", "2"]
    chores.remember(PK, ["3"], 16_000)
    assert chores.take(PK, 16_000) == ["3"]


def test_chores_without_end_are_not_all_remembered_nor_named_at_once() -> None:
    chores = ChoreMemory()
    keys = [f"{number}" for number in range(10_000)]
    chores.remember(PK, keys, 0)

    named = [chores.take(PK, 1_000 * second) for second in range(9)]

    assert [len(each) for each in named] == [MAX_AT_ONCE] * 8 + [0]
    assert list(itertools.chain(*named)) == keys[:4_000]
    chores.remember(OTHER, ["1"], 9_000)
    assert chores.take(OTHER, 9_000) == ["1"]


def test_taken_chores_leave_room_for_as_many_others() -> None:
    chores = ChoreMemory()
    chores.remember(PK, [f"{number}" for number in range(4_000)], 0)
    chores.take(PK, 0)

    chores.remember(OTHER, [f"{number}" for number in range(4_000)], 0)

    assert len(chores.take(OTHER, 0)) == MAX_AT_ONCE
    assert chores.take(OTHER, 1_000) == []


def test_a_fair_partition_remembers_its_last_turn_and_how_much_may_be_read_at_once() -> None:
    turns = TurnMemory()
    few = turns.at_once(PK)
    assert (turns.turn(PK), few > 0) == ("", True)

    turns.take_turn(PK, "3f#")
    turns.read_at_once(PK, 0)

    assert (turns.turn(PK), turns.at_once(PK)) == ("3f#", 0)
    assert (turns.turn(OTHER), turns.at_once(OTHER)) == ("", few)
