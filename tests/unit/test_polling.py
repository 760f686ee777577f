"""The pauses of a waiting receive, worked out by hand: 150 units, two looks each, in 20 s."""

from __future__ import annotations

import pytest
from tests.unit.parcels import source

from cirrusmq.receiving.polling import ends_with_all, pause_seconds

IDLE = 0.5
"""Units of a look at an idle partition."""


@pytest.mark.parametrize(
    ("partitions", "seconds"),
    [
        (1, 0.34),
        (4, 0.34 / 4),
        # 2 times (150 - 21 - 1) = 256 looks, less those at all partitions: the first and the last.
        (16, 20 / (256 - 32)),
        (17, 20 / (256 - 17)),
        (216, 20 / (256 - 216)),
        (252, 5.0),
        (255, 5.0),
    ],
)
def test_a_queue_is_looked_at_within_its_units(partitions: int, seconds: float) -> None:
    assert pause_seconds(source(partitions=partitions), IDLE) == pytest.approx(seconds, rel=1e-9)


@pytest.mark.parametrize("place", [{"receiver": "copy"}, {"subscription": "web"}])
def test_attributes_of_its_own_leave_fewer_looks(place: dict[str, str]) -> None:
    """2 times (150 - 42 - 1) = 214 looks."""
    assert pause_seconds(source(partitions=4, **place), IDLE) == pytest.approx(20 / (214 - 8))
    assert pause_seconds(source(partitions=16, **place), IDLE) == pytest.approx(20 / (214 - 32))
    assert pause_seconds(source(partitions=208, **place), IDLE) == pytest.approx(20 / (214 - 208))
    # None are left behind the first look at all of them.
    assert pause_seconds(source(partitions=214, **place), IDLE) == 5.0
    assert pause_seconds(source(partitions=255, **place), IDLE) == 5.0


def test_a_look_that_cost_more_is_made_up_for_at_20_units_a_second() -> None:
    assert pause_seconds(source(partitions=1), 2.0) == 0.34
    assert pause_seconds(source(partitions=1), 10.0) == 0.5
    assert pause_seconds(source(partitions=255), 200.0) == 10.0


def test_the_last_look_is_at_all_partitions_of_up_to_16() -> None:
    assert ends_with_all(source(partitions=16))
    assert not ends_with_all(source(partitions=17))
