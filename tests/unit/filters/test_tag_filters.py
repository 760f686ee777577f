"""Tags of messages and of subscriptions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cirrusmq.base.errors import InvalidFilter, InvalidParameter
from cirrusmq.filters.filterable import Filterable
from cirrusmq.filters.selection import compile_filter
from cirrusmq.filters.tags import check_tags

VECTORS = json.loads((Path(__file__).parent / "tags.json").read_text())["rows"]
NOT_TAGS = ["", "x" * 17, 5, None, True, b"tag", ["tag"], "a\nb", "a\x7f", "\ud800", "\udfff"]


def passes(filter: dict[str, object] | None, *tags: str) -> bool:
    return compile_filter(filter, "tags").matches(Filterable(tags, "", {}))


@pytest.mark.parametrize(("of_subscription", "of_message", "delivered"), VECTORS)
def test_the_known_results_hold(
    of_subscription: list[str], of_message: list[str], delivered: bool
) -> None:
    assert passes({"tags": of_subscription}, *of_message) is delivered


def test_without_a_filter_every_message_passes_tagged_or_not() -> None:
    assert passes(None)
    assert passes(None, "apple")


@pytest.mark.parametrize("filter", [{"tags": []}, {"tag_expression": "*"}])
def test_no_tags_and_the_star_mean_no_filter(filter: dict[str, object]) -> None:
    assert passes(filter)
    assert passes(filter, "apple")
    assert compile_filter(filter, "tags").normalized() is None
    assert compile_filter(filter, "tags") == compile_filter(None, "tags")


def test_one_shared_tag_is_enough() -> None:
    assert passes({"tags": ["a", "b"]}, "x", "b")
    assert not passes({"tags": ["a", "b"]}, "x", "y")


def test_a_message_without_tags_never_reaches_a_subscription_with_tags() -> None:
    assert not passes({"tags": ["a"]})
    assert not passes({"tag_expression": "a||b"})


def test_tags_match_exactly_and_with_case() -> None:
    assert not passes({"tags": ["apple"]}, "Apple")
    assert not passes({"tags": ["apple"]}, "app")
    assert not passes({"tags": ["app"]}, "apple")


def test_the_star_in_a_list_is_a_tag_like_any_other() -> None:
    assert passes({"tags": ["*"]}, "*")
    assert not passes({"tags": ["*"]}, "a")


@pytest.mark.parametrize(
    ("expression", "tags"),
    [
        ("TagA", {"TagA"}),
        ("TagA||TagB", {"TagA", "TagB"}),
        (" TagA || TagB ", {"TagA", "TagB"}),
        ("A|B", {"A|B"}),
        ("||".join(f"t{n}" for n in range(10)), {f"t{n}" for n in range(10)}),
        ("x" * 16, {"x" * 16}),
    ],
)
def test_an_expression_names_tags_between_double_bars(expression: str, tags: set[str]) -> None:
    for tag in tags:
        assert passes({"tag_expression": expression}, tag)
    assert not passes({"tag_expression": expression}, "other")
    assert compile_filter({"tag_expression": expression}, "tags").normalized() == {
        "tag_expression": expression
    }


@pytest.mark.parametrize(
    "expression",
    [
        "",
        " ",
        "||",
        "a||",
        "||a",
        "a||||b",
        "*||a",
        "a||*",
        "x" * 17,
        "||".join(f"t{n}" for n in range(11)),
        None,
        5,
        ["a"],
    ],
)
def test_an_unparsable_expression_is_refused(expression: object) -> None:
    with pytest.raises(InvalidFilter, match="tag_expression"):
        compile_filter({"tag_expression": expression}, "tags")


def test_a_list_is_shown_as_it_was_given() -> None:
    assert compile_filter({"tags": ["b", "a"]}, "tags").normalized() == {"tags": ["b", "a"]}


def test_ten_tags_of_sixteen_characters_are_the_most() -> None:
    tags = [f"{n:016}" for n in range(10)]
    assert passes({"tags": tags}, tags[9])
    assert check_tags(tags, "tags") == tuple(tags)


def test_a_character_may_take_several_bytes() -> None:
    assert check_tags(["标" * 16], "tags") == ("标" * 16,)
    assert passes({"tags": ["标" * 16]}, "标" * 16)


@pytest.mark.parametrize("tags", [[f"t{n}" for n in range(11)], "a", None, {"a": 1}, 5, True])
def test_a_filter_with_too_many_tags_or_no_list_is_refused(tags: object) -> None:
    with pytest.raises(InvalidFilter, match="tags"):
        compile_filter({"tags": tags}, "tags")


@pytest.mark.parametrize("tag", NOT_TAGS)
def test_a_filter_with_a_bad_tag_is_refused_with_its_number(tag: object) -> None:
    with pytest.raises(InvalidFilter, match="tag 2"):
        compile_filter({"tags": ["good", tag]}, "tags")


def test_a_message_may_have_no_tags() -> None:
    assert check_tags([], "messages[0].tags") == ()


@pytest.mark.parametrize("tags", ["a", None, {"a"}, {"a": 1}, 5])
def test_tags_of_a_message_are_a_list(tags: object) -> None:
    with pytest.raises(InvalidParameter) as refused:
        check_tags(tags, "messages[0].tags")
    assert refused.value.detail == "messages[0].tags: must be a list of strings"
    assert refused.value.parameter == "messages[0].tags"


def test_an_eleventh_tag_of_a_message_is_refused_with_the_range() -> None:
    with pytest.raises(InvalidParameter, match=r"^tags: must have at most 10 tags, not 11$"):
        check_tags([f"t{n}" for n in range(11)], "tags")


@pytest.mark.parametrize("tag", NOT_TAGS)
def test_a_bad_tag_of_a_message_is_refused_and_named(tag: object) -> None:
    with pytest.raises(InvalidParameter) as refused:
        check_tags(["good", tag], "tags")
    assert refused.value.parameter == "tags[1]"


FAULTS = [
    (5, "must be a string"),
    ("", "must have 1 to 16 characters, not 0"),
    ("x" * 17, "must have 1 to 16 characters, not 17"),
    ("a\x1f", "must not have control characters"),
    ("\x7f", "must not have control characters"),
    ("a\ud800", "must not have half of a surrogate pair"),
    ("a\udfff", "must not have half of a surrogate pair"),
]


@pytest.mark.parametrize(("tag", "fault"), FAULTS)
def test_the_fault_of_a_tag_is_told(tag: object, fault: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        check_tags([tag], "tags")
    assert refused.value.detail == f"tags[0]: {fault}"
    with pytest.raises(InvalidFilter) as unfit:
        compile_filter({"tags": ["good", tag]}, "tags")
    assert unfit.value.detail == f"tags: tag 2: {fault}"


def test_a_blank_and_the_neighbours_of_surrogates_are_characters() -> None:
    tags = ("a b", " ", "\ud7ff", "\ue000", "~", "\x80")
    assert check_tags(tags, "tags") == tags


@pytest.mark.parametrize(
    ("filter", "detail"),
    [
        ({"tags": "a"}, "tags: must be a list of strings"),
        ({"tags": ["a"] * 11}, "tags: must have at most 10 tags, not 11"),
        ({"tag_expression": 5}, "tag_expression: must be a string"),
        ({"tag_expression": "a||*"}, "tag_expression: * must be the only tag"),
        ({"tag_expression": "a||"}, "tag_expression: tag 2: must have 1 to 16 characters, not 0"),
    ],
)
def test_a_refusal_names_the_member_and_its_valid_form(
    filter: dict[str, object], detail: str
) -> None:
    with pytest.raises(InvalidFilter) as refused:
        compile_filter(filter, "tags")
    assert refused.value.detail == detail
