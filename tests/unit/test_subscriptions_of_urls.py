"""What subscriptions that post to a URL have alone: their bounds, their breaker, their own text."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.topics import subscription

from cirrusmq.base.errors import InvalidParameter
from cirrusmq.model.breaker import Breaker, BreakerInput
from cirrusmq.model.topic import SubscriptionInput, checked, over

SECURE, PLAIN = "https://example.com/", "http://example.com/"


# ---- bounds and breaker -------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["pull", "queue"])
@pytest.mark.parametrize(
    ("given", "detail"),
    [
        ({"rate": 5}, "rate: is allowed only with protocol http"),
        ({"max_in_flight": 16}, "max_in_flight: is allowed only with protocol http"),
        ({"keep_answers": True}, "keep_answers: is allowed only with protocol http"),
        (
            {"breaker": BreakerInput()},
            "breaker: is allowed only with protocol http; a function has invoke.breaker",
        ),
    ],
)
def test_attributes_of_posts_are_refused_without_a_url(
    protocol: str, given: dict[str, Any], detail: str
) -> None:
    with pytest.raises(InvalidParameter) as refused:
        over(subscription(protocol), SubscriptionInput(**given))
    assert refused.value.detail == detail


@pytest.mark.parametrize("protocol", ["pull", "queue"])
def test_every_subscription_may_keep_no_answers(protocol: str) -> None:
    before = subscription(protocol)
    assert over(before, SubscriptionInput(keep_answers=False)) == before


def test_attributes_of_posts_change_and_null_takes_them_away() -> None:
    given = SubscriptionInput(rate=5, keep_answers=True, breaker=BreakerInput(share=0.25))
    changed = over(subscription("http"), given)
    assert changed == subscription("http", rate=5, keep_answers=True, breaker=Breaker(0.25))
    gone = over(changed, SubscriptionInput(rate=None, keep_answers=False, breaker=None))
    assert gone == subscription("http")


@pytest.mark.parametrize(
    ("policy", "ordered"),
    [("exponential_decay", False), ("backoff", False), ("http_ordered", True)],
)
def test_a_breaker_is_refused_beside_a_policy_of_one_message_at_a_time(
    policy: str, ordered: bool
) -> None:
    guarded = subscription(
        "http", breaker=Breaker(), retry={"policy": policy}, ordered=ordered, endpoint=SECURE
    )
    with pytest.raises(InvalidParameter) as refused:
        checked(guarded, "tags")
    assert refused.value.detail == (
        f"breaker: is not allowed with the policy {policy}, which tries one message at a time"
        " while it fails"
    )


@pytest.mark.parametrize("policy", ["unordered", "http_unordered"])
def test_a_breaker_is_kept_beside_a_non_blocking_policy(policy: str) -> None:
    guarded = subscription("http", breaker=Breaker(0.25), retry={"policy": policy})
    assert checked(guarded, "tags") == guarded


# ---- the text of a message ----------------------------------------------------------------------


BOTH = {"$http": "for http", "$https": "for https"}


@pytest.mark.parametrize(
    ("protocol", "endpoint", "attributes", "text"),
    [
        ("http", SECURE, BOTH, "for https"),
        ("http", PLAIN, BOTH, "for http"),
        ("http", SECURE, {"$http": "for http"}, "body"),
        ("http", PLAIN, {"$https": "for https"}, "body"),
        ("http", SECURE, {"a": "b"}, "body"),
        ("http", SECURE, {}, "body"),
        ("http", None, BOTH, "body"),
        ("queue", "https", BOTH, "body"),
        ("queue", "orders", BOTH, "body"),
        ("pull", None, BOTH, "body"),
    ],
)
def test_a_url_gets_the_text_of_its_scheme_and_everyone_else_the_body(
    protocol: str, endpoint: str | None, attributes: dict[str, str | bytes], text: str
) -> None:
    assert subscription(protocol, endpoint=endpoint).body_for(attributes, "body") == text
