"""Names of stacks: the longest that every part of a deployment can begin with, else a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from cirrusmq_local.cloud.cloudformation import StackTemplate
from cirrusmq_local.cloud.stack_names import (
    CHARACTERS,
    StackNameError,
    check_stack_name,
    max_characters,
)
from release.__main__ import main

MAX = 49


def test_the_longest_name_is_told_with_its_limiting_part(root: Path) -> None:
    assert max_characters(root / "template.yaml") == (MAX, "PreTraffic")


def test_a_fitting_name_is_taken_and_a_longer_one_refused(root: Path) -> None:
    template = root / "template.yaml"
    check_stack_name(template, "a" * MAX)
    with pytest.raises(StackNameError, match="at most 49 characters, this one has 50"):
        check_stack_name(template, "a" * (MAX + 1))
    for stack in StackTemplate(template, "a" * MAX, "local").stacks():
        for resource in stack.document["Resources"].values():
            name = (resource.get("Properties") or {}).get("FunctionName")
            if resource["Type"] == "AWS::Serverless::Function":
                assert len(stack.resolve(name)) <= 64


@pytest.mark.parametrize("name", ["", "1a", "a_b", "a.b", "a b", "-a"])
def test_a_name_against_cloudformations_rules_is_refused(root: Path, name: str) -> None:
    with pytest.raises(StackNameError, match="begins with a letter"):
        check_stack_name(root / "template.yaml", name)


def test_every_name_in_the_templates_is_known(root: Path) -> None:
    """A new part with a name of its own needs its limit."""
    given = {
        (resource["Type"], key)
        for stack in StackTemplate(root / "template.yaml", "zzzz", "local").stacks()
        for resource in stack.document["Resources"].values()
        for key, value in (resource.get("Properties") or {}).items()
        if key.endswith("Name") and "zzzz" in str(stack.resolve(value))
    }
    others = {
        # Not names that are made there, but of parts that have them.
        ("AWS::Lambda::EventSourceMapping", "FunctionName"),
        ("AWS::Lambda::Permission", "FunctionName"),
        ("AWS::Logs::MetricFilter", "LogGroupName"),
    }
    assert given - others == set(CHARACTERS)


def test_a_deployment_is_refused_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("release.deploy", lambda *_: pytest.fail("it was deployed"))
    assert main(["a" * (MAX + 1)]) == 2
    assert "at most 49 characters" in capsys.readouterr().err
