"""The pauses of a waiting receive, worked out by hand: 150 units, two looks each, in 20 s."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.parcels import source

from cirrusmq.receiving.polling import (
    Turns,
    ends_with_all,
    first_partitions,
    pause_seconds,
    waits_for_wake_ups,
)

LOOKS = 2 * (150 - 21 - 1)
"""256, of the units that 21 readings of the attributes leave."""
WITH_WAKE_UPS = LOOKS - 60
"""196: each 0.34 s of 20 s one look is at the wake-ups, and once when the wait ends."""

IDLE = 0.5
"""Units of a look at an idle partition."""


@pytest.mark.parametrize(
    ("partitions", "seconds"),
    [
        (1, 0.34),
        (4, 0.34 / 4),
        # Less those at all partitions, the first and the last.
        (5, 20 / (WITH_WAKE_UPS - 10)),
        (16, 20 / (WITH_WAKE_UPS - 32)),
        (17, 20 / (WITH_WAKE_UPS - 17)),
        (160, 20 / (WITH_WAKE_UPS - 160)),
        (255, 20 / (WITH_WAKE_UPS - 160)),
    ],
)
def test_a_queue_is_looked_at_within_its_units(partitions: int, seconds: float) -> None:
    assert pause_seconds(source(partitions=partitions), 20, IDLE) == pytest.approx(
        seconds, rel=1e-9
    )


def test_the_first_look_of_a_long_wakeable_wait_is_at_160_partitions() -> None:
    assert first_partitions(source(partitions=255), 20) == 160
    assert first_partitions(source(partitions=255), 10) == 160
    assert first_partitions(source(partitions=255), 9.9) == 255
    assert first_partitions(source(partitions=64), 20) == 64
    assert first_partitions(source(partitions=255, receiver="copy"), 20) == 255


@pytest.mark.parametrize("place", [{"receiver": "copy"}, {"subscription": "web"}])
def test_attributes_of_its_own_leave_fewer_looks(place: dict[str, str]) -> None:
    """2 times (150 - 42 - 1) = 214 looks, and none at wake-ups."""
    assert pause_seconds(source(partitions=4, **place), 20, IDLE) == pytest.approx(20 / (214 - 8))
    assert pause_seconds(source(partitions=16, **place), 20, IDLE) == pytest.approx(20 / (214 - 32))
    assert pause_seconds(source(partitions=208, **place), 20, IDLE) == pytest.approx(
        20 / (214 - 208)
    )
    # None are left behind the first look at all of them.
    assert pause_seconds(source(partitions=214, **place), 20, IDLE) == 5.0
    assert pause_seconds(source(partitions=255, **place), 20, IDLE) == 5.0


def test_a_short_wait_leaves_its_looks_to_the_partitions() -> None:
    assert pause_seconds(source(partitions=16), 1, IDLE) == pytest.approx(20 / (LOOKS - 32))
    assert pause_seconds(source(partitions=216), 0.2, IDLE) == pytest.approx(20 / (LOOKS - 216))
    assert pause_seconds(source(partitions=255), 0.2, IDLE) == 5.0


@pytest.mark.parametrize("kind", ["ordered", "fair"])
@pytest.mark.parametrize(
    ("place", "seconds"),
    [
        ({"partitions": 4}, 0.34 / 4),
        ({"partitions": 4, "receiver": "copy"}, 20 / (214 - 8)),
        # Less the first look, and a last one of 8 units, half a unit for each partition that it
        # reaches, and one more page.
        ({"partitions": 16}, 20 / (WITH_WAKE_UPS - 16 - 2 * (8 + 8 + 1))),
        ({"partitions": 17}, 20 / (WITH_WAKE_UPS - 17 - 2 * (8 + 0.5 + 1))),
    ],
)
def test_groups_without_messages_are_looked_at_as_often_as_their_last_look_allows(
    kind: str, place: dict[str, Any], seconds: float
) -> None:
    groups = msgspec.structs.replace(source(**place), **{kind: True})
    assert pause_seconds(groups, 20, IDLE) == pytest.approx(seconds, rel=1e-9)


@pytest.mark.parametrize("partitions", [213, 214])
def test_a_look_for_all_remaining_units_is_the_last(partitions: int) -> None:
    """One idle look was left, or none: 5 units are those of 200 s."""
    assert pause_seconds(source(partitions=partitions, receiver="copy"), 20, 5.0) == 200


@pytest.mark.parametrize("kind", ["ordered", "fair"])
@pytest.mark.parametrize(("partitions", "last_units"), [(1, 9.5), (4, 11), (16, 17)])
def test_a_dearer_look_is_made_up_for_within_the_cost_of_a_poll(
    kind: str, partitions: int, last_units: float
) -> None:
    looks = LOOKS if partitions < 5 else WITH_WAKE_UPS
    units_a_second = ((looks - partitions) / 2 - last_units) / 20
    groups = msgspec.structs.replace(source(partitions=partitions), **{kind: True})

    for units in (5.0, 10.0):
        assert pause_seconds(groups, 20, units) == pytest.approx(units / units_a_second)


def test_the_last_look_is_at_all_partitions_of_up_to_16() -> None:
    assert ends_with_all(source(partitions=16))
    assert not ends_with_all(source(partitions=17))


def looks(place: dict[str, int], seconds: float) -> tuple[list[float], list[float]]:
    """The times of looks at partitions, and of looks at wake-ups."""
    queue, turns = source(**place), Turns(20)
    turns.begin_turn(queue, 0)
    turns.begin_round()
    partitions, wake_ups, now = [], [], 0.0
    while now < seconds:
        pause = turns.next_seconds(queue)
        turns.pass_seconds(pause)
        now += pause
        if waits_for_wake_ups(queue, 20) and turns.round_is_due:
            wake_ups.append(round(now, 3))
            turns.begin_round()
        if turns.turn_is_due:
            partitions.append(round(now, 3))
            turns.begin_turn(queue, 0)
    return partitions, wake_ups


def test_wake_ups_are_looked_at_each_340_ms_between_the_turns_of_partitions() -> None:
    partitions, wake_ups = looks({"partitions": 16}, 1)
    assert wake_ups == [0.34, 0.68, 1.02]
    assert partitions == [0.122, 0.244, 0.366, 0.488, 0.61, 0.732, 0.854, 0.976]


def test_a_queue_of_few_partitions_has_no_wake_ups() -> None:
    partitions, wake_ups = looks({"partitions": 4}, 0.5)
    assert wake_ups == []
    assert partitions == [0.085, 0.17, 0.255, 0.34, 0.425, 0.51]


def test_a_wait_begins_with_both_looks() -> None:
    turns = Turns(20)
    assert turns.turn_is_due
    assert turns.round_is_due
    assert turns.next_seconds(source(partitions=16)) == 0


def test_a_wait_with_twice_the_looks_has_half_the_pauses() -> None:
    queue, turns = source(partitions=16), Turns(20, faster=2)
    turns.begin_turn(queue, 0)
    turns.pass_seconds(0)
    turns.begin_round()
    assert turns.next_seconds(queue) == pytest.approx(10 / (WITH_WAKE_UPS - 32))
    turns.begin_turn(source(partitions=255), 0)
    assert turns.next_seconds(queue) == pytest.approx(0.17)


def test_both_looks_may_be_due_at_once() -> None:
    queue, turns = source(partitions=255), Turns(20)
    turns.begin_turn(queue, 0.5)  # the turns are 0.556 s apart
    turns.begin_round()
    turns.pass_seconds(turns.next_seconds(queue))
    assert turns.round_is_due
    assert not turns.turn_is_due
    turns.pass_seconds(0.22)
    assert turns.turn_is_due
