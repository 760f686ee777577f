"""cfn-lint and checkov on the templates as CloudFormation gets them, and checkov on the Dockerfile:
only reasoned findings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.infra.tools import EXAMPLE, run_tool

CHECKOV = re.compile(r"CKV")


@pytest.fixture(scope="module")
def skips(root: Path) -> dict[str, dict[str, Any]]:
    read: dict[str, dict[str, Any]] = yaml.safe_load((root / "infra/scan_skips.yaml").read_text())
    return read


def told_by(program: str, *arguments: str | Path) -> str:
    ended = run_tool(program, *arguments)
    return ended.stdout or pytest.fail(ended.stderr)


def compare(found: Iterable[tuple[str, str]], skips: dict[str, dict[str, Any]]) -> None:
    """Each finding has a skip, and each skip a finding."""
    listed = {(check, pattern) for check, skip in skips.items() for pattern in skip["resources"]}
    used: set[tuple[str, str]] = set()
    new: list[tuple[str, str]] = []
    for check, resource in found:
        fitting = {
            (check, pattern)
            for held, pattern in listed
            if held == check
            and (fnmatchcase(resource, pattern) or resource.endswith(f".{pattern}"))
        }
        used |= fitting
        if not fitting:
            new.append((check, resource))
    assert new == []
    assert listed - used == set(), "nothing is found there any more"


def test_every_skip_has_a_reason(skips: dict[str, dict[str, Any]]) -> None:
    assert all(len(skip["reason"]) > 40 and skip["resources"] for skip in skips.values())


@pytest.mark.long
def test_cfn_lint_finds_nothing_new(
    transformed: list[Path], skips: dict[str, dict[str, Any]], root: Path
) -> None:
    example = root / EXAMPLE
    told = told_by(".venv-sam/bin/cfn-lint", "--format", "json", *transformed, example)
    findings = json.loads(told)
    assert [each for each in findings if each["Filename"] == str(example)] == []
    found = [(each["Rule"]["Id"], f".{each['Location']['Path'][1]}") for each in findings]
    compare(found, {name: skip for name, skip in skips.items() if not CHECKOV.match(name)})


@pytest.mark.long
def test_checkov_finds_nothing_new(
    transformed: list[Path], skips: dict[str, dict[str, Any]], root: Path
) -> None:
    told = told_by(
        ".venv-checkov/bin/checkov",
        *("--framework", "cloudformation", "dockerfile", "--output", "json"),
        *("--quiet", "--compact", "--skip-download", "--file"),
        *(*transformed, root / "infra/docker/Dockerfile"),
    )
    reports = {report["check_type"]: report for report in json.loads(told)}
    assert sum(report["summary"]["parsing_errors"] for report in reports.values()) == 0
    assert reports["cloudformation"]["summary"]["passed"] > 200
    assert reports["dockerfile"]["summary"]["passed"] > 20
    found = [
        (each["check_id"], each["resource"])
        for report in reports.values()
        for each in report["results"]["failed_checks"]
    ]
    compare(found, {name: skip for name, skip in skips.items() if CHECKOV.match(name)})


def test_a_finding_without_a_reason_fails() -> None:
    skips = {"CKV_1": {"resources": ["AWS::S3::Bucket.*"], "reason": ""}}
    compare([("CKV_1", "AWS::S3::Bucket.Reports")], skips)
    with pytest.raises(AssertionError):
        compare([("CKV_1", "AWS::S3::Bucket.Reports"), ("CKV_2", "AWS::S3::Bucket.Reports")], skips)
    with pytest.raises(AssertionError):
        compare([("CKV_1", "AWS::SQS::Queue.Waiting")], skips)
    with pytest.raises(AssertionError):
        compare([], skips)
