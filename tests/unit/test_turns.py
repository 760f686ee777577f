"""The values of fair queues: shares of a receive, and keys that begin with a group."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.parcels import SEND_ID

from cirrusmq.model.parcel import key_in_group, key_ms, key_prefix, sort_key
from cirrusmq.receiving.group_slices import fair_share, quotas
from cirrusmq.sending.making import group_prefix, ordered_sort_key


@pytest.mark.parametrize(("limit", "share"), [(1, 1), (4, 1), (5, 2), (10, 3), (16, 4)])
def test_a_share_is_a_quarter_rounded_up(limit: int, share: int) -> None:
    assert fair_share(limit) == share


@pytest.mark.parametrize(
    ("counts", "limit", "taken"),
    [
        ([16, 16, 16, 16], 16, [4, 4, 4, 4]),
        ([16, 16], 16, [8, 8]),
        ([16, 1, 16], 16, [8, 1, 7]),
        ([16], 16, [16]),
        ([2, 1], 16, [2, 1]),
        ([5, 5], 1, [1, 0]),
        ([10, 10, 10, 10], 10, [3, 3, 3, 1]),
    ],
)
def test_a_short_limit_is_shared_out(counts: list[int], limit: int, taken: list[int]) -> None:
    assert quotas(counts, limit) == taken


@given(st.lists(st.integers(1, 16), max_size=8), st.integers(0, 16))
def test_quotas_take_all_available_up_to_the_limit(counts: list[int], limit: int) -> None:
    taken = quotas(counts, limit)
    assert sum(taken) == min(limit, sum(counts))
    assert all(0 <= some <= count for some, count in zip(taken, counts, strict=True))


@given(st.none() | st.text(max_size=128), st.integers(0, 10**13 - 1))
def test_a_key_tells_its_group_and_its_time(group: str | None, available_ms: int) -> None:
    own, prefix = sort_key(available_ms, f"{SEND_ID}.F"), group_prefix(group)
    assert key_prefix(own) == ""
    assert key_prefix(prefix + own) == prefix
    assert key_in_group(prefix + own) == key_in_group(own) == own
    assert key_ms(prefix + own) == key_ms(own) == available_ms


def test_no_group_is_a_group_of_its_own() -> None:
    assert group_prefix(None) == group_prefix("") != group_prefix("None")
    assert ordered_sort_key("g", 1).startswith(group_prefix("g"))
