"""Which subscriptions a message reaches, through HTTP: tags, routing keys, SQL and policies.

What each filter lets pass and refuses is in `tests/unit/filters`; that it is asked is here.
"""

from __future__ import annotations

from typing import ClassVar

import pytest
from tests.service.topics import TestTopic

from cirrusmq_local.testing import Client, World


@pytest.fixture
def routes(alice: Client) -> TestTopic:
    """A topic whose messages have routing keys."""
    return TestTopic(alice, "routes", filter="routing_key")


class TestTags:
    @pytest.mark.parametrize(
        ("filter", "tags", "reached"),
        [
            (None, [], True),
            ({"tags": ["a", "b"]}, ["b", "c"], True),
            ({"tags": ["a"]}, ["b"], False),
            ({"tags": ["a"]}, [], False),
            ({"tag_expression": "TagA||TagB"}, ["TagB"], True),
            ({"tags": ["日本"]}, ["日本"], True),
        ],
    )
    def test_a_message_reaches_groups_with_its_tag(
        self, topic: TestTopic, filter: object, tags: list[str], reached: bool
    ) -> None:
        group = topic.subscribe("group", filter=filter)
        assert topic.matched(tags=tags) == reached
        assert len(group.receive()) == reached

    @pytest.mark.parametrize(
        ("filter", "shown"),
        [
            (None, None),
            ({"tags": []}, None),
            ({"tag_expression": "*"}, None),
            ({"tags": ["b", "a"]}, {"tags": ["b", "a"]}),
            ({"tag_expression": "a||b"}, {"tag_expression": "a||b"}),
            ({"sql": "a = 'b'"}, {"sql": "a = 'b'"}),
        ],
    )
    def test_a_filter_is_shown_as_it_was_given(
        self, topic: TestTopic, filter: object, shown: object
    ) -> None:
        assert topic.subscribe("group", filter=filter).show()["filter"] == shown

    def test_a_batch_is_matched_message_by_message(self, topic: TestTopic) -> None:
        groups = {
            tag: topic.subscribe(f"only-{tag}", filter={"tags": [tag]}) for tag in ("a", "b", "c")
        }
        everything = topic.subscribe("everything")
        topic.try_publish(
            [{"body": tags or "none", "tags": list(tags)} for tags in ("a", "b", "ab", "", "abc")]
        )
        topic.client.world.settle()

        assert groups["a"].bodies() == ["a", "ab", "abc"]
        assert groups["b"].bodies() == ["ab", "abc", "b"]
        assert groups["c"].bodies() == ["abc"]
        assert everything.bodies() == ["a", "ab", "abc", "b", "none"]


class TestRoutingKeys:
    @pytest.mark.parametrize(
        ("keys", "routing_key", "reached"),
        [
            (["1.*.0"], "1.any.0", True),
            (["1.*.0"], "1.2.3.0", False),
            (["1.#.0"], "1.0", True),
            (["1.#.0"], "1.2", False),
            (["#"], "", True),
            (["#"], None, True),
            (["*"], None, False),
            (["x", "y", "z", "w", "a.b"], "a.b", True),
        ],
    )
    def test_star_is_one_word_and_hash_zero_or_more(
        self, routes: TestTopic, keys: list[str], routing_key: str | None, reached: bool
    ) -> None:
        routes.subscribe("group", filter={"binding_keys": keys})
        given = {} if routing_key is None else {"routing_key": routing_key}
        assert routes.matched(**given) == reached

    def test_without_a_filter_everything_comes(self, routes: TestTopic) -> None:
        routes.subscribe("group")
        assert routes.matched(routing_key="a.b") == 1
        assert routes.matched() == 1

    def test_tags_travel_but_do_not_match(self, routes: TestTopic) -> None:
        group = routes.subscribe("group", filter={"binding_keys": ["a"]})
        assert routes.matched(tags=["a"]) == 0
        assert routes.matched(tags=["x"], routing_key="a") == 1
        assert [message["tags"] for message in group.receive()] == [["x"]]


