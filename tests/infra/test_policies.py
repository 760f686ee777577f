"""Each function may do what it does, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cirrusmq_local.template import Template

# A key's own policy says "this key" by a star; there is no other way to say it.
STARS_BY_DESIGN = {("Key", "AccountDecides"), ("Key", "LogsOfThisAccount")}

WRITES = {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"}
READS = {"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"}
CHECKS = {"dynamodb:ConditionCheckItem"}


def policies(name: str, resource: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    properties = resource.get("Properties", {})
    documents = [
        properties.get("PolicyDocument"),
        properties.get("KeyPolicy"),
        *(held for held in properties.get("Policies", []) if isinstance(held, dict)),
    ]
    for document in documents:
        for statement in (document or {}).get("Statement", []):
            yield name, statement


def statements(resources: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [held for name, resource in resources.items() for held in policies(name, resource)]


def as_list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def actions_on(resources: dict[str, Any], function: str, target: str) -> set[str]:
    return {
        action
        for name, statement in statements(resources)
        if name == function and target in as_list(statement["Resource"])
        for action in as_list(statement["Action"])
    }


def test_every_statement_says_what_it_is_for(resources: dict[str, Any]) -> None:
    found = statements(resources)
    assert len(found) > 15
    assert all(statement.get("Sid") for _, statement in found)


def test_no_action_and_no_resource_is_a_wildcard(resources: dict[str, Any]) -> None:
    wild = {
        (name, statement["Sid"])
        for name, statement in statements(resources)
        for value in as_list(statement["Action"]) + as_list(statement["Resource"])
        if "*" in value
    }
    assert wild == STARS_BY_DESIGN


def test_functions_get_no_ready_made_policies(resources: dict[str, Any]) -> None:
    """SAM's own templates and AWS's managed policies allow more than one function needs."""
    for name, resource in resources.items():
        if resource["Type"] == "AWS::Serverless::Function":
            policies = resource["Properties"]["Policies"]
            assert [held for held in policies if isinstance(held, str)] == ["UseOfKey"], name
            assert "Role" not in resource["Properties"]


@pytest.mark.parametrize("function", ["Send", "Receive", "Delete"])
def test_the_calls_on_messages_cannot_change_the_directory(
    resources: dict[str, Any], function: str
) -> None:
    assert actions_on(resources, function, "Directory.Arn") <= READS


def test_only_managing_and_its_operations_change_the_directory(resources: dict[str, Any]) -> None:
    writers = {
        name
        for name, _ in statements(resources)
        if actions_on(resources, name, "Directory.Arn") & WRITES
    }
    assert writers == {"Manage", "Replay"}


def test_sending_never_deletes_a_message(resources: dict[str, Any]) -> None:
    assert "dynamodb:DeleteItem" not in actions_on(resources, "Send", "Messages.Arn")


def test_managing_never_changes_a_message(resources: dict[str, Any]) -> None:
    assert actions_on(resources, "Manage", "Messages.Arn") <= READS


def test_counting_never_sees_the_messages_table(resources: dict[str, Any]) -> None:
    assert actions_on(resources, "Meter", "Usage.Arn")
    assert not actions_on(resources, "Meter", "Messages.Arn")
    assert actions_on(resources, "Meter", "Directory.Arn") <= READS


def test_only_counting_writes_the_usage(resources: dict[str, Any]) -> None:
    writers = {
        name
        for name, _ in statements(resources)
        if actions_on(resources, name, "Usage.Arn") & WRITES
    }
    assert writers == {"Meter"}


def test_nobody_scans_or_drops_a_table(resources: dict[str, Any]) -> None:
    used = {
        action
        for _, statement in statements(resources)
        for action in as_list(statement["Action"])
        if action.startswith("dynamodb:")
    }
    assert used <= WRITES | READS | CHECKS | {"dynamodb:BatchWriteItem"}


def test_only_operations_are_invoked_and_only_where_they_are_started(
    resources: dict[str, Any],
) -> None:
    invokers = {
        (name, resource)
        for name, statement in statements(resources)
        if "lambda:InvokeFunction" in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
    }
    itself = "arn:aws:lambda:local:000000000000:function:cirrusmq-replay"
    assert invokers == {("Manage", "Replay.Arn"), ("Sweep", "Replay.Arn"), ("Replay", itself)}


def test_a_function_is_told_the_tables_it_may_use_and_no_others(
    template: Template, resources: dict[str, Any]
) -> None:
    for name, resource in resources.items():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        told = {
            variable
            for variable in resource["Properties"]["Environment"]["Variables"]
            if variable.endswith("_TABLE")
        }
        allowed = {
            f"{table.name.upper()}_TABLE"
            for table in template.tables
            if actions_on(resources, name, f"{table.name}.Arn")
        }
        assert told == allowed, name


def test_what_fails_for_good_can_be_told(resources: dict[str, Any]) -> None:
    for name in ("Meter", "FanOut", "Replay"):
        assert actions_on(resources, name, "Unprocessed.Arn") == {"sqs:SendMessage"}
