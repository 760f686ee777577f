"""Retry policies: the waits of each one, when they end, and the legal `retry` objects."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count, pairwise
from typing import Any

import pytest

from cirrusmq.base.errors import InvalidParameter
from cirrusmq.model.retry import POLICIES, RetryPolicy, parse_retry

EVERY_POLICY: list[dict[str, Any]] = [
    {"policy": policy, "waits": [1, 2]} if policy == "custom" else {"policy": policy}
    for policy in sorted(POLICIES)
]
DAY_SECONDS = 86_400


def policy_of(**retry: Any) -> RetryPolicy:
    policy = parse_retry(retry, ordered_source=True)
    assert policy is not None
    return policy


def always(value: float) -> Callable[[], float]:
    return lambda: value


def no_draw() -> float:
    raise AssertionError("this policy draws nothing")


def waits_seconds(policy: RetryPolicy, draw: Callable[[], float] = no_draw) -> list[float]:
    """Every wait of a policy that ends."""
    waits = []
    for receive_count in count(1):
        wait_ms = policy.wait_ms(receive_count, draw)
        if wait_ms is None:
            break
        waits.append(wait_ms / 1_000)
    return waits


def refused(retry: Any, *, ordered_source: bool = True) -> str:
    """The parameter on which a `retry` object is refused."""
    with pytest.raises(InvalidParameter) as refusal:
        parse_retry(retry, ordered_source=ordered_source)
    assert refusal.value.parameter is not None
    return refusal.value.parameter


# ---- the waits ----------------------------------------------------------------------------------


def test_exponential_decay_doubles_to_512_seconds_and_retries_176_times() -> None:
    waits = waits_seconds(policy_of(policy="exponential_decay"))
    assert waits[:10] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert set(waits[9:]) == {512}
    assert len(waits) == 176


def test_exponential_decay_takes_about_a_day_and_no_longer_than_a_message_lives() -> None:
    total = sum(waits_seconds(policy_of(policy="exponential_decay")))
    assert 0.98 * DAY_SECONDS < total < DAY_SECONDS


def test_backoff_retries_three_times_after_ten_to_twenty_seconds() -> None:
    policy = policy_of(policy="backoff")
    assert waits_seconds(policy, always(0.0)) == [20, 20, 20]
    assert waits_seconds(policy, always(0.5)) == [15, 15, 15]
    assert waits_seconds(policy, always(1 - 2**-53)) == [10, 10, 10]


def test_unordered_climbs_to_two_hours_and_stays_there() -> None:
    minute, hour = 60, 3_600
    waits = [10, 30, *(n * minute for n in range(1, 11)), 20 * minute, 30 * minute, hour, 2 * hour]
    assert waits_seconds(policy_of(policy="unordered")) == waits
    longer = waits_seconds(policy_of(policy="unordered", max_retries=20))
    assert longer == [*waits, *[2 * hour] * 4]


def test_sixteen_retries_are_seventeen_deliveries() -> None:
    policy = policy_of(policy="unordered")
    assert policy.max_retries == 16
    assert policy.wait_ms(16, no_draw) is not None
    assert policy.wait_ms(17, no_draw) is None
    assert policy.wait_ms(1_000_000_000, no_draw) is None


def test_ordered_waits_a_second_each_time_without_end() -> None:
    policy = policy_of(policy="ordered")
    assert not policy.ends
    assert policy.max_retries is None
    assert {policy.wait_ms(n, no_draw) for n in (1, 2, 17, 10**9)} == {1_000}


def test_ordered_may_have_its_own_interval_and_end() -> None:
    policy = policy_of(policy="ordered", interval_seconds=0.25, max_retries=2)
    assert waits_seconds(policy) == [0.25, 0.25]
    assert policy.ends


@pytest.mark.parametrize(("policy", "seconds"), [("http_ordered", 60), ("http_unordered", 300)])
def test_the_http_policies_retry_288_times_at_one_interval(policy: str, seconds: int) -> None:
    assert waits_seconds(policy_of(policy=policy)) == [seconds] * 288


def test_custom_takes_its_waits_one_after_the_other_and_then_ends() -> None:
    policy = policy_of(policy="custom", waits=[0.01, 5, 43_200])
    assert waits_seconds(policy) == [0.01, 5, 43_200]
    assert policy.max_retries == 3


def test_jitter_takes_away_up_to_its_share_of_each_wait() -> None:
    policy = policy_of(policy="custom", waits=[10, 100], jitter=0.2)
    assert waits_seconds(policy, always(0.0)) == [10, 100]
    assert waits_seconds(policy, always(0.5)) == [9, 90]
    assert waits_seconds(policy, always(1 - 2**-53)) == [8, 80]


def test_full_jitter_reaches_from_nothing_to_the_whole_wait() -> None:
    policy = policy_of(policy="custom", waits=[10], jitter=1)
    draws = random.Random(7)
    waits = sorted(policy.wait_ms(1, draws.random) or 0 for _ in range(1_000))
    assert 0 <= waits[0] < 200
    assert 9_800 < waits[-1] <= 10_000
    assert max(after - before for before, after in pairwise(waits)) < 200


def test_no_jitter_draws_nothing() -> None:
    assert waits_seconds(policy_of(policy="custom", waits=[10], jitter=0), no_draw) == [10]


def test_without_retries_the_first_delivery_is_the_last() -> None:
    assert policy_of(policy="unordered", max_retries=0).wait_ms(1, no_draw) is None


def test_deliveries_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match=r"^deliveries are counted from 1$"):
        policy_of(policy="unordered").wait_ms(0, no_draw)


@pytest.mark.parametrize("retry", EVERY_POLICY, ids=lambda retry: str(retry["policy"]))
def test_waits_are_whole_milliseconds(retry: dict[str, Any]) -> None:
    wait_ms = policy_of(**retry).wait_ms(1, always(0.123456))
    assert isinstance(wait_ms, int)


# ---- the end, and the messages held back --------------------------------------------------------


def test_each_policy_names_the_end_after_its_last_retry() -> None:
    endings = {retry["policy"]: policy_of(**retry).ending for retry in EVERY_POLICY}
    assert endings == {
        "exponential_decay": "expiry",
        "backoff": "dropped",
        "unordered": "dead_letter",
        "ordered": "dead_letter",
        "http_ordered": "dead_letter",
        "http_unordered": "dead_letter",
        "custom": "dead_letter",
    }


def test_each_policy_says_how_a_failing_message_blocks_others() -> None:
    assert {retry["policy"]: policy_of(**retry).blocking for retry in EVERY_POLICY} == {
        "exponential_decay": "probe",
        "backoff": "in_order",
        "unordered": "none",
        "ordered": "in_order",
        "http_ordered": "in_order",
        "http_unordered": "none",
        "custom": "none",
    }


def test_every_policy_but_ordered_ends() -> None:
    endless = {retry["policy"] for retry in EVERY_POLICY if not policy_of(**retry).ends}
    assert endless == {"ordered"}


# ---- where a policy may be set ------------------------------------------------------------------


def test_without_a_retry_object_the_default_holds_if_there_is_one() -> None:
    assert parse_retry(None, ordered_source=False) is None
    default = parse_retry(None, ordered_source=False, default="unordered")
    assert default == policy_of(policy="unordered")


@pytest.mark.parametrize("policy", ["ordered", "http_ordered"])
def test_ordered_policies_need_an_ordered_source(policy: str) -> None:
    assert refused({"policy": policy}, ordered_source=False) == "retry.policy"
    assert parse_retry({"policy": policy}, ordered_source=True)


@pytest.mark.parametrize("retry", EVERY_POLICY, ids=lambda retry: str(retry["policy"]))
def test_the_other_policies_take_any_source(retry: dict[str, Any]) -> None:
    if retry["policy"] not in ("ordered", "http_ordered"):
        assert parse_retry(retry, ordered_source=False) == policy_of(**retry)


@pytest.mark.parametrize("policy", ["", "Backoff", "linear", None, 5, True, ["backoff"]])
def test_an_unknown_policy_is_refused_with_the_known_ones(policy: object) -> None:
    with pytest.raises(InvalidParameter, match="backoff, custom, exponential_decay") as refusal:
        parse_retry({"policy": policy}, ordered_source=True)
    assert refusal.value.parameter == "retry.policy"


def test_the_policy_must_be_there() -> None:
    assert refused({}) == "retry.policy"
    assert refused({"max_retries": 5}) == "retry.policy"


@pytest.mark.parametrize("retry", ["unordered", ["unordered"], 5, True])
def test_a_retry_is_an_object(retry: object) -> None:
    assert refused(retry) == "retry"


def test_an_unknown_member_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="'retries' is not a member"):
        parse_retry({"policy": "unordered", "retries": 5}, ordered_source=True)


# ---- which policy takes which member, and its range ---------------------------------------------

TAKES = {
    "max_retries": {"unordered", "ordered"},
    "interval_seconds": {"ordered"},
    "waits": {"custom"},
    "jitter": {"custom"},
}
VALUES: dict[str, Any] = {"max_retries": 5, "interval_seconds": 1, "waits": [1], "jitter": 0.5}


@pytest.mark.parametrize("member", sorted(TAKES))
@pytest.mark.parametrize("retry", EVERY_POLICY, ids=lambda retry: str(retry["policy"]))
def test_a_member_foreign_to_a_policy_is_refused(retry: dict[str, Any], member: str) -> None:
    given = {**retry, member: VALUES[member]}
    if retry["policy"] in TAKES[member]:
        assert policy_of(**given).policy == retry["policy"]
    else:
        assert refused(given) == f"retry.{member}"


@pytest.mark.parametrize("value", [0, 1_000_000])
def test_max_retries_goes_from_none_to_a_million(value: int) -> None:
    assert policy_of(policy="unordered", max_retries=value).max_retries == value


NO_NUMBERS: list[object] = [
    True,
    False,
    None,
    "5",
    [5],
    {},
    float("nan"),
    float("inf"),
    float("-inf"),
    1e999,
]


@pytest.mark.parametrize("value", [-1, 1_000_001, 30.0, 0.5, 10**400, *NO_NUMBERS])
def test_max_retries_is_an_integer_in_its_range(value: object) -> None:
    assert refused({"policy": "ordered", "max_retries": value}) == "retry.max_retries"


@pytest.mark.parametrize(
    ("value", "wait_ms"), [(0.01, 10), (1, 1_000), (2.5, 2_500), (30.0, 30_000)]
)
def test_the_interval_may_have_a_fraction(value: float, wait_ms: int) -> None:
    policy = policy_of(policy="ordered", interval_seconds=value)
    assert policy.wait_ms(1, no_draw) == wait_ms


@pytest.mark.parametrize("value", [0.009, 0, -1, 30.001, 31, 10**400, *NO_NUMBERS])
def test_the_interval_stays_in_its_range(value: object) -> None:
    assert refused({"policy": "ordered", "interval_seconds": value}) == "retry.interval_seconds"


@pytest.mark.parametrize("value", [0.009, 0, -1, 43_200.001, 43_201, 10**400, *NO_NUMBERS])
def test_each_wait_stays_in_its_range_and_the_one_at_fault_is_named(value: object) -> None:
    assert refused({"policy": "custom", "waits": [1, value]}) == "retry.waits[1]"


def test_a_custom_policy_has_1_to_200_waits() -> None:
    assert policy_of(policy="custom", waits=[1]).max_retries == 1
    assert policy_of(policy="custom", waits=[43_200] * 200).max_retries == 200
    for waits in ([], [1] * 201):
        with pytest.raises(InvalidParameter, match="1 to 200 waits"):
            parse_retry({"policy": "custom", "waits": waits}, ordered_source=True)


@pytest.mark.parametrize("waits", [None, 5, "1", {"1": 1}, True])
def test_waits_are_a_list(waits: object) -> None:
    assert refused({"policy": "custom", "waits": waits}) == "retry.waits"


def test_custom_needs_its_waits() -> None:
    assert refused({"policy": "custom"}) == "retry.waits"
    assert refused({"policy": "custom", "jitter": 0.5}) == "retry.waits"


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, 0.5])
def test_jitter_goes_from_nothing_to_the_whole(value: float) -> None:
    assert policy_of(policy="custom", waits=[1], jitter=value).jitter == value


@pytest.mark.parametrize("value", [-0.001, 1.001, 2, *NO_NUMBERS])
def test_jitter_stays_in_its_range(value: object) -> None:
    assert refused({"policy": "custom", "waits": [1], "jitter": value}) == "retry.jitter"


ANY_OF = "backoff, custom, exponential_decay, http_ordered, http_unordered, ordered, unordered"


@pytest.mark.parametrize(
    ("retry", "where", "detail"),
    [
        (5, {}, "retry: must be an object or null"),
        (
            {"policy": "backoff", "é": 1},
            {},
            "retry: '\\xe9' is not a member of a retry policy",
        ),
        ({"policy": "x"}, {}, f"retry.policy: must be one of {ANY_OF}"),
        (
            {"policy": "ordered"},
            {"ordered_source": False},
            "retry.policy: ordered needs an ordered queue or subscription",
        ),
        (
            {"policy": "backoff", "jitter": 1},
            {},
            "retry.jitter: is not allowed with the policy backoff",
        ),
        (
            {"policy": "custom", "waits": []},
            {},
            "retry.waits: must be a list of 1 to 200 waits in seconds",
        ),
        (
            {"policy": "custom", "waits": [0]},
            {},
            "retry.waits[0]: must be a number from 0.01 to 43,200",
        ),
        (
            {"policy": "unordered", "max_retries": -1},
            {},
            "retry.max_retries: must be an integer from 0 to 1,000,000",
        ),
    ],
)
def test_a_refusal_tells_the_valid_form(retry: Any, where: dict[str, Any], detail: str) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        parse_retry(retry, **{"ordered_source": True, **where})
    assert refusal.value.detail == detail


# ---- compared -----------------------------------------------------------------------------------


def test_a_written_out_default_makes_no_difference() -> None:
    assert policy_of(policy="unordered") == policy_of(policy="unordered", max_retries=16)
    assert policy_of(policy="ordered") == policy_of(policy="ordered", interval_seconds=1.0)
    custom = policy_of(policy="custom", waits=[1])
    assert custom == policy_of(policy="custom", waits=[1.0], jitter=0)


def test_policies_with_other_waits_or_ends_differ() -> None:
    assert policy_of(policy="unordered") != policy_of(policy="unordered", max_retries=15)
    assert policy_of(policy="ordered") != policy_of(policy="ordered", interval_seconds=2)
    assert policy_of(policy="custom", waits=[1]) != policy_of(policy="custom", waits=[2])
    assert policy_of(policy="http_ordered") != policy_of(policy="http_unordered")
