"""The command that deploys: what it looks at first, runs, and does behind a creation."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import boto3
import pytest
from tests.infra.tools import run_tool

from release import deploy as deploying
from release import preflight, release
from release.__main__ import main


class Commands:
    """Records the commands of a deployment in the place of running them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, status: int = 0) -> None:
        self.commands: list[list[str]] = []
        self.given: dict[str, str] = {}
        self._status = status
        monkeypatch.setattr(subprocess, "run", self._run)

    def _run(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(command[1:])
        for text in command:
            if text.startswith("file://"):
                self.given.update(json.loads(Path(text.removeprefix("file://")).read_text()))
        return subprocess.CompletedProcess(command, self._status)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, in_aws: None) -> Any:
    """CloudFormation in memory, and an account and a machine where nothing is missing."""
    monkeypatch.setattr(preflight, "read_concurrency", lambda _: preflight.Concurrency(1000, 1000))
    monkeypatch.setattr(
        preflight, "read_table_units", lambda _: preflight.TableUnits(40_000, 40_000)
    )
    monkeypatch.setattr(preflight, "missing_here", lambda _: ())
    return boto3.client("cloudformation")


def make_stack(cloudformation: Any, name: str, **parameters: str) -> None:
    """A stack with these parameters, and nothing in it but a topic."""
    declared = {each: {"Type": "String", "Default": ""} for each in parameters}
    topic = {"T": {"Type": "AWS::SNS::Topic"}}
    cloudformation.create_stack(
        StackName=name,
        TemplateBody=json.dumps({"Parameters": declared, "Resources": topic}),
        Parameters=[
            {"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()
        ],
    )


def parameters_of(cloudformation: Any, name: str) -> dict[str, str]:
    (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    return {each["ParameterKey"]: each["ParameterValue"] for each in stack["Parameters"]}


@pytest.mark.long
def test_a_deployment_builds_and_passes_the_release_with_the_parameters(
    root: Path, account: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_stack(account, "queues", BodiesInS3From="16")
    ran = Commands(monkeypatch)
    assert main(["queues", "Stage=test", "--", "--region", "eu-central-1"]) == 0
    manual, build, deploy = ran.commands
    assert manual == ["-m", "infra.manual"]
    assert build == ["build"]
    assert deploy[:4] == ["deploy", "--stack-name", "queues", "--resolve-s3"]
    assert deploy[-2:] == ["--region", "eu-central-1"]
    new = release(root, {"Stage": "test"})
    assert ran.given == {"Stage": "test", "Release": new, "Protected": "true"}


@pytest.mark.long
def test_a_new_stack_is_made_without_protection_and_protected_right_behind(
    account: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rollback of a creation could not delete protected tables."""
    ran = Commands(monkeypatch)
    protect = deploying.protect

    def protect_what_sam_made(session: Any, stack: str) -> None:
        make_stack(account, stack, Stage="test", Protected=ran.given["Protected"])
        protect(session, stack)

    monkeypatch.setattr(deploying, "protect", protect_what_sam_made)
    assert main(["queues", "Stage=test"]) == 0
    assert ran.given["Protected"] == "false"
    assert parameters_of(account, "queues") == {"Stage": "test", "Protected": "true"}


def test_a_failed_creation_is_not_protected(account: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploying, "protect", None)
    Commands(monkeypatch, status=3)
    assert main(["queues"]) == 3


def test_a_bucket_of_ones_own_takes_the_place_of_sams(
    account: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_stack(account, "queues", BodiesInS3From="16")
    ran = Commands(monkeypatch)
    assert main(["queues", "--", "--s3-bucket", "mine"]) == 0
    assert "--resolve-s3" not in ran.commands[-1]


@pytest.mark.parametrize("options", [["--guided"], ["--parameter-overrides", "Stage=x"], ["-g"]])
def test_an_option_unknown_to_the_release_is_refused(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = Commands(monkeypatch)
    assert main(["queues", "--", *options]) == 2
    assert not ran.commands
    assert options[0] in capsys.readouterr().err


@pytest.mark.long
def test_the_passed_on_options_are_sams() -> None:
    code = (
        "from samcli.commands.deploy.command import cli;"
        "print(*(text for each in cli.params for text in (*each.opts, *each.secondary_opts)))"
    )
    known = run_tool(".venv-sam/bin/python", "-c", code).stdout.split()
    assert {"--region", "--profile", "--tags"} <= set(deploying.PASSED_ON) <= set(known)


def test_nothing_is_deployed_if_something_is_missing(
    account: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_stack(account, "queues", Stage="test")  # of a release that knew no bodies in S3
    ran = Commands(monkeypatch)
    assert main(["queues"]) == 2
    assert not ran.commands
    assert capsys.readouterr().err.startswith("BodiesInS3From=0 comes first")


def test_nothing_is_deployed_if_the_build_fails(
    account: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = Commands(monkeypatch, status=3)
    assert main(["queues"]) == 3
    assert len(ran.commands) == 1