class TestSql:
    EXAMPLE = (
        "a IS NOT NULL AND (price BETWEEN 10 AND 100 OR region IN ('hangzhou', 'shanghai')) "
        "AND TAGS = 'order'"
    )

    @pytest.mark.parametrize(
        ("sql", "attributes", "tags", "reached"),
        [
            (EXAMPLE, {"a": "", "price": "10"}, ["order"], True),
            (EXAMPLE, {"a": "", "price": "10"}, ["other"], False),
            ("TAGS = 'a||b'", {}, ["a", "b"], True),
            ("TRUE", {}, [], True),
            ("FALSE", {}, [], False),
            ("NULL", {}, [], False),
            ("a > 5 OR b = 'x'", {"b": "x", "a": "y"}, [], False),
        ],
    )
    def test_only_true_delivers(
        self,
        topic: TestTopic,
        sql: str,
        attributes: dict[str, str],
        tags: list[str],
        reached: bool,
    ) -> None:
        topic.subscribe("group", filter={"sql": sql})
        assert topic.matched(attributes=attributes, tags=tags) == reached

    def test_tags_and_sql_together_must_both_hold(self, topic: TestTopic) -> None:
        group = topic.subscribe("group", filter={"sql": "n > 5", "tags": ["a", "b"]})
        assert group.show()["filter"] == {"tags": ["a", "b"], "sql": "n > 5"}
        assert topic.matched(attributes={"n": "6"}, tags=["b", "c"]) == 1
        assert topic.matched(attributes={"n": "6"}, tags=["c"]) == 0
        assert topic.matched(attributes={"n": "5"}, tags=["b"]) == 0
        again = topic.try_subscribe(
            "group", protocol="pull", filter={"tags": ["a", "b"], "sql": "n > 5"}
        )
        assert again.status == 200
        group.patch(filter={"tags": ["c"]})
        assert topic.matched(attributes={"n": "5"}, tags=["c"]) == 1

    def test_either_kind_of_topic_filters_on_attributes(self, routes: TestTopic) -> None:
        routes.subscribe("group", filter={"sql": "a = '1'"})
        assert routes.matched(attributes={"a": "1"}, routing_key="x.y") == 1
        assert routes.matched(attributes={"a": "2"}) == 0


class TestPolicies:
    POLICY: ClassVar = {"region": ["eu", {"prefix": "us-"}], "amount": [{"numeric": [">=", 100]}]}

    @pytest.mark.parametrize("start", ["latest", "earliest"])
    def test_a_groups_policy_selects_also_among_earlier_publishes(
        self, world: World, topic: TestTopic, start: str
    ) -> None:
        topic.subscribe("all")
        if start == "latest":
            group = topic.subscribe("group", filter={"policy": self.POLICY})
        for body, region, amount in (("a", "us-1", "250"), ("b", "cn", "250"), ("c", "eu", "99")):
            topic.publish(body, attributes={"region": region, "amount": amount})
        topic.publish("d", attributes={"region": "eu", "amount": "100.5"})
        topic.publish("e")
        if start == "earliest":
            group = topic.subscribe("group", filter={"policy": self.POLICY}, start="earliest")
            world.settle()

        assert group.show()["filter"] == {"policy": self.POLICY}
        received = [each["body"] for _ in range(5) for each in group.receive()]
        assert sorted(received) == ["a", "d"]

    def test_a_filter_is_tried_and_changed(self, topic: TestTopic) -> None:
        group = topic.subscribe("group", filter={"policy": {"kind": ["order"]}})
        messages = [{"body": "x", "attributes": {"kind": kind}} for kind in ("order", "note")]
        tried = topic.client.post(
            f"{topic.path}/match", {"messages": messages, "filter": {"policy": self.POLICY}}
        ).json["messages"]
        assert [each["passes"] for each in tried] == [False, False]
        assert {each["why_not"] for each in tried} == {
            "policy: no condition holds of amount, region"
        }
        assert topic.matched(attributes={"kind": "note"}) == 0
        assert group.patch(filter={"policy": {"kind": ["note"]}, "sql": "n > 1"}).status == 200
        assert topic.matched(attributes={"kind": "note", "n": "2"}) == 1
        assert topic.matched(attributes={"kind": "note", "n": "1"}) == 0
        assert group.patch(filter={"policy": {}}).json["filter"] is None
        refused = group.patch(filter={"policy": {"kind": [{"wildcard": "o*"}]}})
        assert (refused.status, refused.code) == (400, "InvalidFilter")
        assert refused.json["detail"].startswith("policy.kind[0]: 'wildcard' is no operator")
