"""The tables' parameters: their capacity, and tables that are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cirrusmq_local.cloud.cloudformation import StackTemplate


def deployment(root: Path, **given: Any) -> list[StackTemplate]:
    return list(StackTemplate(root / "template.yaml", "cirrusmq", "local", given).stacks())


def tables(root: Path, **given: Any) -> dict[str, Any]:
    """The properties of each table, by its name in the template."""
    (stack,) = (each for each in deployment(root, **given) if each.path.parent.name == "tables")
    found = stack.resolve(stack.document["Resources"])
    return {name: held["Properties"] for name, held in found.items() if "Properties" in held}


def allows(root: Path, rule: str, **given: Any) -> bool:
    """Whether CloudFormation takes these parameters, as far as a rule says."""
    (stack,) = (each for each in deployment(root, **given) if each.path.parent.name == "tables")
    (assertion,) = stack.document["Rules"][rule]["Assertions"]
    assert assertion["AssertDescription"]
    return bool(stack.resolve(assertion["Assert"]))


def test_capacity_is_left_to_dynamodb_unless_it_is_given(root: Path) -> None:
    for properties in tables(root).values():
        assert not {"WarmThroughput", "OnDemandThroughput"} & set(properties)


def test_the_table_of_messages_is_warmed(root: Path) -> None:
    given = tables(root, WarmReadUnits=30_000, WarmWriteUnits=20_000)
    warm = {"ReadUnitsPerSecond": 30_000, "WriteUnitsPerSecond": 20_000}
    assert given["Messages"]["WarmThroughput"] == warm
    assert "WarmThroughput" not in given["Directory"] | given["Usage"]


@pytest.mark.parametrize(
    ("given", "bounds"),
    [
        ({"MostReadUnits": 500}, {"MaxReadRequestUnits": 500}),
        ({"MostWriteUnits": 400}, {"MaxWriteRequestUnits": 400}),
        (
            {"MostReadUnits": 500, "MostWriteUnits": 400},
            {"MaxReadRequestUnits": 500, "MaxWriteRequestUnits": 400},
        ),
    ],
)
def test_the_table_of_messages_has_a_cap(
    root: Path, given: dict[str, int], bounds: dict[str, int]
) -> None:
    found = tables(root, **given)
    assert found["Messages"]["OnDemandThroughput"] == bounds
    # Without accounts, keys and queues nobody could do anything about it.
    assert "OnDemandThroughput" not in found["Directory"] | found["Usage"]


def test_warm_units_are_given_together(root: Path) -> None:
    assert allows(root, "WarmUnitsAreTwo")
    assert allows(root, "WarmUnitsAreTwo", WarmReadUnits=13_000, WarmWriteUnits=5_000)
    assert not allows(root, "WarmUnitsAreTwo", WarmReadUnits=13_000)
    assert not allows(root, "WarmUnitsAreTwo", WarmWriteUnits=5_000)


def test_a_given_table_of_messages_has_its_stream(root: Path) -> None:
    rule, stream = "MessagesHaveAStream", "arn:aws:dynamodb:local:0:table/m/stream/1"
    assert allows(root, rule)
    assert allows(root, rule, ExistingMessagesTable="m", ExistingMessagesStream=stream)
    assert not allows(root, rule, ExistingMessagesTable="m")
    assert not allows(root, rule, ExistingMessagesStream=stream)
