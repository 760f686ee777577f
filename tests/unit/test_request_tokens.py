"""The id of an attempt: a ULID that is fresh."""

from __future__ import annotations

import pytest

from cirrusmq.base import ulid
from cirrusmq.base.errors import InvalidParameter, Unavailable
from cirrusmq.base.request_token import check_attempt

NOW_MS = 1_795_000_000_007
RULE = (
    "attempt: must be a ULID at most 120 s old and 2 s ahead; it is 2026-11-18T11:06:40.007Z here"
)


def begun(time_ms: int) -> str:
    return ulid.encode(time_ms, b"\xff" * 10)


@pytest.mark.parametrize("begun_ms", [NOW_MS - 120_000, NOW_MS, NOW_MS + 2_000])
def test_a_fresh_attempt_tells_when_it_began(begun_ms: int) -> None:
    assert check_attempt(begun(begun_ms), NOW_MS, 1) == begun_ms


@pytest.mark.parametrize(
    "attempt", [begun(NOW_MS - 120_001), begun(NOW_MS + 2_001), "", "x", begun(NOW_MS) + "0"]
)
def test_any_other_is_refused_with_the_rule_and_the_time_here(attempt: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        check_attempt(attempt, NOW_MS, 1)
    assert refused.value.detail == RULE
    assert refused.value.parameter == "attempt"


@pytest.mark.parametrize(("scale", "oldest_ms"), [(2, 240_000), (0.5, 60_000)])
def test_its_age_is_of_real_seconds_in_a_faster_or_slower_service(
    scale: float, oldest_ms: int
) -> None:
    oldest = begun(NOW_MS - oldest_ms)
    assert check_attempt(oldest, NOW_MS, scale) == NOW_MS - oldest_ms
    with pytest.raises(InvalidParameter):
        check_attempt(oldest, NOW_MS + 1, scale)


@pytest.mark.parametrize("scale", [2, 0.5])
def test_how_far_ahead_it_may_be_does_not_depend_on_the_scale(scale: float) -> None:
    assert check_attempt(begun(NOW_MS + 2_000), NOW_MS, scale) == NOW_MS + 2_000
    with pytest.raises(InvalidParameter):
        check_attempt(begun(NOW_MS + 2_001), NOW_MS, scale)


@pytest.mark.parametrize("further", [".", ".x", ".format=2", ".a=1.b=2", "." + "x" * 101])
def test_additions_of_a_later_release_are_ignored(further: str) -> None:
    assert check_attempt(begun(NOW_MS) + further, NOW_MS, 1) == NOW_MS


@pytest.mark.parametrize("further", ["." + "x" * 102, "x", " .x"])
def test_more_than_128_characters_or_another_mark_is_refused(further: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        check_attempt(begun(NOW_MS) + further, NOW_MS, 1)
    assert refused.value.detail == RULE


def test_a_format_of_a_later_release_asks_for_the_call_again() -> None:
    with pytest.raises(Unavailable) as refused:
        check_attempt(begun(NOW_MS) + ".x.format=3", NOW_MS, 1)
    assert refused.value.detail == "This attempt was made by a later release; call again."
