"""Nested applications: all are deployed, with the names and the care that the whole has."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from tests.infra.tools import KEPT, ROOT, TEMPLATES, texts

from cirrusmq_local.cloud.cloudformation import APPLICATION, StackTemplate

HOLDING_DATA = {
    "AWS::DynamoDB::Table",
    "AWS::KMS::Key",
    "AWS::S3::Bucket",
    "AWS::SecretsManager::Secret",
    "AWS::SQS::Queue",
}


def test_every_template_is_part_of_the_deployment(stacks: list[StackTemplate]) -> None:
    assert len(stacks) > 1
    assert Counter(stack.path for stack in stacks) == Counter(TEMPLATES)


def test_every_application_has_the_tag_of_the_deployment(resources: dict[str, Any]) -> None:
    nested = {name: held for name, held in resources.items() if held["Type"] == APPLICATION}
    assert len(nested) == len(TEMPLATES) - 1
    for name, held in nested.items():
        assert held["Properties"]["Tags"] == {"stage": "production"}, name


def test_names_begin_with_the_deployment_and_not_with_a_nested_stack(
    stacks: list[StackTemplate], documents: list[dict[str, Any]]
) -> None:
    """A nested stack's own name is made by CloudFormation, and longer than some names may be."""
    nested = [
        name for name, held in documents[0]["Resources"].items() if held["Type"] == APPLICATION
    ]
    own = re.compile("|".join(f"cirrusmq-{name}" for name in nested))
    for stack, document in zip(stacks, documents, strict=True):
        assert [text for text in texts(document) if own.search(text)] == [], stack.path


def test_every_output_of_a_nested_application_is_used() -> None:
    above = (ROOT / "template.yaml").read_text()
    locations = dict(
        re.findall(
            r"^  (\w+):\n    Type: \S+\n(?:    Condition: .*\n)?.*\n      Location: (\S+)$",
            above,
            re.M,
        )
    )
    assert len(locations) == len(TEMPLATES) - 1
    for name, location in locations.items():
        _, _, outputs = (ROOT / location).read_text().partition("\nOutputs:")
        for output in re.findall(r"^  (\w+):$", outputs, re.M):
            assert re.search(rf"{name}\.Outputs\.{output}\b", above), output


def test_no_resource_with_data_goes_with_its_stack(resources: dict[str, Any]) -> None:
    holding = {name: held for name, held in resources.items() if held["Type"] in HOLDING_DATA}
    assert {held["Type"] for held in holding.values()} == HOLDING_DATA
    for name, held in holding.items():
        assert (held["DeletionPolicy"], held["UpdateReplacePolicy"]) == (KEPT, "Retain"), name
