"""URLs of functions: what SAM would make, in deployments that ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.infra.tools import ROOT, deployment, run_tool
from tests.infra.transformed import path_of

from cirrusmq_local.cloud.cloudformation import read

SAMPLE = """
AWSTemplateFormatVersion: "2010-09-09"
Transform: AWS::Serverless-2016-10-31
Resources:
  Send:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: s3://bucket/key
      Handler: app.handler
      Runtime: python3.13
      AutoPublishAlias: live
      FunctionUrlConfig: {AuthType: NONE}
"""
KINDS = ("AWS::Lambda::Url", "AWS::Lambda::Permission")
FUNCTIONS = {"Send", "Receive", "Delete", "Publish"}


def of_urls(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Type and properties of what belongs to URLs."""
    for held in read(path)["Resources"].values():
        if held["Type"] in KINDS:
            yield held["Type"], held["Properties"]


def targets(found: list[tuple[str, dict[str, Any]]], name: str) -> list[tuple[str, dict[str, Any]]]:
    """Those of one function, whose name or alias is left out."""
    own = []
    for kind, properties in found:
        rest = dict(properties)
        target = rest.pop("TargetFunctionArn", None) or rest.pop("FunctionName")
        if target["Ref"] == name:
            own.append((kind, rest))
    return sorted(own, key=str)


def test_a_url_and_its_permissions_equal_the_output_of_sam(
    transformed: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "sample.yaml").write_text(SAMPLE)
    script = ROOT / "infra/transform.py"
    run = run_tool(".venv-sam/bin/python", script, tmp_path, tmp_path / "made", "sample.yaml")
    assert run.returncode == 0, run.stderr
    expected = targets(list(of_urls(tmp_path / "made/sample.yaml")), "SendAliaslive")
    assert len(expected) == 3
    assert {held.get("Action") for _, held in expected} == {
        *(None, "lambda:InvokeFunctionUrl", "lambda:InvokeFunction"),
    }
    found = list(of_urls(path_of(transformed, "direct")))
    assert len(found) == 3 * len(FUNCTIONS)
    for name in FUNCTIONS:
        assert targets(found, name) == expected


def test_urls_belong_to_aliases_and_roll_out_with_the_api(
    transformed: list[Path],
) -> None:
    direct = read(transformed[0])["Resources"]["Direct"]
    assert direct["Condition"] == "HasDirectUrls"
    assert direct["Properties"]["Parameters"] == {
        name: {"Ref": f"{name}Aliaslive"} for name in FUNCTIONS
    }


@pytest.mark.parametrize(("given", "told"), [({}, False), ({"DirectUrls": "true"}, True)])
def test_manage_is_told_the_urls_if_there_are_some(given: dict[str, str], told: bool) -> None:
    stack = deployment(**given)
    manage = stack.resolve(stack.document["Resources"]["Manage"])["Properties"]
    text = manage["Environment"]["Variables"]["DIRECT_URLS"]
    names = {entry.partition("=")[0] for entry in text.split(",") if entry}
    assert names == ({name.lower() for name in FUNCTIONS} if told else set())


def test_calls_without_a_throttle_can_be_bounded() -> None:
    def reserved(**given: Any) -> dict[str, Any]:
        stack = deployment(**given)
        found = stack.resolve({name: stack.document["Resources"][name] for name in FUNCTIONS})
        return {n: h["Properties"].get("ReservedConcurrentExecutions") for n, h in found.items()}

    assert set(reserved().values()) == {None}
    bounded = reserved(CallConcurrency=50, ReceiveConcurrency=100)
    assert bounded == {"Send": 50, "Delete": 50, "Publish": 50, "Receive": 100}
