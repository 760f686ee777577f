from __future__ import annotations

from typing import Any

import pytest

from cirrusmq_local.cloud.cloudformation import TemplateError
from cirrusmq_local.cloud.patterns import compile_patterns

INSERTED_LOG = {"eventName": ["INSERT"], "dynamodb": {"Keys": {"pk": {"S": [{"prefix": "L#"}]}}}}


def record(name: str, pk: Any) -> dict[str, Any]:
    return {"eventName": name, "dynamodb": {"Keys": {"pk": pk}}}


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        (record("INSERT", {"S": "L#1"}), True),
        (record("MODIFY", {"S": "L#1"}), False),
        (record("INSERT", {"S": "Q#1"}), False),
        (record("INSERT", {"S": "l#1"}), False),
        (record("INSERT", {"N": "1"}), False),
        (record("INSERT", "L#1"), False),
        ({"eventName": "INSERT"}, False),
        ({}, False),
    ],
)
def test_every_condition_of_a_pattern_must_hold(held: Any, wanted: bool) -> None:
    assert compile_patterns([INSERTED_LOG])(held) is wanted


def test_one_of_several_patterns_is_enough() -> None:
    wanted = compile_patterns([INSERTED_LOG, {"eventName": ["REMOVE", "MODIFY"]}])
    assert wanted(record("REMOVE", {"S": "Q#1"}))
    assert wanted(record("MODIFY", {"S": "Q#1"}))
    assert wanted(record("INSERT", {"S": "L#1"}))
    assert not wanted(record("INSERT", {"S": "Q#1"}))


def test_a_pattern_may_want_an_attribute_of_the_new_image() -> None:
    wanted = compile_patterns([{"dynamodb": {"NewImage": {"c": {"S": ["1"]}}}}])
    assert wanted({"dynamodb": {"NewImage": {"c": {"S": "1"}, "t": {"N": "1"}}}})
    assert not wanted({"dynamodb": {"NewImage": {"t": {"N": "1"}}}})
    assert not wanted({"dynamodb": {"NewImage": None}})


def test_without_patterns_everything_is_wanted() -> None:
    assert compile_patterns([])({})


@pytest.mark.parametrize(
    "pattern",
    [
        {"eventName": [{"anything-but": ["INSERT"]}]},
        {"eventName": [{"prefix": "A", "suffix": "B"}]},
        {"eventName": [{"prefix": 1}]},
        {"eventName": []},
        {"eventName": "INSERT"},
        {"$or": [{"eventName": ["INSERT"]}]},
        {"userIdentity": {"type": ["Service"]}},
        {"dynamodb": {"OldImage": {"pk": {"S": ["a"]}}}},
    ],
)
def test_an_unknown_filter_is_refused_at_once(pattern: Any) -> None:
    with pytest.raises(TemplateError):
        compile_patterns([pattern])
