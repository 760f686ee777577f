"""The tables' parameters: their capacity, and tables that are given."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.infra.tools import deployment, nested


def tables(**given: Any) -> dict[str, Any]:
    """The properties of each table, by its name in the template."""
    stack = nested("tables", **given)
    found = stack.resolve(stack.document["Resources"])
    return {name: held["Properties"] for name, held in found.items() if "Properties" in held}


def allows(rule: str, **given: Any) -> bool:
    """Whether CloudFormation takes these parameters, as far as a rule says."""
    stack = nested("tables", **given)
    (assertion,) = stack.document["Rules"][rule]["Assertions"]
    assert assertion["AssertDescription"]
    return bool(stack.resolve(assertion["Assert"]))


def test_capacity_is_left_to_dynamodb_unless_it_is_given() -> None:
    for properties in tables().values():
        assert not {"WarmThroughput", "OnDemandThroughput"} & set(properties)


def test_the_table_of_messages_is_warmed() -> None:
    given = tables(WarmReadUnits=30_000, WarmWriteUnits=20_000)
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
def test_the_table_of_messages_has_a_cap(given: dict[str, int], bounds: dict[str, int]) -> None:
    found = tables(**given)
    assert found["Messages"]["OnDemandThroughput"] == bounds
    # Without accounts, keys and queues nobody could do anything about it.
    assert "OnDemandThroughput" not in found["Directory"] | found["Usage"]


STREAM = "arn:aws:dynamodb:local:0:table/m/stream/1"


@pytest.mark.parametrize(
    ("rule", "given"),
    [
        ("WarmUnitsAreTwo", {"WarmReadUnits": 13_000, "WarmWriteUnits": 5_000}),
        (
            "MessagesHaveAStream",
            {"ExistingMessagesTable": "m", "ExistingMessagesStream": STREAM},
        ),
    ],
)
def test_warm_units_and_a_given_table_of_messages_and_its_stream_are_given_together(
    rule: str, given: dict[str, Any]
) -> None:
    assert allows(rule)
    assert allows(rule, **given)
    for name, value in given.items():
        assert not allows(rule, **{name: value})


UNITS = {"DirectoryUnits": "5,1000,5,200,70", "MessagesUnits": "10,40,20,80,50"}


def scaling(**given: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """What auto scaling may set, by resource and dimension, with the percent that it aims at."""
    stack = nested("tables", **given)
    made = {
        name: stack.resolve(held["Properties"])
        for name, held in stack.document["Resources"].items()
        if "ApplicationAutoScaling" in held["Type"] and stack.holds(held["Condition"])
    }
    policies = {
        held["ScalingTargetId"]: held["TargetTrackingScalingPolicyConfiguration"]
        for held in made.values()
        if "PolicyName" in held
    }
    return {
        (held["ResourceId"], held["ScalableDimension"]): held | policies[name]
        for name, held in made.items()
        if "ResourceId" in held
    }


def test_units_are_paid_each_unless_they_are_paid_by_the_hour() -> None:
    assert scaling() == {}
    for properties in tables().values():
        if "KeySchema" in properties:
            assert properties["BillingMode"] == "PAY_PER_REQUEST"
            assert "ProvisionedThroughput" not in properties


def test_every_provisioned_table_and_index_scales_in_reads_and_writes() -> None:
    given = {"Capacity": "provisioned", **UNITS}
    found = scaling(**given)
    expected = set()
    for name, properties in tables(**given).items():
        if "KeySchema" not in properties:
            continue
        assert properties["BillingMode"] == "PROVISIONED"
        indexes = [each["IndexName"] for each in properties.get("GlobalSecondaryIndexes", [])]
        for place in (f"table/{name}", *(f"table/{name}/index/{each}" for each in indexes)):
            kind = "index" if "/index/" in place else "table"
            for unit in ("Read", "Write"):
                expected.add((place, f"dynamodb:{kind}:{unit}CapacityUnits"))
    assert set(found) == expected
    for (_, dimension), held in found.items():
        metric = held["PredefinedMetricSpecification"]["PredefinedMetricType"]
        unit = dimension.rpartition(":")[2].removesuffix("CapacityUnits")
        assert metric == f"DynamoDB{unit}CapacityUtilization"


def test_the_five_numbers_of_a_table_bound_its_capacity() -> None:
    given = {"Capacity": "provisioned", **UNITS}
    found = scaling(**given)
    reads = found["table/Messages", "dynamodb:table:ReadCapacityUnits"]
    writes = found["table/Messages", "dynamodb:table:WriteCapacityUnits"]
    assert [reads["MinCapacity"], reads["MaxCapacity"], reads["TargetValue"]] == ["10", "40", "50"]
    assert [writes["MinCapacity"], writes["MaxCapacity"]] == ["20", "80"]
    begins = tables(**given)["Messages"]["ProvisionedThroughput"]
    assert begins == {"ReadCapacityUnits": "10", "WriteCapacityUnits": "20"}


def test_a_busy_table_becomes_provisioned_with_its_warm_units() -> None:
    found = tables(Capacity="provisioned", WarmReadUnits=900, WarmWriteUnits=600)["Messages"]
    assert found["ProvisionedThroughput"] == {"ReadCapacityUnits": 900, "WriteCapacityUnits": 600}
    # The partitions that this takes are prepared for it.
    assert found["WarmThroughput"] == {"ReadUnitsPerSecond": 900, "WriteUnitsPerSecond": 600}


def test_a_restored_table_gets_its_auto_scaling_back() -> None:
    found = scaling(Capacity="provisioned", ExistingUsageTable="usage-restored")
    assert {place for place, _ in found} == {
        "table/Directory",
        "table/Messages",
        "table/usage-restored",
    }


@pytest.mark.parametrize("cap", [{"MostReadUnits": 500}, {"MostWriteUnits": 400}])
def test_a_cap_of_tables_on_demand_is_refused_for_provisioned_ones(cap: dict[str, int]) -> None:
    assert allows("CapsAreOnDemand", Capacity="provisioned")
    assert allows("CapsAreOnDemand", **cap)
    assert not allows("CapsAreOnDemand", Capacity="provisioned", **cap)


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("5,1000,5,200,70", True),
        ("1,1,1,1,20", True),
        ("1,1,1,1,90", True),
        ("1,1,1,1,91", False),
        ("1,1,1,1,19", False),
        ("0,1,1,1,70", False),
        ("1,1,1,70", False),
        ("1, 1,1,1,70", False),
    ],
)
def test_the_five_numbers_are_checked_before_anything_is_made(text: str, taken: bool) -> None:
    declared = deployment().document["Parameters"]
    for name in ("DirectoryUnits", "MessagesUnits", "UsageUnits"):
        assert bool(re.fullmatch(declared[name]["AllowedPattern"], text)) == taken
        assert re.fullmatch(declared[name]["AllowedPattern"], declared[name]["Default"])
