"""The mark of a partition's head: the keys it hides, for how long, and the cost of a pass."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.parcels import NOW_MS, parcel

from cirrusmq.model.parcel import Parcel, sort_key
from cirrusmq.receiving.heads.watermark import (
    BEGINNING,
    JITTER_MS,
    LONGEST_MS,
    YOUNG_JITTER_MS,
    YOUNG_LOOK_MS,
    YOUNG_MS,
    HeadMark,
    ScannedRange,
    after_pass,
    after_young,
    anything_due,
    begin_pass,
    due,
    go_on_with_pass,
    look_at_young,
    young_due,
)


def at(age_ms: int, lease_ms: int = 600_000) -> Parcel:
    """A parcel in flight whose key is so old."""
    held = parcel(1, visible_ms=(NOW_MS + lease_ms,))
    return replace(held, sort_key=sort_key(NOW_MS - age_ms, f"p{age_ms}"))


def stretch(
    *ages_ms: int, units: float, behind: int | None = None, lease_ms: int = 600_000
) -> ScannedRange:
    """A look over parcels so old that cost `units`; `behind`: something to take, so old."""
    look = ScannedRange(NOW_MS)
    skipped = [at(age_ms, lease_ms) for age_ms in ages_ms]
    claimable = [] if behind is None else [at(behind)]
    whole = units * (len(skipped) + len(claimable)) / max(1, len(skipped))
    look.add([*skipped, *claimable], claimable[0] if claimable else None, whole)
    return look


def key(age_ms: int) -> str:
    return at(age_ms).sort_key


def begun(**given: object) -> HeadMark:
    return replace(begin_pass(HeadMark(), NOW_MS), **given)


def test_only_keys_older_than_three_seconds_are_hidden_for_long() -> None:
    mark = after_pass(begun(), "", stretch(9_000, 3_000, 2_999, 0, units=400))

    assert mark is not None
    assert mark.before == key(3_000)
    assert mark.young == key(0)
    assert mark.beyond(NOW_MS + 299) == key(0)
    assert mark.beyond(NOW_MS + 300) == key(3_000)


def test_a_pass_is_due_again_when_its_cost_is_paid_at_20_units_a_second() -> None:
    for units, life_ms in ((40, 2_000), (200, 10_000), (10_000, LONGEST_MS)):
        mark = after_pass(begun(), "", stretch(9_000, 8_000, units=units))
        assert mark is not None
        assert not due(mark, NOW_MS + life_ms - 1, 0.0)
        assert due(mark, NOW_MS + life_ms, 0.0)


def test_a_cheap_pass_is_due_with_the_first_lease_of_its_stretch() -> None:
    look = stretch(9_000, 8_000, units=2, lease_ms=400)

    mark = after_pass(begun(), "", look)

    assert mark is not None
    assert mark.until_ms == NOW_MS + 400


def test_a_stretch_of_one_unit_needs_no_mark() -> None:
    assert after_pass(begun(), "", stretch(9_000, 0, units=1.0)) is None
    assert after_pass(begun(), "", stretch(9_000, units=1.0, behind=8_000)) is None


def test_a_pass_with_a_find_leaves_its_cursor_just_before_it() -> None:
    before = begun(before=key(4_000))

    mark = after_pass(before, "", stretch(9_000, 8_000, units=30, behind=7_000))

    assert mark is not None
    assert (mark.cursor, mark.before) == (key(8_000), key(4_000))
    assert mark.lease_ms == 0
    on = go_on_with_pass(mark, NOW_MS)
    over = after_pass(on, on.cursor, stretch(7_000, 6_000, 5_000, units=50))
    assert over is not None
    assert (over.cursor, over.before, over.units) == ("", key(5_000), 80)
    assert over.until_ms == NOW_MS + 4_000  # for all of the pass


def test_at_the_very_first_place_the_cursor_is_in_front_of_all() -> None:
    before = begun(before=key(4_000))

    mark = after_pass(before, "", stretch(units=0, behind=9_000))

    assert mark is not None
    assert mark.cursor == BEGINNING
    assert mark.cursor < key(10**9)


def test_a_find_under_a_young_key_ends_the_pass() -> None:
    mark = after_pass(begun(), "", stretch(9_000, 2_000, units=60, behind=1_000))

    assert mark is not None
    assert (mark.cursor, mark.before, mark.young) == ("", key(9_000), key(2_000))


def test_a_look_at_the_young_moves_the_mark_on_and_the_next_pass_away_by_its_cost() -> None:
    mark = begun(before=key(9_000), until_ms=NOW_MS + 1_000, units=20.0)

    after = after_young(mark, stretch(8_000, 7_000, 2_000, units=30))

    assert (after.before, after.young, after.young_ms) == (key(7_000), key(2_000), NOW_MS)
    assert (after.until_ms, after.units) == (NOW_MS + 2_000, 40)


def test_however_much_is_added_a_pass_is_due_within_30_seconds() -> None:
    mark = begun(before=key(9_000), until_ms=NOW_MS + 26_000)

    after = after_young(mark, stretch(8_000, 7_000, units=900))

    assert after.until_ms == NOW_MS + LONGEST_MS


def test_a_look_at_the_young_ends_at_an_old_find() -> None:
    mark = begun(before=key(9_000))

    after = after_young(mark, stretch(8_000, units=30, behind=7_000))

    assert (after.before, after.young) == (key(8_000), "")
    assert after.beyond(NOW_MS) == key(8_000)


def test_a_look_at_the_young_gives_the_others_a_moment_more() -> None:
    mark = HeadMark(young=key(0), young_ms=NOW_MS - 300)
    assert young_due(mark, NOW_MS, 0.0)

    mark = look_at_young(mark, NOW_MS)

    assert not young_due(mark, NOW_MS + YOUNG_LOOK_MS - 1, 0.0)
    assert young_due(mark, NOW_MS + YOUNG_LOOK_MS, 0.0)


def test_receivers_find_a_mark_due_one_after_the_other() -> None:
    mark = HeadMark(until_ms=NOW_MS, young_ms=NOW_MS - YOUNG_MS)
    assert due(mark, NOW_MS, 0.0)
    assert young_due(mark, NOW_MS, 0.0)
    assert not due(mark, NOW_MS + JITTER_MS - 1, 1.0)
    assert not young_due(mark, NOW_MS + YOUNG_JITTER_MS - 1, 1.0)


def test_a_pass_is_due_when_the_mark_ends_and_the_young_part_every_300_ms() -> None:
    calm = HeadMark(until_ms=10_000, young_ms=1_000)
    assert not anything_due(calm, 9_999)
    assert anything_due(calm, 10_000)

    young = replace(calm, young=key(9_000))
    assert not anything_due(young, 1_299)
    assert anything_due(young, 1_300)


def test_a_continued_pass_has_two_seconds() -> None:
    mark = begun(cursor=key(8_000), units=30.0)

    on = go_on_with_pass(mark, NOW_MS + 500)

    assert on == replace(mark, lease_ms=NOW_MS + 2_500)
    assert begun().lease_ms == NOW_MS + 2_000


def test_a_young_part_of_one_unit_is_read_by_every_look() -> None:
    mark = begun(before=key(9_000))

    cheap = after_young(mark, stretch(2_000, 1_000, units=1.0))
    dear = after_young(mark, stretch(2_000, 1_000, units=1.001))
    old = after_young(mark, stretch(8_000, 7_000, units=30))

    assert (cheap.young, dear.young, old.young) == ("", key(1_000), "")


def test_something_old_to_take_ends_the_young_part_however_much_it_costs() -> None:
    mark = begun(before=key(9_000))
    look = stretch(8_000, 2_000, 1_000, units=30)
    look.met_old = True

    assert after_young(mark, look).young == ""


def test_the_cost_of_a_pass_is_kept_to_a_thousandth() -> None:
    mark = begun(units=0.1)

    assert after_young(mark, stretch(8_000, units=0.2226)).units == 0.323
    passed = after_pass(mark, "", stretch(8_000, units=30.2226))
    assert passed is not None
    assert passed.units == 30.323


def leased(age_ms: int, *leases_ms: int) -> Parcel:
    """A parcel so old whose messages can be received at these times from now."""
    ready = tuple(NOW_MS + lease_ms for lease_ms in leases_ms)
    return replace(parcel(len(ready), visible_ms=ready), sort_key=sort_key(NOW_MS - age_ms, "p"))


@pytest.mark.parametrize(
    ("parcels", "ready_ms"),
    [
        ([leased(9_000, 700, 400), leased(8_000, 500)], 400),
        ([leased(9_000, 700), leased(8_000, 500)], 500),
        # Messages whose time has come, and those that left, end no stretch.
        ([leased(9_000, 0, 600)], 600),
        ([leased(9_000, -NOW_MS, 1)], 1),
        # A young parcel is hidden for 0.3 s at most.
        ([leased(9_000, 600), leased(2_999, 100)], 600),
    ],
)
def test_a_stretch_knows_when_the_first_message_of_its_old_part_is_ready(
    parcels: list[Parcel], ready_ms: int
) -> None:
    look = ScannedRange(NOW_MS)
    look.add(parcels, None, 2.0)
    assert look.ready_ms == NOW_MS + ready_ms


def test_a_cheap_pass_without_ending_leases_is_due_after_a_second() -> None:
    look = ScannedRange(NOW_MS)
    look.add([leased(9_000, -5), leased(8_000, -NOW_MS)], None, 2.0)

    mark = after_pass(begun(), "", look)

    assert mark is not None
    assert mark.until_ms == NOW_MS + 1_000


def test_a_stretch_adds_up_its_pages_and_ends_before_a_claimable_message() -> None:
    look = ScannedRange(NOW_MS)
    look.add([at(9_000), at(8_000)], None, 3.0)
    look.add([at(7_000), at(2_000), at(1_000), at(500)], at(1_000), 2.0)

    assert (look.units, look.end) == (4.0, key(2_000))
    assert (look.old_units, look.old_end) == (3.5, key(7_000))
    assert not look.met_old


def test_a_page_without_parcels_costs_as_well() -> None:
    look = ScannedRange(NOW_MS)
    look.add([at(9_000)], None, 1.0)
    look.add([], None, 0.5)

    assert (look.units, look.old_units, look.end) == (1.5, 1.0, key(9_000))


def test_something_to_take_is_old_when_its_key_is_three_seconds_old() -> None:
    for age_ms, old in ((3_000, True), (2_999, False)):
        look = ScannedRange(NOW_MS)
        look.add([at(9_000), at(age_ms)], at(age_ms), 2.0)
        assert look.met_old is old


def test_the_latest_receiver_finds_a_mark_due_after_half_a_second() -> None:
    mark = HeadMark(until_ms=NOW_MS, young_ms=NOW_MS - YOUNG_MS)

    assert due(mark, NOW_MS + 500, 1.0)
    assert due(mark, NOW_MS + 250, 0.5)
    assert not due(mark, NOW_MS + 249, 0.5)
    assert young_due(mark, NOW_MS + 40, 1.0)
    assert young_due(mark, NOW_MS + 20, 0.5)
    assert not young_due(mark, NOW_MS + 19, 0.5)


def test_a_new_pass_begins_without_the_cost_and_the_cursor_of_the_last_one() -> None:
    last = HeadMark(
        before="5", until_ms=7, begun_ms=6, units=30.0, cursor="4", young="9", version=3
    )

    assert begin_pass(last, NOW_MS) == HeadMark(
        before="5", until_ms=7, begun_ms=NOW_MS, lease_ms=NOW_MS + 2_000, young="9", version=3
    )


def test_a_cheap_pass_with_a_find_needs_no_mark_unless_there_is_a_later_one() -> None:
    cheap = stretch(9_000, units=1.0, behind=8_000)
    dear = stretch(9_000, units=1.001, behind=8_000)

    for before in ("", key(9_500), key(9_000)):
        assert after_pass(begun(before=before), "", cheap) is None
    for mark, look in ((begun(before=key(8_500)), cheap), (begun(), dear)):
        after = after_pass(mark, "", look)
        assert after is not None
        assert after.cursor == key(9_000)


def test_passed_keys_are_hidden_at_once() -> None:
    mark = after_pass(begun(before=key(9_500)), "", stretch(9_000, units=30, behind=8_000))

    assert mark is not None
    assert mark.before == key(9_000)


@pytest.mark.parametrize(("units", "young"), [(5.0, ""), (5.01, "p2000")])
def test_a_young_part_is_hidden_if_it_costs_more_than_a_unit(units: float, young: str) -> None:
    look = stretch(9_000, 8_000, 7_000, 6_000, 2_000, units=units)

    mark = after_pass(begun(), "", look)

    assert mark is not None
    assert mark.before == key(6_000)
    assert mark.young.endswith(young)
    assert bool(mark.young) is bool(young)
