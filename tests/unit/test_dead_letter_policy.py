"""The reasons for which a message becomes a dead letter, and the ends of sources."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.parcels import NOW_MS, parcel, source

from cirrusmq.lifecycle.dead_letters.policy import age_limit_ms, dead_letter_reason
from cirrusmq.model.queue import DeadLetter
from cirrusmq.model.retry import RetryPolicy, parse_retry

NONCE = b"n" * 16


def dead_letter(**given: int) -> DeadLetter:
    return DeadLetter("dead", **given)


def policy_of(policy: str, **given: object) -> RetryPolicy | None:
    return parse_retry({"policy": policy, **given}, ordered_source=True)


def reason(
    where: dict[str, Any],
    sent_ms: int = NOW_MS,
    expires_ms: int = NOW_MS + 60_000,
    **given: Any,
) -> str | None:
    """The reason to give up the message at the second of two places, whose values are given."""
    pairs = {name: (b"" if name == "nonces" else 0, value) for name, value in given.items()}
    one = parcel(2, **pairs, sent_ms=sent_ms, expires_ms=expires_ms)
    return dead_letter_reason(source(**where), one, 1, NOW_MS)


def test_a_message_is_given_up_when_it_was_received_as_often_as_it_may() -> None:
    where = {"dead_letter": dead_letter(max_receives=3)}
    assert reason(where, receives=3) == "max_receives"
    assert reason(where, receives=4) == "max_receives"
    assert reason(where, receives=2) is None


def test_a_message_is_given_up_when_it_is_older_than_it_may_be() -> None:
    where = {"dead_letter": dead_letter(max_age_seconds=300)}
    assert reason(where, sent_ms=NOW_MS - 300_001) == "max_age"
    assert reason(where, sent_ms=NOW_MS - 300_000) is None


@pytest.mark.parametrize(
    ("pauses", "expected"),
    [
        ([], "max_age"),
        ([(-350_000, -250_001)], "max_age"),
        ([(-350_000, -250_000)], None),
        ([(-500_000, -300_001)], "max_age"),
        ([(-500_000, -300_000)], None),
        ([(-300_000, -290_000), (-90_000, 0)], None),
        ([(-99_999, None)], "max_age"),
        ([(-100_000, None)], None),
    ],
)
def test_a_message_does_not_age_while_its_source_is_paused(
    pauses: list[tuple[int, int | None]], expected: str | None
) -> None:
    """Sent 400 s ago, where 300 s are allowed; pauses in milliseconds from now, None: it lasts."""
    at = tuple((NOW_MS + since, 0 if to is None else NOW_MS + to) for since, to in pauses)
    where = {"dead_letter": dead_letter(max_age_seconds=300), "pauses": at}
    assert reason(where, sent_ms=NOW_MS - 400_000) == expected


def test_age_is_told_before_the_number_of_receives() -> None:
    where = {"dead_letter": dead_letter(max_age_seconds=300, max_receives=1)}
    assert reason(where, sent_ms=NOW_MS - 300_001, receives=1) == "max_age"
    assert reason(where, sent_ms=NOW_MS, receives=1) == "max_receives"


def test_a_message_is_given_up_when_its_retries_are_used_up() -> None:
    where = {"dead_letter": dead_letter(), "retry": policy_of("unordered", max_retries=2)}
    assert reason(where, receives=3) == "retries"
    assert reason(where, receives=2) is None


def test_without_retries_the_first_delivery_is_the_last() -> None:
    where = {"dead_letter": dead_letter(), "retry": policy_of("unordered", max_retries=0)}
    assert reason(where, receives=1) == "retries"
    assert reason(where, receives=0) is None


def test_retries_without_end_give_nothing_up() -> None:
    where = {"dead_letter": dead_letter(), "retry": policy_of("ordered")}
    assert reason(where, receives=10**6) is None


OLD_AND_TIRED = {"sent_ms": NOW_MS - 10**9, "receives": 1_000}
STRICT = {"dead_letter": DeadLetter("dead", max_receives=1, max_age_seconds=300)}


def test_a_held_message_is_never_given_up() -> None:
    assert reason(STRICT, **OLD_AND_TIRED, visible_ms=NOW_MS + 1, nonces=NONCE) is None
    assert reason(STRICT, **OLD_AND_TIRED, visible_ms=NOW_MS, nonces=NONCE) == "max_age"


def test_a_still_delayed_message_is_never_given_up() -> None:
    assert reason(STRICT, sent_ms=NOW_MS - 10**9, visible_ms=NOW_MS + 1) is None
    assert reason(STRICT, sent_ms=NOW_MS - 10**9, visible_ms=NOW_MS) == "max_age"


def test_a_message_waiting_for_its_retry_may_be_too_old_but_not_too_often_received() -> None:
    waiting = {"visible_ms": NOW_MS, "waits_ms": 10, "receives": 1_000}
    assert reason(STRICT, sent_ms=NOW_MS - 10**9, **waiting) == "max_age"
    assert reason(STRICT, sent_ms=NOW_MS, **waiting) is None
    over = {**waiting, "visible_ms": NOW_MS - 10}
    assert reason(STRICT, sent_ms=NOW_MS, **over) == "max_receives"


@pytest.mark.parametrize("gone", [{"visible_ms": 0}, {"visible_ms": -1}, {"expires_ms": NOW_MS}])
def test_a_removed_or_expired_message_is_not_given_up(gone: dict[str, int]) -> None:
    assert reason(STRICT, **{**OLD_AND_TIRED, **gone}) is None
    assert reason(STRICT, **OLD_AND_TIRED, expires_ms=NOW_MS + 1) == "max_age"


def test_without_a_dead_letter_queue_a_queue_gives_nothing_up() -> None:
    where = {"retry": policy_of("unordered", max_retries=0)}
    assert reason(where, **OLD_AND_TIRED) is None


def test_a_published_message_is_rescued_two_minutes_before_its_day_is_over() -> None:
    where = {"subscription": "s", "dead_letter": dead_letter(), "retry": policy_of("backoff")}
    last_ms = NOW_MS - (86_400_000 - 120_000)
    assert reason(where, sent_ms=last_ms - 1, receives=1) == "expired"
    assert reason(where, sent_ms=last_ms, receives=1) is None
    waits = {"receives": 1, "visible_ms": NOW_MS, "waits_ms": 10}
    assert reason(where, sent_ms=last_ms - 1, **waits) == "expired"
    assert reason(where, sent_ms=last_ms - 1, receives=1_000) == "retries"


def test_a_published_message_held_to_its_end_is_given_up_behind_it() -> None:
    where = {"subscription": "s", "dead_letter": dead_letter(), "retry": policy_of("backoff")}
    over = {"sent_ms": NOW_MS - 86_400_000, "expires_ms": NOW_MS}
    assert reason(where, **over, receives=1, visible_ms=NOW_MS, nonces=NONCE) == "expired"
    assert reason(where, **over, receives=0) is None
    assert reason({**where, "dead_letter": None}, **over, receives=1) is None


def test_an_unreceived_published_message_can_be_received_to_its_end() -> None:
    where = {"subscription": "s", "dead_letter": dead_letter(), "retry": policy_of("backoff")}
    assert reason(where, sent_ms=NOW_MS - 86_399_999) is None


def test_the_age_of_a_subscriptions_messages_is_told_by_their_day_alone() -> None:
    aged = dead_letter(max_age_seconds=300)
    assert age_limit_ms(source(dead_letter=aged)) == 300_000
    assert age_limit_ms(source(dead_letter=aged, subscription="s")) == 86_280_000
    assert age_limit_ms(source(dead_letter=dead_letter(max_receives=1))) is None
    assert age_limit_ms(source(subscription="s")) is None


def test_a_subscription_without_a_dead_letter_queue_drops_by_its_policy() -> None:
    dropping = {"subscription": "s", "retry": policy_of("backoff")}
    assert reason(dropping, receives=4) == "retries"
    assert reason(dropping, receives=3) is None
    assert reason({**dropping, "retry": policy_of("exponential_decay")}, receives=10**6) is None


@pytest.mark.parametrize(
    ("policy", "drops", "keeps"),
    [
        ("backoff", True, False),
        ("exponential_decay", False, True),
        ("unordered", False, False),
        (None, False, False),
    ],
)
def test_only_a_subscription_without_a_dead_letter_queue_drops_or_keeps(
    policy: str | None, drops: bool, keeps: bool
) -> None:
    retry = policy_of(policy) if policy else None
    alone = source(subscription="s", retry=retry)
    assert (alone.drops, alone.keeps_used_up, alone.traced) == (drops, keeps, True)
    for other in (
        source(retry=retry),
        source(subscription="s", retry=retry, dead_letter=dead_letter()),
    ):
        assert not other.drops
        assert not other.keeps_used_up
    assert not source(retry=retry).traced


def test_reading_begins_at_the_oldest_possible_message_with_some_slack() -> None:
    slack_ms = 130_000
    assert source().query_from_ms(NOW_MS, 1) == NOW_MS - 60_000 - slack_ms
    assert source(purged_ms=NOW_MS - 5).query_from_ms(NOW_MS, 1) == NOW_MS - 5 - slack_ms
    assert source(purged_ms=5).query_from_ms(NOW_MS, 1) == NOW_MS - 60_000 - slack_ms
    assert source().query_from_ms(NOW_MS, 2) == NOW_MS - 60_000 - 2 * slack_ms
    assert source().query_from_ms(NOW_MS, 0.5) == NOW_MS - 60_000 - slack_ms // 2


def test_reading_never_begins_before_time_itself() -> None:
    assert source().query_from_ms(60_000 + 130_000, 1) == 0
    assert source().query_from_ms(60_000 + 130_002, 1) == 2
    assert source().query_from_ms(7, 1) == 0
