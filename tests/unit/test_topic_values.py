"""A topic and a subscription as values: their legal attributes, and the rules across them."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from tests.unit.parcels import SEND_ID
from tests.unit.topics import subscription, topic

from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidFilter, InvalidParameter
from cirrusmq.filters.filterable import Filterable
from cirrusmq.model.described import with_given
from cirrusmq.model.invoke import Invoke, InvokeInput
from cirrusmq.model.topic import (
    Subscription,
    SubscriptionInput,
    TopicAttributes,
    TopicInput,
    change_topic_attributes,
    checked,
    create_subscription,
    over,
    own_dead_letter_queue,
    partitions_of,
)


def refusal(protocol: str, **given: Any) -> str:
    with pytest.raises(InvalidParameter) as refused:
        checked(subscription(protocol, **given), "tags")
    assert refused.value.detail.startswith(f"{refused.value.parameter}: ")
    return refused.value.detail


@pytest.mark.parametrize("partitions", [1, 8, 255])
def test_a_send_lies_in_one_of_the_logs_partitions(partitions: int) -> None:
    sent_to = topic(partitions=partitions)
    assert sent_to.log_partition(SEND_ID) == zlib.crc32(SEND_ID.encode()) % partitions


@pytest.mark.parametrize(
    ("protocol", "given", "own"),
    [
        ("queue", {"endpoint": "orders", "filter": {"tags": ["a"]}}, {}),
        (
            "http",
            {"endpoint": "https://a.example/"},
            {"max_in_flight": 16, "keep_answers": False, "breaker": None, "rate": None}
            | {"ordered": False},
        ),
        ("pull", {"ordered": True}, {"mode": "clustering", "invoke": None, "start": "latest"}),
    ],
)
def test_a_subscription_is_shown_with_its_protocols_attributes(
    protocol: str, given: dict[str, Any], own: dict[str, Any]
) -> None:
    shared: dict[str, Any] = {"protocol": protocol, "filter": None, "retry": None, "labels": {}}
    shared |= {"content_format": "json", "dead_letter_queue": None}
    assert subscription(protocol, **given).attributes() == shared | own | given


# ---- a change -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("protocol", "http"),
        ("endpoint", "x"),
        ("mode", "broadcasting"),
        ("ordered", True),
        ("start", "earliest"),
    ],
)
def test_a_subscriptions_basic_attributes_are_fixed(member: str, value: Any) -> None:
    before = subscription()
    with pytest.raises(InvalidParameter) as refused:
        over(before, SubscriptionInput(**{member: value}))
    assert refused.value.detail == f"{member}: is fixed when the subscription is created"
    same: dict[str, Any] = {member: getattr(before, member)}
    assert over(before, SubscriptionInput(**same)) == before


def test_given_values_replace_earlier_ones_and_null_removes_them() -> None:
    before = subscription(filter={"tags": ["a"]}, dead_letter_queue="dead")
    given = SubscriptionInput(filter=None, retry={"policy": "unordered"})
    expected = subscription(dead_letter_queue="dead", retry={"policy": "unordered"})
    assert over(before, given) == expected


def test_a_groups_function_changes_and_null_takes_it_away() -> None:
    named = over(subscription(), SubscriptionInput(invoke=InvokeInput(function="work", batch=3)))
    assert named == subscription(invoke=Invoke(function="work", batch=3))
    assert over(named, SubscriptionInput()) == named
    assert over(named, SubscriptionInput(invoke=None)) == subscription()


def test_the_bytes_of_labels_are_bounded() -> None:
    within, beyond = {"a": "x" * (limits.LABELS_BYTES - 1)}, {"a": "x" * limits.LABELS_BYTES}
    assert over(subscription(), SubscriptionInput(labels=within)).labels == within
    assert with_given(TopicAttributes(), TopicInput(labels=within)).labels == within
    with pytest.raises(InvalidParameter, match=r"^labels: must have at most "):
        over(subscription(), SubscriptionInput(labels=beyond))
    with pytest.raises(InvalidParameter, match=r"^labels: must have at most "):
        with_given(TopicAttributes(), TopicInput(labels=beyond))


# ---- the rules ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"protocol": "pull", "mode": "broadcasting"},
        {"protocol": "pull", "ordered": True, "dead_letter_queue": "dead"},
        {"protocol": "http", "ordered": True, "content_format": "simplified"},
        {"protocol": "http", "dead_letter_queue": "dead", "retry": {"policy": "backoff"}},
        {"protocol": "pull", "ordered": True, "retry": {"policy": "ordered"}},
        {"protocol": "pull", "retry": {"policy": "custom", "waits": [1, 2.5], "jitter": 0}},
        {"protocol": "queue", "filter": {"tags": ["a"]}},
        {"protocol": "pull", "invoke": Invoke(function="work"), "start": "earliest"},
        {"protocol": "pull", "ordered": True, "invoke": Invoke(function="work")},
        {"protocol": "pull", "start": "2026-11-18T11:06:40Z"},
    ],
)
def test_valid_attributes_are_kept_as_given(given: dict[str, Any]) -> None:
    assert checked(subscription(**given), "tags") == subscription(**given)


@pytest.mark.parametrize(
    ("protocol", "given", "detail"),
    [
        (
            "queue",
            {"mode": "broadcasting"},
            "mode: broadcasting is allowed only with protocol pull",
        ),
        ("http", {"mode": "broadcasting"}, "mode: broadcasting is allowed only with protocol pull"),
        ("queue", {"ordered": True}, "ordered: is allowed only with protocol pull or http"),
        (
            "pull",
            {"content_format": "simplified"},
            "content_format: is allowed only with protocol http",
        ),
        (
            "queue",
            {"content_format": "simplified"},
            "content_format: is allowed only with protocol http",
        ),
        (
            "queue",
            {"dead_letter_queue": "dead"},
            "dead_letter_queue: must be null: this subscription retries nothing",
        ),
        (
            "pull",
            {"mode": "broadcasting", "dead_letter_queue": "dead"},
            "dead_letter_queue: must be null: this subscription retries nothing",
        ),
        (
            "pull",
            {"dead_letter_queue": "9."},
            "dead_letter_queue: must be 1 to 80 characters: letters, digits, '-' and '_', at the "
            "end .fifo",
        ),
        (
            "pull",
            {"mode": "broadcasting", "ordered": True},
            "ordered: is allowed only in mode clustering",
        ),
        ("queue", {"retry": {"policy": "backoff"}}, "retry: must be null: nothing is retried here"),
        (
            "pull",
            {"mode": "broadcasting", "retry": {"policy": "unordered"}},
            "retry: must be null: nothing is retried here",
        ),
        (
            "pull",
            {"retry": {"policy": "ordered"}},
            "retry.policy: ordered needs an ordered queue or subscription",
        ),
    ],
)
def test_contradicting_attributes_are_refused(
    protocol: str, given: dict[str, Any], detail: str
) -> None:
    assert refusal(protocol, **given) == detail


@pytest.mark.parametrize(
    ("member", "value"), [("invoke", Invoke(function="work")), ("start", "earliest")]
)
@pytest.mark.parametrize(
    "place", [{"protocol": "queue"}, {"protocol": "http"}, {"mode": "broadcasting"}], ids=str
)
def test_a_function_and_a_start_are_of_groups(
    place: dict[str, str], member: str, value: Any
) -> None:
    given: dict[str, Any] = {"protocol": "pull", **place, member: value}
    assert refusal(**given) == (f"{member}: is allowed only with protocol pull, in mode clustering")


def test_a_filter_is_kept_in_its_own_form_and_belongs_to_the_kind_of_the_topic() -> None:
    assert checked(subscription(filter={"tag_expression": "*"}), "tags").filter is None
    with pytest.raises(InvalidParameter):
        checked(subscription(filter={"more": 1}), "tags")
    bound = subscription(filter={"binding_keys": ["a.*"]})
    assert checked(bound, "routing_key") == bound
    assert bound.selection("routing_key").matches(Filterable((), "a.b", {}))
    assert not bound.selection("routing_key").matches(Filterable((), "b.a", {}))


def test_tags_of_a_filter_may_have_64_characters() -> None:
    filter = {"tags": ["a" * 64]}
    assert checked(subscription(filter=filter), "tags").filter == filter
    with pytest.raises(InvalidFilter, match="must have 1 to 64 characters"):
        checked(subscription(filter={"tags": ["a" * 65]}), "tags")


def test_a_filter_of_bodies_makes_a_value_refused_by_older_releases() -> None:
    by_body = checked(subscription(filter={"body_policy": {"a": ["x"]}}), "tags")
    assert (by_body.reads_bodies, by_body.format) == (True, 2)
    other = over(by_body, SubscriptionInput(filter={"tags": ["a"]}))
    assert checked(other, "tags").format == 1


# ---- retries ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "given", "policy"),
    [
        ("pull", {}, "unordered"),
        ("pull", {"ordered": True}, "ordered"),
        ("http", {}, "exponential_decay"),
        ("http", {"ordered": True}, "http_ordered"),
        ("http", {"retry": {"policy": "backoff"}}, "backoff"),
        ("pull", {"mode": "broadcasting"}, None),
        ("queue", {}, None),
    ],
)
def test_a_subscription_retries_by_its_own_or_its_protocols_policy(
    protocol: str, given: dict[str, Any], policy: str | None
) -> None:
    in_force = subscription(protocol, **given).policy
    assert (in_force.policy if in_force else None) == policy
    assert checked(subscription(protocol, **given), "tags").retry == given.get("retry")


def test_a_url_has_as_many_partitions_as_its_subscription_was_made_with() -> None:
    made = {count: subscription("http", partitions=count) for count in (1, 8)}
    assert [made[count].partition_of(SEND_ID) for count in made] == [
        0,
        zlib.crc32(SEND_ID.encode()) % 8,
    ]


def test_how_much_is_posted_at_once_may_change() -> None:
    changed = over(subscription("http"), SubscriptionInput(max_in_flight=256))
    assert changed.attributes()["max_in_flight"] == 256


# ---- created ------------------------------------------------------------------------------------


def new_subscription(protocol: str, **given: Any) -> Subscription:
    """One that the service has not stored yet."""
    return subscription(protocol, id="", created_ms=0, modified_ms=0, **given)


def test_a_new_subscription_has_its_topics_names_and_the_defaults() -> None:
    made = create_subscription(topic(partitions=12), "readers", SubscriptionInput(protocol="pull"))
    assert made == new_subscription("pull", partitions=12, log_partitions=12)
    assert (made.mode, made.ordered, made.endpoint) == ("clustering", False, None)


def test_a_new_subscription_has_all_given_values() -> None:
    pulled = SubscriptionInput(
        protocol="pull",
        ordered=True,
        dead_letter_queue="dead",
        start="earliest",
        invoke=InvokeInput(function="work"),
    )
    assert create_subscription(topic(), "readers", pulled) == new_subscription(
        "pull",
        ordered=True,
        dead_letter_queue="dead",
        start="earliest",
        invoke=Invoke(function="work"),
        log_partitions=8,
    )
    posted = SubscriptionInput(
        protocol="http",
        endpoint="https://example.com/",
        filter={"binding_keys": ["a.*"]},
        content_format="simplified",
        max_in_flight=3,
    )
    wide = topic(filter="routing_key", partitions=9)
    assert create_subscription(wide, "readers", posted) == new_subscription(
        "http",
        partitions=16,
        endpoint="https://example.com/",
        filter={"binding_keys": ["a.*"]},
        content_format="simplified",
        max_in_flight=3,
        log_partitions=9,
    )
    everyone = SubscriptionInput(protocol="pull", mode="broadcasting")
    assert create_subscription(topic(), "readers", everyone).mode == "broadcasting"


@pytest.mark.parametrize(
    ("given", "detail"),
    [
        ({}, "protocol: must be queue, http or pull"),
        (
            {"protocol": "pull", "endpoint": "orders"},
            "endpoint: is not allowed with protocol pull",
        ),
        ({"protocol": "queue"}, "endpoint: must be a queue of the account, or a URL"),
        ({"protocol": "http"}, "endpoint: must be a queue of the account, or a URL"),
        (
            {"protocol": "queue", "endpoint": "orders", "ordered": True},
            "ordered: is allowed only with protocol pull or http",
        ),
    ],
)
def test_a_new_subscription_against_the_rules_is_refused(given: Any, detail: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        create_subscription(topic(), "readers", SubscriptionInput(**given))
    assert refused.value.detail == detail


@pytest.mark.parametrize(
    ("protocol", "of_topic", "partitions"),
    [
        ("pull", 1, 1),
        ("queue", 255, 255),
        ("http", 1, 8),
        ("http", 8, 8),
        ("http", 9, 16),
        ("http", 255, 16),
    ],
)
def test_a_url_has_8_partitions_or_16_and_others_have_those_of_the_log(
    protocol: Any, of_topic: int, partitions: int
) -> None:
    assert partitions_of(protocol, topic(partitions=of_topic)) == partitions


def test_the_own_dead_letter_queue_has_the_subscriptions_id_in_its_name() -> None:
    assert own_dead_letter_queue("ba9876543210") == "dlq-ba9876543210"


# ---- a topic's change ---------------------------------------------------------------------------


def test_only_given_attributes_of_a_topic_change() -> None:
    before = TopicAttributes(filter="routing_key", partitions=9, description="x")
    given = TopicInput(max_message_bytes=1_024, description=None)
    after = TopicAttributes(filter="routing_key", partitions=9, max_message_bytes=1_024)
    assert with_given(before, given) == after
    assert change_topic_attributes(before, given) == after
    assert with_given(TopicAttributes(), TopicInput(partitions=9)).partitions == 9


@pytest.mark.parametrize(
    ("member", "value"), [("filter", "routing_key"), ("partitions", 9), ("partitions", 7)]
)
def test_a_topics_filter_and_partitions_are_fixed(member: str, value: Any) -> None:
    verb = "is" if member == "filter" else "are"
    changed: dict[str, Any] = {member: value}
    with pytest.raises(InvalidParameter) as refused:
        change_topic_attributes(TopicAttributes(), TopicInput(**changed))
    assert refused.value.detail == f"{member}: {verb} fixed when the topic is created"
    same: dict[str, Any] = {member: getattr(TopicAttributes(), member)}
    assert change_topic_attributes(TopicAttributes(), TopicInput(**same)) == TopicAttributes()
